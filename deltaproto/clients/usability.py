"""Who can use a table: every known version of a client, and since which version it works."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from deltaproto.clients import version_scheme
from deltaproto.clients.matching import PathVerdict, Verdict
from deltaproto.clients.model import Access, Client, Path
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import Candidate, Reference, beginning, referred
from deltaproto.clients.verdicts import judgements


class Span(NamedTuple):
    """Known versions of a client, one after the other, with the same verdict."""

    first: str | None
    """None: the earliest versions, or a service without versions"""
    last: str | None
    """the last of them of which something is known by itself"""
    verdict: Verdict
    because: tuple[str, ...]
    """the features that decide in the last of them"""
    reason: str


class Usability(NamedTuple):
    """What one path of a client can do with a table, the oldest versions first."""

    client: Client
    path: str | None
    """None where the client has only one"""
    access: Access
    offered: bool
    """whether its newest version offers the access at all"""
    spans: tuple[Span, ...]

    @property
    def named(self) -> str:
        """The client as people write it, without a version."""
        return str(Reference(self.client.id, self.path, None))

    @property
    def newest(self) -> Span:
        """The verdict on the newest version."""
        return self.spans[-1]

    @property
    def since(self) -> str | None:
        """The version from which on every known one works; None: none does, or all do."""
        works = self.newest.verdict is Verdict.OK and len(self.spans) > 1
        return self.newest.first if works else None

    @property
    def never(self) -> bool:
        """Whether no known version works."""
        return all(span.verdict is not Verdict.OK for span in self.spans)


def usability(
    client: Client, accesses: Iterable[Access], table: TableRequirements
) -> Iterator[Usability]:
    """What each path of the client's newest version can do, over all versions that are known."""
    candidates = known_versions(client)
    for access in accesses:
        for path in _paths(candidates[-1], access):
            spans: list[Span] = []
            for candidate in candidates:
                judgement = _judgement(candidate, path, access, table)
                if judgement is not None:
                    _extend(spans, candidate.reference.version, judgement)
            offered = any(one.offers(access) for one in candidates[-1].paths)
            yield Usability(client, path, access, offered, tuple(spans))


def known_versions(client: Client) -> tuple[Candidate, ...]:
    """The first and newest version of each range and each measured one, the oldest first."""
    found = {each.start: beginning(each, client) for each in client.ranges}
    for one in client.measured:
        if one.start is not None and one.start not in found:
            found[one.start] = referred(Reference(client.id, None, one.start), client)
    for each in client.ranges:
        if each.newest is not None and each.newest not in found:
            found[each.newest] = referred(Reference(client.id, None, each.newest), client)
    by_version = {
        None if text is None else version_scheme.parse(client.versions, text): candidate
        for text, candidate in found.items()
    }
    first = by_version.pop(None, None)
    rest = sorted(
        ((version, each) for version, each in by_version.items() if version is not None),
        key=lambda pair: pair[0],
    )
    return (*(() if first is None else (first,)), *(each for _, each in rest))


def _paths(newest: Candidate, access: Access) -> Iterator[str | None]:
    offering = [path for path in newest.paths if path.offers(access)]
    yield from dict.fromkeys(path.name for path in offering or newest.paths[:1])


def _judgement(
    candidate: Candidate, name: str | None, access: Access, table: TableRequirements
) -> PathVerdict | None:
    """The judgement for a path by its name; of a version with one unnamed path, for that."""
    by_path: dict[str | None, PathVerdict] = {}
    path: Path | None
    for path, judgement in judgements(candidate, access, table):
        by_path[None if path is None else path.name] = judgement
    return by_path.get(name, by_path.get(None))


def _extend(spans: list[Span], version: str | None, judgement: PathVerdict) -> None:
    if spans and spans[-1].verdict is judgement.verdict:
        before = spans.pop()
        first = before.first
    else:
        first = version
    spans.append(Span(first, version, judgement.verdict, judgement.because, judgement.reason))
