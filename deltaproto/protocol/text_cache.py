"""A cache for functions of texts or bytes, which a hostile log cannot fill with long ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, update_wrapper
from typing import TypeVar

Result = TypeVar("Result")

_SHORT, _LONG = 1 << 15, 1 << 20
"""characters of the arguments of a call"""
_LONG_CALLS = 4


def cache_by_text(maxsize: int) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Keep the results of the last `maxsize` calls with texts, bytes, tuples of these and None.

    The cache also keeps the arguments. Of calls with more than 32,768 characters, it keeps only the
    last four, for values that are computed repeatedly for one table. It keeps no calls with more
    than a million characters.
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
