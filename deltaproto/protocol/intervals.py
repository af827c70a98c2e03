"""Calendar intervals in table properties (`interval 1 day 12 hours`).

Source: Spark's `IntervalUtils.safeStringToInterval` and Delta's `DeltaConfigs.getMicroSeconds`;
measured with Delta Spark 4.4.0.
"""

import re
from typing import NamedTuple

_DAY = 86_400_000_000
_HOUR = 3_600_000_000
_INT, _LONG = 2**31, 2**63
_MONTHS = {"year": 12, "month": 1}
_DAYS = {"week": 7, "day": 1}
_MICROSECONDS = {
    "hour": _HOUR,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
_UNIT = "|".join((*_MONTHS, *_DAYS, *_MICROSECONDS))
# Only seconds can have a fraction.
# Compiled when first used, which most commands do not need.
_PART = (
    rf"([+-]?)\s*(?:([0-9]{{1,19}})|([0-9]{{0,19}})\.([0-9]{{0,9}})(?=\s+second))\s+({_UNIT})s?\b"
)
_INTERVAL = rf"(?:interval\s+)?({_PART}(?:\s+{_PART})*)"


MOST_HOURS = _LONG / _HOUR
"""upper limit of an interval's length in Delta"""


class Interval(NamedTuple):
    """A calendar interval as Spark parses it."""

    months: int
    days: int
    microseconds: int

    @property
    def hours(self) -> float:
        """Length in hours without months, as Delta computes it: too many days overflow."""
        total = self.days * _DAY + self.microseconds
        return ((total + _LONG) % (2 * _LONG) - _LONG) / _HOUR


def parse_interval(text: str) -> Interval | None:
    """Parse `interval 1 day 12 hours`; the first word is optional. None if invalid."""
    found = re.fullmatch(_INTERVAL, text.strip().lower())
    if found is None:
        return None
    months = days = microseconds = 0
    for sign, whole, before, after, unit in re.findall(_PART, found[1]):
        if not (whole or before or after):
            return None
        factor = -1 if sign == "-" else 1
        amount = factor * int(whole or before or 0)
        months += amount * _MONTHS.get(unit, 0)
        days += amount * _DAYS.get(unit, 0)
        microseconds += amount * _MICROSECONDS.get(unit, 0)
        microseconds += factor * int(after.ljust(6, "0")[:6])
    fits = -_INT <= months < _INT and -_INT <= days < _INT and -_LONG <= microseconds < _LONG
    return Interval(months, days, microseconds) if fits else None
