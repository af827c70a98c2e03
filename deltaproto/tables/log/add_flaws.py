"""Flaws of `add` and `remove` actions: missing or malformed members.

Source: PROTOCOL.md, "Add File and Remove File", "Deletion Vectors".

Clients differ: some refuse the table; others treat a missing size as 0 and return no rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.file_statistics import are_readable

if TYPE_CHECKING:
    from deltaproto.tables.log.parquet.footer import LeafStatistics

FLAWS = (
    Trace.UNSIZED_FILES,
    Trace.IMPOSSIBLE_SIZES,
    Trace.NO_PARTITION_VALUES,
    Trace.INCOMPLETE_ADDS,
    Trace.UNREADABLE_STATISTICS,
    Trace.MISTYPED_STATISTICS,
    Trace.LACKING_COLUMNS,
    Trace.MISTYPED_ADDS,
    Trace.INCOMPLETE_REMOVES,
    Trace.MISTYPED_INFO,
    Trace.MALFORMED_VECTORS,
    Trace.UNENCODED_PATHS,
)
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_OF_VECTOR = tuple(
    f"deletionVector.{name}"
    for name in ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")
)
_LONGS = ("version", "inCommitTimestamp", "readVersion")
_OBJECTS = ("operationParameters", "operationMetrics", "tags", "job", "notebook")
_NO_URI = re.compile(r'[\x00-\x20"#<>?\[\\\]^`{|}\x7f]|%(?![0-9A-Fa-f]{2})')
"""what a path in a URI contains only as an escape (RFC 2396; Java also accepts other characters)"""


def flaws_of_add(add: Mapping[str, Any]) -> Iterator[Trace]:
    """Yield the flaws of an `add` action: missing, malformed or mistyped members."""
    path = add.get("path")
    size, values, statistics = add.get("size"), add.get("partitionValues"), add.get("stats")
    time, change = add.get("modificationTime"), add.get("dataChange")
    row_id, row_version = add.get("baseRowId"), add.get("defaultRowCommitVersion")
    if size is None:
        yield Trace.UNSIZED_FILES
    elif _is_long(size) and size <= 0:
        yield Trace.IMPOSSIBLE_SIZES
    if values is None:
        yield Trace.NO_PARTITION_VALUES
    if time is None or change is None:
        yield Trace.INCOMPLETE_ADDS
    if isinstance(statistics, str) and not are_readable(statistics):
        yield Trace.UNREADABLE_STATISTICS
    if isinstance(path, str) and _NO_URI.search(path):
        yield Trace.UNENCODED_PATHS
    if (vector := add.get("deletionVector")) is not None and _is_malformed(vector):
        yield Trace.MALFORMED_VECTORS
    if not (
        isinstance(path, str)
        and (size is None or _is_long(size))
        and (time is None or _is_long(time))
        and isinstance(values, dict | None)
        and isinstance(change, bool | None)
        and isinstance(statistics, str | None)
        and (row_id is None or _is_long(row_id))
        and (row_version is None or _is_long(row_version))
    ):
        yield Trace.MISTYPED_ADDS


def flaws_of_remove(remove: Mapping[str, Any]) -> Iterator[Trace]:
    """Yield the flaws of a `remove` action."""
    if not isinstance(remove.get("dataChange"), bool):
        yield Trace.INCOMPLETE_REMOVES


def flaws_of_info(info: Mapping[str, Any]) -> Iterator[Trace]:
    """Yield the flaw of a `commitInfo` action that Delta Spark cannot parse.

    The specification allows any members. Source: `CommitInfo` in Delta Spark's actions.scala, whose
    members of type String also accept other values.
    """
    timestamp = info.get("timestamp")
    if not (
        all(info.get(name) is None or _is_long(info[name]) for name in _LONGS)
        and all(isinstance(info.get(name), dict | None) for name in _OBJECTS)
        and isinstance(info.get("isBlindAppend"), bool | None)
        and (timestamp is None or isinstance(timestamp, str) or _is_long(timestamp))
    ):
        yield Trace.MISTYPED_INFO


def _is_malformed(vector: object) -> bool:
    if not isinstance(vector, Mapping):
        return True
    kind, text, offset = (vector.get(n) for n in ("storageType", "pathOrInlineDv", "offset"))
    size, rows = vector.get("sizeInBytes"), vector.get("cardinality")
    return not (
        isinstance(text, str)
        and _has_form(kind, text)
        and (type(size) is int and 0 < size < 1 << 31)
        and (type(rows) is int and 0 <= rows < 1 << 63)
        and (offset is None or (type(offset) is int and 0 <= offset < 1 << 31))
    )


def _has_form(kind: object, text: str) -> bool:
    # Delta Spark and Delta Kernel need a URI, not a path.
    return kind in ("u", "i") or (kind == "p" and re.match(_SCHEME, text) is not None)


def decode_usual_add(
    line: bytes,
) -> tuple[str, Mapping[str, str | None], str | None, bool, bool] | None:
    """Return path, partition values and statistics of an `add` action, and whether it has a base
    row id and a deletion vector.

    None if the action may have flaws, or if the line has other actions. Decoding a line with a
    known form is several times faster.
    """
    try:
        add = _usual_decoder()(line).add
    except (ValueError, RecursionError):
        return None
    if _NO_URI.search(add.path) or (add.stats is not None and not are_readable(add.stats)):
        return None
    row_ids, vector = add.baseRowId is not None, add.deletionVector
    if vector is not None and not _has_form(vector.storageType, vector.pathOrInlineDv):
        return None
    return add.path, add.partitionValues, add.stats, row_ids, vector is not None


@cache
def _usual_decoder() -> Callable[[bytes], Any]:
    from typing import Annotated

    import msgspec

    long = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
    vector = msgspec.defstruct(
        "Vector",
        [
            ("storageType", str),
            ("pathOrInlineDv", str),
            ("sizeInBytes", Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]),
            ("cardinality", Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]),
            ("offset", Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)] | None, None),
        ],
    )
    add = msgspec.defstruct(
        "Add",
        [
            ("path", str),
            ("size", Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]),
            ("modificationTime", long),
            ("dataChange", bool),
            ("partitionValues", dict[str, str | None]),
            ("stats", str | None, None),
            ("baseRowId", long | None, None),
            ("defaultRowCommitVersion", long | None, None),
            ("deletionVector", vector | None, None),
        ],
    )
    line = msgspec.defstruct("Line", [("add", add)], forbid_unknown_fields=True)
    return msgspec.json.Decoder(line).decode


def flaws_in_statistics(leaves: Mapping[str, LeafStatistics]) -> Iterator[Trace]:
    """Yield the members that a checkpoint's `add` actions lack, as far as its statistics show.

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
    vectors = {leaves[name].filled for name in _OF_VECTOR if name in leaves}
    if len(vectors) > 1 and None not in vectors:
        yield Trace.MALFORMED_VECTORS


def _is_lower(leaf: LeafStatistics | None, files: int) -> bool:
    """Return True if the leaf certainly has a value in fewer rows than `files`."""
    return leaf is None or (leaf.filled is not None and leaf.filled < files)


def _is_long(value: object) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63
