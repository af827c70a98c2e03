"""The age of saved inspections and scans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from deltaproto.counts import counted

DEFAULT_MAX_AGE_DAYS = 7
"""age in days from which saved data is reported as old"""
_CLOCK_TOLERANCE = timedelta(hours=1)
"""maximum clock difference between two machines"""


# All tables of a file have the same time.
@lru_cache(maxsize=64)
def format_time(made: datetime | None) -> str:
    """Format a time in UTC to the minute; None is an unknown time."""
    return "unknown time" if made is None else f"{made.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def format_age(age: timedelta) -> str:
    """Format an age."""
    if age < timedelta(0):
        return "in the future"
    if age.days:
        return f"{counted(age.days, 'day')} old"
    hours = age // timedelta(hours=1)
    return f"{counted(hours, 'hour')} old" if hours else "less than an hour old"


def age_warning(made: datetime, now: datetime, max_age: int) -> str | None:
    """Describe the problem with the time of something saved; None if it is recent.

    Args:
        max_age: age in days from which it counts as old.
    """
    age = now - made
    if age < -_CLOCK_TOLERANCE:
        return f"is dated in the future ({format_time(made)})"
    return f"is {format_age(age)}" if age >= timedelta(days=max_age) else None


class SavedAges:
    """The ages of the parts of a saved inspection while they are read.

    Args:
        path: the file's name for notices.
        max_age: age in days from which a part counts as old.
    """

    def __init__(self, path: str, now: datetime, max_age: int = DEFAULT_MAX_AGE_DAYS) -> None:
        self._path, self._now, self._max_age = path, now, max_age
        self._read: Any = self
        self._new_notices: list[str] = []
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
        self.made = _parse_time(generated_at)
        if self.made is None:
            self.notice = f"{self._path}: the age of this saved inspection is unknown"
        elif warning := age_warning(self.made, self._now, self._max_age):
            self.notice = f"{self._path}: this inspection {warning}; inspect the tables again"
        else:
            self.notice = None
        if self.notice and self.notice not in self._known:
            self._known.add(self.notice)
            self._new_notices.append(self.notice)

    def new(self) -> list[str]:
        """Return the notices since the last call, each once."""
        notices, self._new_notices = self._new_notices, []
        return notices


def _parse_time(text: Any) -> datetime | None:
    try:
        made = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return made if made.tzinfo else None
