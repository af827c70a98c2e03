"""Known clients: one YAML file each in `data/`, plus those that a site declares."""

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
    """The built-in clients and a site's clients, which take precedence.

    Args:
        own: clients from the site's files or policy.
    """

    def __init__(self, own: Iterable[Client] = ()) -> None:
        self._own: Mapping[str, Client] = {client.id: _extended(client) for client in own}

    def ids(self) -> tuple[str, ...]:
        """Return every id, sorted."""
        return tuple(sorted({*self._own, *(self.get(name).id for name in shipped_ids())}))

    def clients(self) -> tuple[Client, ...]:
        """Return every client, sorted by id."""
        return tuple(self.get(name) for name in self.ids())

    def get(self, name: str) -> Client:
        """Return the client with this id or alias (case-insensitive).

        Raises:
            UsageError: with a suggestion, if the name is unknown.
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
        hint = f"did you mean {', '.join(near)}?" if near else "run `deltaproto clients`"
        raise UsageError(f"unknown client {name}", hint)

    def resolve(self, text: str) -> Candidate:
        """Resolve a reference of the form `id`, `id@version` or `id/path@version`.

        Raises:
            UsageError: for an unknown id or path, or an invalid or missing version.
        """
        reference = parse_reference(text)
        return referred(reference, self.get(reference.id))


def _extended(client: Client) -> Client:
    """Let a site's measurements take precedence over the built-in ones."""
    if client.ranges or client.id not in shipped_ids():
        return client
    known = shipped(client.id)
    return known._replace(measured=(*known.measured, *client.measured))


@cache
def shipped_ids() -> tuple[str, ...]:
    """Return the ids of the built-in catalog."""
    return tuple(sorted(file.stem for file in _DATA.glob("*.yaml")))


@cache
def shipped(name: str) -> Client:
    """Return one client of the built-in catalog, with its measurements."""
    file, measured = _DATA / f"{name}.yaml", _MEASURED / f"{name}.json"
    plain = _loaded(file)
    if measured.exists():
        plain = {**plain, "measured": json.loads(measured.read_text(encoding="utf-8"))}
    return parse_client(plain, file.name)


def _loaded(file: File) -> Any:
    import yaml

    # libyaml's loader, if available: equivalent to safe_load, ten times as fast.
    safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(file.read_text(encoding="utf-8"), Loader=safe)  # noqa: S506
