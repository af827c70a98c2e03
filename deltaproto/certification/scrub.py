"""Error messages for storage: in one line, and the same in each run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from deltaproto.counts import shorten

_LONGEST = 240
_SCRUBBED = (
    (re.compile(r"file:/+\S*?/([\w.-]+/)?_delta_log"), "…/_delta_log"),
    (re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}"), "…"),
    (re.compile(r"An error occurred while calling \S+\.\s*:?\s*"), ""),
    (re.compile(r"query_id=\S+|#\d+L?\b"), "…"),
    (re.compile(r"\s+at \S+\([^)]*\)"), ""),
    (re.compile(r"\bt\d+\b"), "t"),
    (re.compile(r"0x[0-9a-f]{6,}|@[0-9a-f]{5,8}\b"), "…"),
    (re.compile(r"\b1[67]\d{11}\b|\b20\d\d-\d\d-\d\d[T ][\d:.]+\S*"), "…"),
)


def scrub_error(text: str, folders: Iterable[Path]) -> str:
    """Return an error's text in one line, without parts that differ between runs."""
    for folder in folders:
        text = text.replace(str(folder), "…")
    for pattern, instead in _SCRUBBED:
        text = pattern.sub(instead, text)
    return shorten(" ".join(text.split()), _LONGEST)
