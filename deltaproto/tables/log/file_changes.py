"""The data files that the lines of a commit add and remove."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.add_flaws import decode_usual_add, flaws_of_add, flaws_of_remove

ADD = b'{"add":{'
"""start of a line with an `add` action"""
_PATH = re.compile(rb'\{"(\w+)":\{[^{}]*?"path":"([^"]*)"')
_PARTITION_VALUES = re.compile(rb'"partitionValues":(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})')
_DATA_CHANGE = re.compile(rb'"dataChange":\s*(?:true|false)')
_SHORT_LINE = 4000
"""bytes of a line that cannot contain a number too long for the standard decoder"""


class FileChange(NamedTuple):
    """A data file that a commit adds or removes."""

    action: str
    """`add` or `remove`"""
    path: str
    values: Mapping[str, Any] | None
    """its partition values; None: unknown"""
    flaws: tuple[Trace, ...] = ()
    """the flaws of an `add` or `remove` action"""
    statistics: str | None = None
    """readable statistics of the first added files of a commit; None for the others"""
    row_ids: bool = False
    """whether an `add` action has a base row id"""
    vector: bool = False
    """whether an `add` action has a deletion vector"""


def changes_of_action(action: Mapping[str, Any], *, statistics: bool) -> Iterator[FileChange]:
    """Yield the changes of an action; their statistics only if `statistics`."""
    for kind in ("add", "remove"):
        if not isinstance(file := action.get(kind), dict):
            continue
        flaws = tuple(flaws_of_add(file) if kind == "add" else flaws_of_remove(file))
        path, values, stored = file.get("path"), file.get("partitionValues"), file.get("stats")
        if isinstance(path, str):
            usable = statistics and kind == "add" and isinstance(stored, str)
            kept = stored if usable and Trace.UNREADABLE_STATISTICS not in flaws else None
            known = values if isinstance(values, dict) else None
            row_ids = kind == "add" and file.get("baseRowId") is not None
            vector = kind == "add" and file.get("deletionVector") is not None
            yield FileChange(kind, path, known, flaws, kept, row_ids, vector)
        elif flaws:
            yield FileChange(kind, "", None, flaws)


def is_short_add(line: bytes) -> bool:
    """Return True if `usual_change` accepts the line only where `parse_object` accepts it.

    The decoder of `usual_change` skips some members, so it accepts invalid UTF-8 and numbers of any
    length in them.
    """
    fast = "msgspec" in sys.modules
    return fast and line.startswith(ADD) and len(line) <= _SHORT_LINE and line.isascii()


def usual_change(line: bytes, *, statistics: bool) -> FileChange | None:
    """Return the change of a line with only an `add` action without flaws, else None."""
    usual = decode_usual_add(line)
    if usual is None:
        return None
    path, values, stored, row_ids, vector = usual
    return FileChange("add", path, values, (), stored if statistics else None, row_ids, vector)


def changes_in_line(line: bytes) -> Iterator[FileChange]:
    """Yield the change in a line without parsing it all; otherwise like `changes_of_action`."""
    found = _PATH.match(line)
    if found is not None and found[1] in (b"add", b"remove"):
        path = found[2].decode("utf-8", "replace").replace("\\/", "/")
        incomplete = found[1] == b"remove" and not _DATA_CHANGE.search(line)
        flaws = (Trace.INCOMPLETE_REMOVES,) if incomplete else ()
        yield FileChange(found[1].decode(), path, _values_in_line(line), flaws)


def _values_in_line(line: bytes) -> dict[str, Any] | None:
    found = _PARTITION_VALUES.search(line)
    if found is None:
        return None
    try:
        values = json.loads(found[1])
    except ValueError:
        return None
    return values if isinstance(values, dict) else None
