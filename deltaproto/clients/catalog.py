"""The clients that are known: one YAML file each in `data/`, and those that a site declares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path as File
from typing import Any

from deltaproto.clients.entry import parse_client
from deltaproto.clients.model import Client
from deltaproto.clients.resolve import Candidate, parse_reference, referred
from deltaproto.errors import UsageError

_DATA = File(__file__).parent / "data"
_MEASURED = File(__file__).parent / "measured" / "entries"


class Catalogue:
    """The clients of the package, and those of a site, which come first.

    Args:
        own: declared by the site, in files or in its policy.
    """

    def __init__(self, own: Iterable[Client] = ()) -> None:
        self._own: Mapping[str, Client] = {client.id: _extended(client) for client in own}

    def ids(self) -> tuple[str, ...]:
        """Every id, sorted."""
        return tuple(sorted({*self._own, *(self.get(name).id for name in shipped_ids())}))

    def clients(self) -> tuple[Client, ...]:
        """Every client, by id."""
        return tuple(self.get(name) for name in self.ids())

    def get(self, name: str) -> Client:
        """The client with this id or alias, in any case.

        Raises:
            UsageError: suggesting the nearest.
        """
        wanted = name.casefold()
        for own in self._own.values():
            if wanted in (own.id.casefold(), *(alias.casefold() for alias in own.aliases)):
                return own
        if wanted in shipped_ids():
            return shipped(wanted)
        aliases = {
            alias.casefold(): c.id for c in map(shipped, shipped_ids()) for alias in c.aliases
        }
        if wanted in aliases:
            return shipped(aliases[wanted])
        import difflib

        near = difflib.get_close_matches(wanted, [*self.ids(), *aliases], n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "run `deltaproto clients` for all"
        raise UsageError(f"no client is called {name}", hint)

    def resolve(self, text: str) -> Candidate:
        """The client that `text` refers to, as `id`, `id@version` or `id/path@version`.

        Raises:
            UsageError: for an unknown id or path, a version that is none, or one that is missing.
        """
        reference = parse_reference(text)
        return referred(reference, self.get(reference.id))


def _extended(client: Client) -> Client:
    """A site's measurements of a client that the package knows go before the package's."""
    if client.ranges or client.id not in shipped_ids():
        return client
    known = shipped(client.id)
    return known._replace(measured=(*known.measured, *client.measured))


@cache
def shipped_ids() -> tuple[str, ...]:
    """The ids of the package's own catalogue."""
    return tuple(sorted(file.stem for file in _DATA.glob("*.yaml")))


@cache
def shipped(name: str) -> Client:
    """One client of the package's own catalogue, with what was measured of it."""
    file, measured = _DATA / f"{name}.yaml", _MEASURED / f"{name}.json"
    plain = _loaded(file)
    if measured.exists():
        plain = {**plain, "measured": json.loads(measured.read_text(encoding="utf-8"))}
    return parse_client(plain, file.name)


def _loaded(file: File) -> Any:
    import yaml

    # libyaml's loader where it is built in: the same as safe_load, ten times as fast.
    safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(file.read_text(encoding="utf-8"), Loader=safe)  # noqa: S506
