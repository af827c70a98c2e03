"""A cache of functions of texts that a hostile log cannot fill with long ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, update_wrapper
from typing import TypeVar

Result = TypeVar("Result")

_LONGEST = 1 << 15
"""characters of the arguments of a call whose result is kept"""


def cache_if_short(maxsize: int) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Keep the results of the last `maxsize` calls with texts, tuples of texts and None.

    A call with long arguments is not kept, since the cache would keep them as well.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        cached = lru_cache(maxsize)(function)

        def call(*arguments: Hashable) -> Result:
            return (cached if _size(arguments) <= _LONGEST else function)(*arguments)

        return update_wrapper(call, function)

    return decorate


def _size(arguments: tuple[Hashable, ...]) -> int:
    size = 0
    for each in arguments:
        if isinstance(each, str):
            size += len(each)
        elif isinstance(each, tuple) and each:
            size += _size(each)
    return size
