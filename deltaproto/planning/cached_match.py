"""Cached client evaluations: the plans of a fleet evaluate the same clients repeatedly."""

from __future__ import annotations

from functools import lru_cache

from deltaproto.clients.model import Access, PathVerdict
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import ClientAtVersion
from deltaproto.clients.verdicts import path_verdicts

_CACHE_SIZE = 1 << 16


def cached_verdicts(
    candidate: ClientAtVersion, access: Access, table: TableRequirements
) -> tuple[tuple[str | None, PathVerdict], ...]:
    """Evaluate each path of the client; the keys are path names."""
    return _compute_verdicts(_IdentityKey(candidate), access, table)


class _IdentityKey:
    """Cache key compared by identity; comparing the contents would be too slow."""

    __slots__ = ("candidate",)

    def __init__(self, candidate: ClientAtVersion) -> None:
        self.candidate = candidate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdentityKey) and other.candidate is self.candidate

    def __hash__(self) -> int:
        return id(self.candidate)


@lru_cache(maxsize=_CACHE_SIZE)
def _compute_verdicts(
    same: _IdentityKey, access: Access, table: TableRequirements
) -> tuple[tuple[str | None, PathVerdict], ...]:
    return tuple(
        (None if path is None else path.name, judgement)
        for path, judgement in path_verdicts(same.candidate, access, table)
    )
