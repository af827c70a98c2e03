"""When something happened: how often, from when to when, and in which rhythm."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

_HOUR = 3_600_000
_DAY_HOURS = 24
_PAUSE_HOURS = 3 * _DAY_HOURS
"""hours without an event after which another use begins"""
_RARE_HOURS = 25 * _DAY_HOURS
"""uses at this interval or longer are rare: that of a monthly job"""


class Rhythm(NamedTuple):
    """The rhythm of events that are weeks apart."""

    days: int
    """the usual interval"""
    uses: int
    next: int
    """when the next event is expected, in milliseconds since the epoch"""


class Times:
    """A number of events, their first and last time, and the hours in which they happened."""

    __slots__ = ("_hours", "count", "first", "last")

    def __init__(self) -> None:
        self.count = 0
        self.first: int | None = None
        """milliseconds since the epoch"""
        self.last: int | None = None
        self._hours: set[int] = set()

    def add(self, time: int | None) -> None:
        """Count an event; `time` is in milliseconds since the epoch, None if unknown."""
        self.count += 1
        if time is None:
            return
        if self.first is None or time < self.first:
            self.first = time
        if self.last is None or time > self.last:
            self.last = time
        self._hours.add(time // _HOUR)

    @classmethod
    def of(cls, count: int, first: int | None, last: int | None, hours: Iterable[int]) -> Times:
        """Return what was stored; `hours` are hours since the epoch."""
        times = cls()
        times.count, times.first, times.last = count, first, last
        times._hours.update(hours)
        return times

    @property
    def hours(self) -> list[int]:
        """The hours with an event, since the epoch, in order."""
        return sorted(self._hours)

    @property
    def rhythm(self) -> Rhythm | None:
        """The rhythm of the events, if their usual interval is weeks; otherwise None."""
        runs: list[list[int]] = []
        for hour in self.hours:
            if runs and hour - runs[-1][-1] <= _PAUSE_HOURS:
                runs[-1].append(hour)
            else:
                runs.append([hour])
        starts = [run[0] for run in runs]
        intervals = sorted(b - a for a, b in pairwise(starts))
        if not intervals:
            return None
        usual = intervals[len(intervals) // 2]
        longest = max(run[-1] - run[0] for run in runs)
        if usual < _RARE_HOURS or longest > usual // 4:
            return None
        return Rhythm(usual // _DAY_HOURS, len(runs), (starts[-1] + usual) * _HOUR)

    @property
    def active_days(self) -> int:
        """The number of days (UTC) with an event."""
        return len({hour // _DAY_HOURS for hour in self._hours})

    @property
    def longest_gap_hours(self) -> int | None:
        """The longest time between two events, to the hour; None for events of one hour."""
        return max((b - a for a, b in pairwise(self.hours)), default=None)

    def include(self, other: Times) -> None:
        """Add events that were counted separately."""
        if not other.count:
            return
        self.count += other.count
        self.first = min((t for t in (self.first, other.first) if t is not None), default=None)
        self.last = max((t for t in (self.last, other.last) if t is not None), default=None)
        self._hours |= other._hours

    def merged(self, other: Times) -> Times:
        """Return the sum of both."""
        both = Times()
        both.include(self)
        both.include(other)
        return both
