"""The age of saved inspections and scans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

MAX_AGE = 7
"""age in days from which saved data is reported as old"""
_CLOCKS = timedelta(hours=1)
"""maximum clock difference between two machines"""


def at(made: datetime | None) -> str:
    """Format a time in UTC to the minute; None is an unknown time."""
    return "unknown time" if made is None else f"{made.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def in_words(age: timedelta) -> str:
    """Format an age."""
    if age < timedelta(0):
        return "in the future"
    if age.days:
        return f"{age.days:,} day{'s' * (age.days != 1)} old"
    hours = age // timedelta(hours=1)
    return f"{hours} hour{'s' * (hours != 1)} old" if hours else "less than an hour old"


def remark(made: datetime, now: datetime, max_age: int) -> str | None:
    """Describe the problem with the time of something saved; None if it is recent.

    Args:
        max_age: age in days from which it counts as old.
    """
    age = now - made
    if age < -_CLOCKS:
        return f"is dated in the future ({at(made)})"
    return f"is {in_words(age)}" if age >= timedelta(days=max_age) else None


class Ages:
    """The ages of the parts of a saved inspection while they are read.

    Args:
        path: the file's name for notices.
        max_age: age in days from which a part counts as old.
    """

    def __init__(self, path: str, now: datetime, max_age: int = MAX_AGE) -> None:
        self._path, self._now, self._max_age = path, now, max_age
        self._read: Any = self
        self._told: list[str] = []
        self._known: set[str] = set()
        self.made: datetime | None = None
        """time of the part that was read last; None: unknown"""
        self.notice: str | None = None
        """notice about the age of that part; None if it is recent"""

    def read(self, generated_at: Any) -> None:
        """Set the time of the current part."""
        if generated_at == self._read:
            return
        self._read = generated_at
        self.made = _time(generated_at)
        if self.made is None:
            self.notice = f"{self._path}: the age of this saved inspection is unknown"
        elif said := remark(self.made, self._now, self._max_age):
            self.notice = f"{self._path}: this inspection {said}; inspect the tables again"
        else:
            self.notice = None
        if self.notice and self.notice not in self._known:
            self._known.add(self.notice)
            self._told.append(self.notice)

    def new(self) -> list[str]:
        """Return the notices since the last call, each once."""
        told, self._told = self._told, []
        return told


def _time(text: Any) -> datetime | None:
    try:
        made = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return made if made.tzinfo else None
