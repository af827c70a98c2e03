"""Compares the catalog's statements about a client with its measurement."""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.certification.entry import Discrepancy, KnownTable, find_discrepancies
from deltaproto.clients.catalog import Catalogue
from deltaproto.clients.measurement import Measurement
from deltaproto.clients.resolve import ClientReference
from deltaproto.errors import UsageError


def find_contradictions(
    catalogue: Catalogue, measured: Measurement, tables: Iterable[KnownTable]
) -> list[Discrepancy]:
    """List contradictions between documentation and measurement; empty for an undocumented client.

    Ignores what the catalog took from measurements of this version, which would agree with itself.
    """
    try:
        named = str(ClientReference(measured.client, None, measured.version))
        candidate = catalogue.resolve(named)
    except UsageError:
        return []
    below = candidate.documented or candidate.range
    if below is None or below in candidate.client.measured:
        return []
    paths = [path for path in below.paths if path.name in (measured.path, None)]
    return find_discrepancies(below, paths[0], measured, tables) if paths else []
