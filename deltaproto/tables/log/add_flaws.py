"""What `add` actions lack of that which PROTOCOL.md, "Add File and Remove File", requires.

Clients differ: some refuse the table, some take a missing size for 0 and return no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.parquet.footer import LeafStatistics

FLAWS = (
    Trace.UNSIZED_FILES,
    Trace.IMPOSSIBLE_SIZES,
    Trace.NO_PARTITION_VALUES,
    Trace.INCOMPLETE_ADDS,
    Trace.UNREADABLE_STATISTICS,
    Trace.MISTYPED_ADDS,
)
_EXPECTED = (
    re.compile(rb'"path":"'),
    re.compile(rb'"size":[1-9]\d{0,17}[,}]'),
    re.compile(rb'"modificationTime":-?\d+[,}]'),
    re.compile(rb'"dataChange":(?:true|false)'),
    re.compile(rb'"partitionValues":\{'),
    re.compile(rb'"stats":"\{.*\}"|^(?!.*"stats":)'),
)


def flaws_of_add(add: Mapping[str, Any]) -> Iterator[Trace]:
    """Yield what an `add` action lacks, or has in another form."""
    size, values, statistics = add.get("size"), add.get("partitionValues"), add.get("stats")
    time, change = add.get("modificationTime"), add.get("dataChange")
    if size is None:
        yield Trace.UNSIZED_FILES
    elif _is_long(size) and size <= 0:
        yield Trace.IMPOSSIBLE_SIZES
    if values is None:
        yield Trace.NO_PARTITION_VALUES
    if time is None or change is None:
        yield Trace.INCOMPLETE_ADDS
    if isinstance(statistics, str) and not _is_object(statistics):
        yield Trace.UNREADABLE_STATISTICS
    if not (
        isinstance(add.get("path"), str)
        and (size is None or _is_long(size))
        and (time is None or _is_long(time))
        and isinstance(values, dict | None)
        and isinstance(change, bool | None)
        and isinstance(statistics, str | None)
    ):
        yield Trace.MISTYPED_ADDS


def looks_complete(line: bytes) -> bool:
    """Return True if an `add` action's line has everything in the usual form."""
    return all(pattern.search(line) for pattern in _EXPECTED)


def flaws_in_statistics(leaves: Mapping[str, LeafStatistics]) -> Iterator[Trace]:
    """Yield what the `add` actions of a checkpoint lack, as far as its statistics show it.

    Args:
        leaves: the statistics of the column `add`, by member.
    """
    files = leaves["path"].filled if "path" in leaves else 0
    if not files:
        return
    size = leaves.get("size")
    if _is_lower(size, files):
        yield Trace.UNSIZED_FILES
    elif size is not None and any(
        len(least) == 8 and int.from_bytes(least, "little", signed=True) <= 0
        for least in size.least
    ):
        yield Trace.IMPOSSIBLE_SIZES
    if any(_is_lower(leaves.get(name), files) for name in ("modificationTime", "dataChange")):
        yield Trace.INCOMPLETE_ADDS


def _is_lower(leaf: LeafStatistics | None, files: int) -> bool:
    """Return True if fewer rows than `files` certainly have the leaf."""
    return leaf is None or (leaf.filled is not None and leaf.filled < files)


def _is_long(value: object) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def _is_object(text: str) -> bool:
    """Return True if `text` begins and ends like a JSON object; parsing all would take too long."""
    stripped = text.strip()
    return stripped.startswith("{") and stripped.endswith("}")
