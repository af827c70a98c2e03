"""Caches: of results by texts or by identity, and dictionaries that do not grow without limit."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, update_wrapper, wraps
from typing import Any, Generic, ParamSpec, TypeVar

Result = TypeVar("Result")
_P = ParamSpec("_P")
_K = TypeVar("_K")
_T = TypeVar("_T")

_SHORT, _LONG = 1 << 15, 1 << 20
"""characters of the arguments of a call"""
_LONG_CALLS = 4


class BoundedCache(dict[_K, _T]):
    """A dictionary that is emptied when it is full. In another process, it begins empty."""

    def __init__(self, maxsize: int) -> None:
        super().__init__()
        self._maxsize = maxsize

    def __setitem__(self, key: _K, value: _T) -> None:
        if len(self) >= self._maxsize:
            self.clear()
        super().__setitem__(key, value)

    def __reduce__(self) -> tuple[type[BoundedCache[_K, _T]], tuple[int]]:
        return type(self), (self._maxsize,)


class IdentityKey(Generic[_T]):
    """A cache key compared by identity: for values that are large or cannot be hashed."""

    __slots__ = ("value",)

    def __init__(self, value: _T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def cache_by_identity(maxsize: int) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Return a decorator that caches results by the identities of the positional arguments.

    A full cache is emptied.
    """

    def decorate(function: Callable[..., _T]) -> Callable[..., _T]:
        # Each entry keeps its arguments: while it exists, no other object has the same id.
        kept = BoundedCache[tuple[int, ...], tuple[tuple[Any, ...], _T]](maxsize)

        @wraps(function)
        def call(*values: Any) -> _T:
            key = tuple(map(id, values))
            found = kept.get(key)
            if found is None:
                found = kept[key] = values, function(*values)
            return found[1]

        return call

    return decorate


def cache_by_text(maxsize: int) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Keep the results of the last `maxsize` calls with texts, bytes, tuples of these and None.

    The cache also keeps the arguments. Of calls with more than 32,768 characters, it keeps only the
    last four, for values that are computed repeatedly for one table. It keeps no calls with more
    than a million characters, so a hostile log cannot fill it.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        short, long = lru_cache(maxsize)(function), lru_cache(_LONG_CALLS)(function)

        def call(*arguments: Hashable) -> Result:
            size = _size(arguments)
            return (short if size <= _SHORT else long if size <= _LONG else function)(*arguments)

        return update_wrapper(call, function)

    return decorate


def _size(arguments: tuple[Hashable, ...]) -> int:
    size = 0
    for each in arguments:
        if isinstance(each, str | bytes):
            size += len(each)
        elif isinstance(each, tuple) and each:
            size += _size(each)
    return size
