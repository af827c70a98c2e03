"""Results for objects that many tables share, such as the verdicts of equal requirements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_CACHE_SIZE = 4096
_Key = TypeVar("_Key")
_Result = TypeVar("_Result")


class IdentityCache(Generic[_Key, _Result]):
    """Compute a result once for each object. Equal objects that are not the same get their own.

    Hashing the verdicts on all clients takes longer than most of what is computed from them.
    """

    def __init__(self, compute: Callable[[_Key], _Result]) -> None:
        self._compute = compute
        self._known: dict[int, tuple[_Key, _Result]] = {}

    def get(self, key: _Key) -> _Result:
        """Return the result for this object."""
        # The object is kept, so that no other can get its id. Another thread may clear the cache.
        found = self._known.get(id(key))
        if found is None:
            if len(self._known) >= _CACHE_SIZE:
                self._known.clear()
            found = self._known[id(key)] = key, self._compute(key)
        return found[1]
