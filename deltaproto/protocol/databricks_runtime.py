"""Databricks Runtime versions, as written by users and clusters.

From 18 on, features arrive as dated updates of one version number. A cluster gets them when it
restarts. 18.0 to 18.2 are separate versions; the later 18 LTS and 19 are not. Such a version can
include the date of the update: `19+2026-07-23`.

Source: the release notes of Databricks Runtime 18 and 19, "About unified release notes".
"""

import re
from datetime import date
from typing import NamedTuple

UNIFIED_MINOR = 99
"""placeholder minor number for versions without one; higher than all real ones"""
FIRST_UNIFIED_MAJOR = 18
RELEASE_DATES = {18: date(2026, 6, 10), 19: date(2026, 7, 23)}
"""release dates of unified versions (end of Beta), from the release list and the notes of 19"""


# Compiled when first used, which most commands do not need.
_WRITTEN = (
    r"(?i)(?:dbr|databricks runtime|runtime)?\s*v?(?P<major>\d{1,3})"
    r"(?:\.(?P<minor>\d{1,2}))?(?:\.(?:x|\d+))?(?:\s*lts)?(?:\s*ml)?"
    r"(?P<words>(?:-[a-z0-9.]+)*?)(?:(?:\s*[+,:]\s*|\s+|-)(?P<date>\d{4}-\d{2}-\d{2}))?"
    r"(?:\s*\((?P<remark>.*)\))?"
)
_DATE = r"\d{4}-\d{2}-\d{2}"
_EARLY_WORD = r"-(?:a|b|rc|alpha|beta|pre|preview|dev|snapshot)(?![a-z])"
_EARLY_REMARK = r"(?i)\b(?:alpha|beta|preview|snapshot)\b"


class Runtime(NamedTuple):
    """A Databricks Runtime; ordered as released."""

    major: int
    minor: int
    """`UNIFIED_MINOR` for versions with dated updates, such as 18 LTS and 19"""

    def __str__(self) -> str:
        return str(self.major) if self.minor == UNIFIED_MINOR else f"{self.major}.{self.minor}"


class ParsedRuntime(NamedTuple):
    """A parsed version text: the runtime, and whether it mentions Photon."""

    runtime: Runtime
    photon: bool
    """False if not mentioned, which means unknown"""
    update: date | None = None
    """date of the update of a unified version; None if not given"""
    released: bool = True
    """False for a Beta or preview, and for an update before the release date"""


def parse_runtime(text: str) -> ParsedRuntime | None:
    """Parse `14.3`, `14.3 LTS`, `DBR 14.3`, `18 LTS`, `19+2026-07-23`, or a cluster's
    `14.3.x-photon-scala2.12`; None if `text` is not a Databricks Runtime.
    """
    found = re.fullmatch(_WRITTEN, text.strip(), re.ASCII)
    if found is None:
        return None
    major, minor, words = int(found["major"]), found["minor"], found["words"].lower()
    remark = found["remark"] or ""
    unified = major > FIRST_UNIFIED_MAJOR or minor is None
    if unified and (major < FIRST_UNIFIED_MAJOR or int(minor or 0)):
        return None
    dated = found["date"]
    if dated is None and remark and re.fullmatch(_DATE, remark, re.ASCII):
        dated = remark
    update = None
    if dated is not None:
        try:
            update = date.fromisoformat(dated)
        except ValueError:
            return None
        if not unified:
            return None
    early = update is not None and update < RELEASE_DATES.get(major, update)
    named = (words and re.search(_EARLY_WORD, words)) or (
        remark and re.search(_EARLY_REMARK, remark)
    )
    return ParsedRuntime(
        Runtime(major, UNIFIED_MINOR if unified else int(minor)),
        "-photon" in words,
        update,
        not (early or named),
    )
