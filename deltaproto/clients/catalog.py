"""Known clients: one YAML file each in `data/`, plus those that a site declares.

`make docs` writes each client with its measurements to `parsed/`, which loads far faster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path as File
from typing import Any

from deltaproto.clients.model import Client
from deltaproto.clients.resolve import ClientAtVersion, parse_reference, resolve_reference
from deltaproto.clients.stored import decode_client, encode_client
from deltaproto.errors import UsageError

_DATA = File(__file__).parent / "data"
_PARSED = File(__file__).parent / "parsed"
_MEASURED = File(__file__).parent / "measured" / "entries"


_DELTA_NAMES = ("delta", "delta-lake", "delta-core", "io.delta")
_MEANT_BY_DELTA = ("delta-spark (the library for Spark)", "deltalake (delta-rs, for Python)")
_SPARK_NAMES = ("spark", "pyspark", "apache-spark")
DELTA_RELEASES = {
    "3.1": "1.0",
    "3.2": "1.1 to 2.0",
    "3.3": "2.1 to 2.3",
    "3.4": "2.4",
    "3.5": "3.0 to 3.3",
    "4.0": "4.0 to 4.4",
    "4.1": "4.1 to 4.4",
    "4.2": "4.4",
}
"""the releases of Delta Spark by Spark version, as delta-spark's packages require pyspark"""


def _spark_hint(version: str | None) -> str:
    """Return which releases of Delta a Spark runs; all of them if its version is not known."""
    minor = ".".join((version or "").split(".")[:2])
    known = {minor: DELTA_RELEASES[minor]} if minor in DELTA_RELEASES else DELTA_RELEASES
    newest = known.get(minor, DELTA_RELEASES["3.5"]).rpartition(" ")[2]
    runs = "; ".join(f"Spark {spark} runs {delta}" for spark, delta in known.items())
    return f"name the version of Delta, as in delta-spark@{newest}.0: {runs}"


class ClientCatalog:
    """The built-in clients and a site's clients, which take precedence.

    Args:
        own: clients from the site's files or policy.
    """

    def __init__(self, own: Iterable[Client] = ()) -> None:
        self._own: Mapping[str, Client] = {client.id: _extend_measured(client) for client in own}
        self._resolved: dict[str, ClientAtVersion] = {}

    def ids(self) -> tuple[str, ...]:
        """Return every id, sorted."""
        return tuple(sorted({*self._own, *(self.get(name).id for name in shipped_client_ids())}))

    def overrides(self, client: Client) -> bool:
        """Return True if a site's entry decides what a client of the built-in catalog supports."""
        return client.id in self._own and client.id.casefold() in shipped_client_ids()

    def clients(self) -> tuple[Client, ...]:
        """Return every client, sorted by id."""
        return tuple(self.get(name) for name in self.ids())

    def get(self, name: str, version: str | None = None) -> Client:
        """Return the client with this id or alias (case-insensitive).

        Args:
            version: only used in the suggestion for an unknown name.

        Raises:
            UsageError: with a suggestion, if the name is unknown.
        """
        wanted = name.casefold()
        for own in self._own.values():
            if wanted in (own.id.casefold(), *(alias.casefold() for alias in own.aliases)):
                return own
        if wanted in shipped_client_ids():
            return load_shipped_client(wanted)
        aliases = {
            alias.casefold(): c.id
            for c in map(load_shipped_client, shipped_client_ids())
            for alias in c.aliases
        }
        if wanted in aliases:
            return load_shipped_client(aliases[wanted])
        if wanted in _SPARK_NAMES:
            message = f"{name} alone does not determine what is supported"
            raise UsageError(message, _spark_hint(version))
        near: Sequence[str] = _similar(wanted, [*self.ids(), *aliases])
        if wanted in _DELTA_NAMES:
            near = _MEANT_BY_DELTA
        hint = f"did you mean {', '.join(near)}?" if near else "run `deltaproto clients`"
        raise UsageError(f"unknown client {name}", hint)

    def resolve(self, text: str) -> ClientAtVersion:
        """Resolve a reference of the form `id`, `id@version` or `id/path@version`.

        Raises:
            UsageError: for an unknown id or path, or an invalid or missing version.
        """
        found = self._resolved.get(text)
        if found is None:
            reference = parse_reference(text)
            found = resolve_reference(reference, self.get(reference.id, reference.version))
            self._resolved[text] = found
        return found


def _similar(wanted: str, names: Sequence[str]) -> list[str]:
    """Return at most three names: those that begin with the wanted word, else similar ones."""
    beginning = [name for name in names if name.startswith(wanted)] if len(wanted) > 2 else []
    if beginning:
        return beginning[:3]
    import difflib

    return difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)


def _extend_measured(client: Client) -> Client:
    """Let a site's measurements take precedence over the built-in ones."""
    if client.ranges or client.id not in shipped_client_ids():
        return client
    known = load_shipped_client(client.id)
    return known._replace(measured=(*known.measured, *client.measured))


@cache
def shipped_client_ids() -> tuple[str, ...]:
    """Return the ids of the built-in catalog."""
    return tuple(sorted(file.stem for file in _DATA.glob("*.yaml")))


@cache
def load_shipped_client(name: str) -> Client:
    """Return one client of the built-in catalog, with its measurements."""
    return decode_client(_load_json(_PARSED / f"{name}.json"))


def _load_json(file: File) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def parsed_clients() -> Iterator[tuple[File, str]]:
    """Yield the file of each client in `parsed/`, and the text that belongs in it."""
    for name in shipped_client_ids():
        text = json.dumps(encode_client(parse_shipped_client(name)), ensure_ascii=False)
        yield _PARSED / f"{name}.json", f"{text}\n"


def parse_shipped_client(name: str) -> Client:
    """Parse the YAML file of one client, and its measurements.

    Raises:
        EntryError: with the invalid member.
    """
    import yaml

    from deltaproto.clients.entry import parse_client

    # libyaml's loader, if available: equivalent to safe_load, ten times as fast.
    safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    source = (_DATA / f"{name}.yaml").read_text(encoding="utf-8")
    plain = yaml.load(source, Loader=safe)  # noqa: S506
    measured = _MEASURED / f"{name}.json"
    if measured.exists():
        plain = {**plain, "measured": _load_json(measured)}
    return parse_client(plain, f"{name}.yaml")
