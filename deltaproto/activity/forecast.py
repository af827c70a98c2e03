"""How many commits a change that takes some minutes would meet. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_MINUTE = 60_000


class Forecast(NamedTuple):
    """If the future is like the commits looked at: what a change of `minutes` would meet."""

    minutes: float
    expected: float
    """mean number of commits in a window of that length"""
    most: int
    """the most that any such window held"""
    free: float
    """share of windows without any commit, from 0 to 1"""


def forecast(times: Sequence[int], minutes: float) -> Forecast | None:
    """The forecast from commit times in milliseconds, oldest first.

    Windows of `minutes` lie anywhere between the first and the last commit. None when the times
    cover no such window: two commits that are further apart than `minutes` are the least.
    """
    width = int(minutes * _MINUTE)
    if width <= 0 or len(times) < 2 or times[-1] - times[0] < width:
        return None
    first, last = times[0], times[-1] - width
    # A window [t, t + width) holds commit c exactly while c - width < t <= c.
    covered = sum(max(0, min(time, last) - max(time - width, first)) for time in times)
    room = last - first
    if room == 0:
        return Forecast(minutes, float(len(times) - 1), len(times) - 1, 0.0)
    most = max(bisect_left(times, start + width) - index for index, start in enumerate(times))
    free = sum(max(0, (b - a) - width) for a, b in pairwise(times))
    return Forecast(minutes, covered / room, most, min(1.0, free / room))
