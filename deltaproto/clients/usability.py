"""Which client versions can use a table, and since which version they work."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from deltaproto.caches import cache_by_identity
from deltaproto.clients import version_scheme
from deltaproto.clients.model import Access, Client, PathVerdict, Verdict
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import (
    ClientAtVersion,
    ClientReference,
    first_version_of,
    resolve_reference,
)
from deltaproto.clients.verdicts import path_verdicts


class VersionSpan(NamedTuple):
    """Consecutive known versions of a client that offer the access, or not, with one verdict."""

    first: str | None
    """None: the earliest versions, or a service without versions"""
    last: str | None
    """the last explicitly known version"""
    verdict: Verdict
    because: tuple[str, ...]
    """the features that decide in the last version"""
    reason: str
    offered: bool
    """False if these versions lack the path, or the path does not offer the access"""


class Usability(NamedTuple):
    """The access of one client path to a table, oldest versions first."""

    client: Client
    path: str | None
    """None if the client has only one path"""
    access: Access
    spans: tuple[VersionSpan, ...]

    @property
    def named(self) -> str:
        """The client reference without a version."""
        return str(ClientReference(self.client.id, self.path, None))

    @property
    def offered(self) -> bool:
        """True if its newest version offers the access."""
        return self.newest.offered

    @property
    def newest(self) -> VersionSpan:
        """Verdict for the newest version."""
        return self.spans[-1]

    @property
    def since(self) -> str | None:
        """First of the versions that work up to the newest; None: the newest fails, or all work."""
        works = self.newest.verdict is Verdict.OK and len(self.spans) > 1
        return self.newest.first if works else None

    @property
    def never(self) -> bool:
        """True if no known version works."""
        return all(span.verdict is not Verdict.OK for span in self.spans)


def find_usability(
    client: Client, accesses: Iterable[Access], table: TableRequirements
) -> Iterator[Usability]:
    """Yield the usability of each path that any version offers, over all known versions."""
    candidates = known_versions(client)
    for access in accesses:
        verdicts = [_verdicts_by_path(candidate, access, table) for candidate in candidates]
        for path in _offering_paths(candidates, access):
            spans: list[VersionSpan] = []
            for candidate, by_path in zip(candidates, verdicts, strict=True):
                found = by_path.get(path, by_path.get(None))
                judgement, offered = found or (
                    PathVerdict(Verdict.REFUSED, (), f"this version has no {path} path"),
                    False,
                )
                _extend(spans, candidate.reference.version, judgement, offered=offered)
            yield Usability(client, path, access, tuple(spans))


@cache_by_identity(256)
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
            newest = ClientReference(client.id, None, each.newest)
            found[each.newest] = resolve_reference(newest, client, near=each)
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


def _offering_paths(candidates: Sequence[ClientAtVersion], access: Access) -> Iterator[str | None]:
    """Yield the names of all paths that offer the access in any version, newest version first."""
    names = dict.fromkeys(
        path.name
        for candidate in reversed(candidates)
        for path in candidate.paths
        if path.offers(access)
    )
    # An unnamed path is the only path of its version, and represents every named path.
    named = [name for name in names if name is not None]
    yield from named or (path.name for path in candidates[-1].paths[:1])


def _verdicts_by_path(
    candidate: ClientAtVersion, access: Access, table: TableRequirements
) -> dict[str | None, tuple[PathVerdict, bool]]:
    """Return the verdict of each path, and whether this version offers the access on it."""
    return {
        None if path is None else path.name: (judgement, path is None or path.offers(access))
        for path, judgement in path_verdicts(candidate, access, table)
    }


def _extend(
    spans: list[VersionSpan], version: str | None, judgement: PathVerdict, *, offered: bool
) -> None:
    first = version
    if spans and (spans[-1].verdict, spans[-1].offered) == (judgement.verdict, offered):
        first = spans.pop().first
    spans.append(
        VersionSpan(first, version, judgement.verdict, judgement.because, judgement.reason, offered)
    )
