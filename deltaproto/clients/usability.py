"""Which client versions can use a table, and since which version they work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from deltaproto.clients import version_scheme
from deltaproto.clients.matching import PathVerdict, Verdict
from deltaproto.clients.model import Access, Client, Path
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import (
    ClientAtVersion,
    ClientReference,
    first_version_of,
    resolve_reference,
)
from deltaproto.clients.verdicts import path_verdicts


class VersionSpan(NamedTuple):
    """Consecutive known versions of a client with the same verdict."""

    first: str | None
    """None: the earliest versions, or a service without versions"""
    last: str | None
    """the last explicitly known version"""
    verdict: Verdict
    because: tuple[str, ...]
    """the features that decide in the last version"""
    reason: str


class Usability(NamedTuple):
    """The access of one client path to a table, oldest versions first."""

    client: Client
    path: str | None
    """None if the client has only one path"""
    access: Access
    offered: bool
    """True if its newest version offers the access"""
    spans: tuple[VersionSpan, ...]

    @property
    def named(self) -> str:
        """The client reference without a version."""
        return str(ClientReference(self.client.id, self.path, None))

    @property
    def newest(self) -> VersionSpan:
        """Verdict for the newest version."""
        return self.spans[-1]

    @property
    def since(self) -> str | None:
        """First version from which all known ones work; None: none work, or all do."""
        works = self.newest.verdict is Verdict.OK and len(self.spans) > 1
        return self.newest.first if works else None

    @property
    def never(self) -> bool:
        """True if no known version works."""
        return all(span.verdict is not Verdict.OK for span in self.spans)


def find_usability(
    client: Client, accesses: Iterable[Access], table: TableRequirements
) -> Iterator[Usability]:
    """Yield the usability of each path of the newest version, over all known versions."""
    candidates = known_versions(client)
    for access in accesses:
        for path in _offering_paths(candidates[-1], access):
            spans: list[VersionSpan] = []
            for candidate in candidates:
                judgement = _path_verdict(candidate, path, access, table)
                if judgement is not None:
                    _extend(spans, candidate.reference.version, judgement)
            offered = any(one.offers(access) for one in candidates[-1].paths)
            yield Usability(client, path, access, offered, tuple(spans))


def known_versions(client: Client) -> tuple[ClientAtVersion, ...]:
    """Return the first and newest versions of each range and the measured ones, oldest first."""
    found = {each.start: first_version_of(each, client) for each in client.ranges}
    for one in client.measured:
        if one.start is not None and one.start not in found:
            found[one.start] = resolve_reference(
                ClientReference(client.id, None, one.start), client
            )
    for each in client.ranges:
        if each.newest is not None and each.newest not in found:
            found[each.newest] = resolve_reference(
                ClientReference(client.id, None, each.newest), client
            )
    by_version = {
        None if text is None else version_scheme.parse_version(client.versions, text): candidate
        for text, candidate in found.items()
    }
    first = by_version.pop(None, None)
    rest = sorted(
        ((version, each) for version, each in by_version.items() if version is not None),
        key=lambda pair: pair[0],
    )
    return (*(() if first is None else (first,)), *(each for _, each in rest))


def _offering_paths(newest: ClientAtVersion, access: Access) -> Iterator[str | None]:
    offering = [path for path in newest.paths if path.offers(access)]
    yield from dict.fromkeys(path.name for path in offering or newest.paths[:1])


def _path_verdict(
    candidate: ClientAtVersion, name: str | None, access: Access, table: TableRequirements
) -> PathVerdict | None:
    """Return the verdict for a path by name, or for the only unnamed path."""
    by_path: dict[str | None, PathVerdict] = {}
    path: Path | None
    for path, judgement in path_verdicts(candidate, access, table):
        by_path[None if path is None else path.name] = judgement
    return by_path.get(name, by_path.get(None))


def _extend(spans: list[VersionSpan], version: str | None, judgement: PathVerdict) -> None:
    if spans and spans[-1].verdict is judgement.verdict:
        before = spans.pop()
        first = before.first
    else:
        first = version
    spans.append(
        VersionSpan(first, version, judgement.verdict, judgement.because, judgement.reason)
    )
