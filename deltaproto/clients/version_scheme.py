"""Version schemes of clients, and version order.

`dotted` is 1.6.3 or 4.0.0rc1, `number` is Trino's 476 or Athena's engine v3, `runtime` is a
Databricks Runtime (16.4 LTS, 19 or, with an update date, 19+2026-07-23), `date` is a service's
release date, `none` is a service without versions.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from deltaproto.protocol.databricks_runtime import parse_runtime

SCHEMES = ("dotted", "number", "runtime", "date", "none")
VERSION_EXAMPLES = {
    "dotted": "1.6.3",
    "number": "476",
    "runtime": "14.3 LTS",
    "date": "2026-03-02",
}
# Compiled when first used: a command needs few of them.
_DOTTED = (
    r"(?i)v?(\d{1,6}(?:\.\d{1,6}){0,4})"
    r"(?:[.\-_]?(a|b|c|rc|alpha|beta|pre|preview|dev|snapshot|post)[.\-_]?\d*)?"
)
_NUMBER = r"(?i)(?:engine\s*)?(?:version\s*)?v?(\d{1,6})"
_DATE = r"(\d{4})[-.](\d{1,2})[-.](\d{1,2})"


class Version(NamedTuple):
    """A version that is comparable within its scheme."""

    numbers: tuple[int, ...]
    """without trailing zeros"""
    released: bool
    """False sorts a pre-release before its release"""


# Evaluating a table parses the bounds of the same few ranges repeatedly.
@lru_cache(maxsize=1024)
def parse_version(scheme: str, text: str) -> Version | None:
    """Parse `text` as a version of the scheme; None if invalid."""
    text = text.strip()
    match scheme:
        case "dotted":
            found = re.fullmatch(_DOTTED, text, re.ASCII)
            if found is None:
                return None
            numbers = tuple(int(part) for part in found[1].split("."))
            return _version(numbers, (found[2] or "post").lower() == "post")
        case "number":
            found = re.fullmatch(_NUMBER, text, re.ASCII)
            return None if found is None else _version((int(found[1]),))
        case "runtime":
            named = parse_runtime(text)
            if named is None:
                return None
            # Without a date, a version with updates refers to its first update.
            update = named.update.timetuple()[:3] if named.update is not None else ()
            return _version((*named.runtime, *update), named.released)
        case "date":
            found = re.fullmatch(_DATE, text, re.ASCII)
            return None if found is None else _parse_day(*(int(part) for part in found.groups()))
    return None


def _parse_day(year: int, month: int, day: int) -> Version | None:
    import datetime

    try:
        datetime.date(year, month, day)
    except ValueError:
        return None
    return _version((year, month, day))


def _version(numbers: tuple[int, ...], released: bool = True) -> Version:
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    return Version(numbers, released)
