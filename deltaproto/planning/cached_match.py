"""Cached client evaluations: the plans of a fleet evaluate the same clients repeatedly."""

from __future__ import annotations

from functools import lru_cache

from deltaproto.clients.model import Access
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import Candidate
from deltaproto.clients.verdict import PathVerdict
from deltaproto.clients.verdicts import judgements

_REMEMBERED = 1 << 16


def judged(
    candidate: Candidate, access: Access, table: TableRequirements
) -> tuple[tuple[str | None, PathVerdict], ...]:
    """Evaluate each path of the client; the keys are path names."""
    return _judged(_Same(candidate), access, table)


class _Same:
    """Cache key compared by identity; comparing the contents would be too slow."""

    __slots__ = ("candidate",)

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.candidate is self.candidate

    def __hash__(self) -> int:
        return id(self.candidate)


@lru_cache(maxsize=_REMEMBERED)
def _judged(
    same: _Same, access: Access, table: TableRequirements
) -> tuple[tuple[str | None, PathVerdict], ...]:
    return tuple(
        (None if path is None else path.name, judgement)
        for path, judgement in judgements(same.candidate, access, table)
    )
