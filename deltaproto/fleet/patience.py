"""Asking again where the next answer may be another."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.storage.deadline import Deadline

_TRIES = 6
_PAUSE_SECONDS = 0.1
# Stores that throttle or cut off an answer, and logs that were cleaned up while they were read.
_PASSING = (ErrorCode.STORAGE, ErrorCode.TIMEOUT, ErrorCode.CORRUPT_LOG)
_TOLD_TWICE = ErrorCode.CORRUPT_LOG
"""is damage when it is told again"""
T = TypeVar("T")


def patiently(ask: Callable[[int], T], deadline: Deadline) -> T:
    """The answer of `ask`, which gets the number of the try, from 0.

    Raises:
        TableError: of the last try.
    """
    told: set[str] = set()
    for tried in range(_TRIES):
        try:
            return ask(tried)
        except TableError as error:
            over = tried == _TRIES - 1 or deadline.left <= 0
            if error.code not in _PASSING or over or error.message in told:
                raise
            if error.code is _TOLD_TWICE:
                told.add(error.message)
        # Those that failed together must not come back together.
        time.sleep(_PAUSE_SECONDS * 2**tried * random.uniform(0.5, 1.5))  # noqa: S311
    raise AssertionError
