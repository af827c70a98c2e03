"""A client as a waiver or an approval names it: `trino` means all of its versions and paths."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from deltaproto.clients import scheme
from deltaproto.clients.candidate import Reference, parse_reference
from deltaproto.clients.capability import Client
from deltaproto.clients.catalogue import Catalogue

_parsed = lru_cache(maxsize=4096)(parse_reference)


class NamedClient(NamedTuple):
    """A client of the catalog, and the path and version that were named."""

    client: Client
    reference: Reference

    def names(self, named: str | None) -> bool:
        """Whether `named`, such as `deltalake/pyarrow@1.6.6`, is this client."""
        if named is None:
            return False
        _, path, version = self.reference
        here = _parsed(named)
        return (
            here.id == self.client.id
            and path in (None, here.path)
            and (version is None or self._number(version) == self._number(here.version))
        )

    def _number(self, version: str | None) -> scheme.Version | str | None:
        # 14.3 and 14.3 LTS are one version.
        return version and (scheme.parse(self.client.versions, version) or version)


def named_client(catalogue: Catalogue, text: str) -> NamedClient:
    """The client that `text` names.

    Raises:
        UsageError: for a client that the catalog does not have.
    """
    reference = parse_reference(text)
    return NamedClient(catalogue.get(reference.id), reference)
