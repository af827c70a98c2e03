"""Verdicts on one client for a table's requirements, with remedies."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.clients.matching import judge_access
from deltaproto.clients.model import Access, Confidence, Path, PathVerdict, Verdict
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import ClientAtVersion, ClientReference

if TYPE_CHECKING:
    from deltaproto.clients.remedy import Remedy


class ClientVerdict(NamedTuple):
    """The result of a client version's access to a table."""

    client: str
    version: str | None
    path: str | None
    """None if the client has only one path"""
    access: Access
    verdict: Verdict
    because: tuple[str, ...]
    """the features that decide; empty if ok, or not caused by a feature"""
    reason: str
    """empty if ok"""
    remedies: "tuple[Remedy, ...]"
    """cheapest first; empty if ok, or if there is no remedy"""
    confidence: Confidence | None
    """None: nothing is known about this version"""

    @property
    def named(self) -> str:
        """The client reference."""
        return str(ClientReference(self.client, self.path, self.version))


def evaluate_clients(
    candidate: ClientAtVersion, accesses: Iterable[Access], table: TableRequirements
) -> Iterator[ClientVerdict]:
    """Yield a verdict for each access and path.

    A client without a path stands for all of its paths that offer the access.
    """
    # Callers that only compare versions, such as "requires at least", need no remedies.
    from deltaproto.clients.remedies import find_remedies

    candidate = _documented_for_catalog(candidate, table)
    for access in accesses:
        for path, judgement in path_verdicts(candidate, access, table):
            if candidate.range is None or path is None:
                named = candidate.reference.path
                yield _build_verdict(candidate, named, access, judgement, (), None)
                continue
            found = find_remedies(candidate, path, table, access, judgement)
            confidence = candidate.range.confidence
            yield _build_verdict(candidate, path.name, access, judgement, found, confidence)


def path_verdicts(
    candidate: ClientAtVersion, access: Access, table: TableRequirements
) -> Iterator[tuple[Path | None, PathVerdict]]:
    """Yield the verdict for each path, without remedies; None for an unknown version."""
    candidate = _documented_for_catalog(candidate, table)
    if candidate.range is None:
        yield None, PathVerdict(Verdict.UNKNOWN, (), candidate.unknown)
        return
    for path in _offering(candidate.paths, access):
        yield path, judge_access(candidate.range, path, table, access)


def _documented_for_catalog(
    candidate: ClientAtVersion, table: TableRequirements
) -> ClientAtVersion:
    """Return the documented facts for a table that is accessible only by name.

    Measurements are made by path, which such tables refuse.
    """
    measured, documented = candidate.range, candidate.documented
    if measured is None or documented is None or not table.by_name:
        return candidate
    if not documented.catalog_only & table.protocol.supported:
        return candidate
    known_bad = {path.name: path.known_bad for path in measured.paths}
    paths = {
        path.name: path._replace(known_bad=(*path.known_bad, *known_bad.get(path.name, ())))
        for path in documented.paths
    }
    matching = tuple(paths.get(path.name, path) for path in candidate.paths)
    return candidate._replace(range=documented, paths=matching, documented=None)


def _offering(paths: tuple[Path, ...], access: Access) -> tuple[Path, ...]:
    return tuple(path for path in paths if path.offers(access)) or paths[:1]


def _build_verdict(
    candidate: ClientAtVersion,
    path: str | None,
    access: Access,
    judgement: PathVerdict,
    found: "tuple[Remedy, ...]",
    confidence: Confidence | None,
) -> ClientVerdict:
    return ClientVerdict(
        client=candidate.client.id,
        version=candidate.reference.version,
        path=path,
        access=access,
        verdict=judgement.verdict,
        because=judgement.because,
        reason=judgement.reason,
        remedies=found,
        confidence=confidence,
    )
