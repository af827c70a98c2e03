"""Statistics of data files, as `add.stats` stores them, and which of them clients cannot parse.

What counts as mistyped is what deltalake 1.6.6 refuses, measured type by type: it accepts numbers
in strings and fractions in whole numbers, and ignores values of dates, timestamps, decimals,
binaries, arrays and maps.

What counts as a missing bound is what lets deltalake 0.15.2 to 1.6.6 lose rows in filters on
pyarrow datasets: statistics that have bounds, but none of a column that is not NULL in every row.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from deltaproto.protocol.column_bounds import ColumnBounds
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.indexed_columns import IndexedColumn, indexed_columns, select_indexed
from deltaproto.protocol.metadata import Metadata, physical_name
from deltaproto.protocol.properties import INDEXED_COLUMNS_PROPERTY

MISREAD_BOUNDS = (
    *(Trace.UNBOUNDED_COLUMNS, Trace.UNBOUNDED_BOOLEANS, Trace.UNBOUNDED_LATER_COLUMNS),
    *(Trace.NAN_BOUNDS, Trace.EXPONENT_BOUNDS),
)
"""what the statistics of a file show that readers of its bounds may misunderstand"""
_EXPONENT = re.compile(r"\d[eE][+-]?\d")
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)


def are_readable(text: str) -> bool:
    """Return True if `text` is a JSON object whose `numRecords`, if it has one, is a number."""
    try:
        # Only the fast decoder refuses half of a surrogate pair, as clients do.
        decode = _fast_decoder() if "msgspec" in sys.modules or "\\u" in text else _decode
        found = decode(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, Mapping) and _fits(found.get("numRecords"), "long")


def compare_statistics(texts: Iterable[str], metadata: Metadata) -> set[Trace]:
    """Return how the statistics of files differ from what the schema lets readers expect.

    Args:
        texts: readable statistics.
    """
    texts = list(texts)
    if not texts:
        return set()
    columns = list(indexed_columns(metadata))
    kinds = _kinds_of(_data_fields(metadata))
    bounds = _BoundsReader(columns)
    mistyped = False
    for text in texts:
        statistics = _decode(text)
        mistyped = mistyped or _is_mistyped(statistics, kinds)
        bounds.add(text, statistics)
    found = bounds.found(complete=False).traces(columns)
    return found | {Trace.MISTYPED_STATISTICS} if mistyped else found


def read_bounds(texts: Iterable[str], metadata: Metadata, *, complete: bool) -> ColumnBounds:
    """Return what the statistics of files show of the bounds of every column, by its name.

    Args:
        texts: readable statistics.
        complete: they are those of every file.
    """
    every = {INDEXED_COLUMNS_PROPERTY: "-1"}
    bounds = _BoundsReader(select_indexed(metadata.schema, every, metadata.partition_columns))
    for text in texts:
        bounds.add(text, _decode(text))
    names = {physical_name(field): field["name"] for field in _data_fields(metadata)}
    return bounds.found(complete=complete).renamed(names)


def _data_fields(metadata: Metadata) -> list[Any]:
    fields = (metadata.schema or {}).get("fields") or ()
    return [field for field in fields if field.get("name") not in metadata.partition_columns]


def _is_mistyped(statistics: Mapping[str, Any], kinds: _Kinds) -> bool:
    """Return True if a bound or a number of nulls does not fit the type of its column."""
    return not (
        _all_fit(statistics.get("minValues"), kinds)
        and _all_fit(statistics.get("maxValues"), kinds)
        and _all_fit(statistics.get("nullCount"), kinds, counts=True)
    )


class _BoundsReader:
    """Collects what the statistics of files show of the bounds of some columns."""

    def __init__(self, columns: Iterable[IndexedColumn]) -> None:
        columns = list(columns)
        self._columns = frozenset(column.name for column in columns)
        self._floats = [c.name for c in columns if c.type in ("float", "double")]
        self._decimals = [c.name for c in columns if c.type.startswith("decimal")]
        self._missing: set[str] = set()
        self._valued: set[str] = set()
        self._nan: set[str] = set()
        self._exponents: set[str] = set()
        self._partial = False
        self._uncounted = False

    def add(self, text: str, statistics: Mapping[str, Any]) -> None:
        """Add the statistics of a file, which `text` has as JSON."""
        missing: set[str] = set()
        for member in ("minValues", "maxValues"):
            bounds = statistics.get(member)
            if not isinstance(bounds, Mapping):
                self._uncounted = True
                continue
            self._partial = True
            absent = self._columns - bounds.keys()
            if None in bounds.values():
                absent |= {name for name in self._columns if bounds.get(name) is None}
            self._valued |= self._columns - absent
            missing |= absent
            self._nan.update(name for name in self._floats if bounds.get(name) == "NaN")
        nulls = statistics.get("nullCount")
        counted = nulls if isinstance(nulls, Mapping) else {}
        for name in missing:
            number = counted.get(name)
            # Readers conclude that the column is NULL, which is true here.
            if number is not None and number == statistics.get("numRecords"):
                continue
            # Of a struct, they conclude only whether it is NULL itself.
            if isinstance(number, Mapping) and 0 in number.values():
                continue
            self._missing.add(name)
            if isinstance(number, int):
                self._valued.add(name)
        if _EXPONENT.search(text) and self._decimals:
            self._add_exponents(json.loads(text, parse_float=str))

    def _add_exponents(self, statistics: Mapping[str, Any]) -> None:
        """Add decimals with a bound such as 1E-10; fractions and exponents are texts."""
        for bounds in map(statistics.get, ("minValues", "maxValues")):
            if isinstance(bounds, Mapping):
                self._exponents.update(
                    name for name in self._decimals if "e" in str(bounds.get(name) or "").lower()
                )

    def found(self, *, complete: bool) -> ColumnBounds:
        """Return the result.

        Args:
            complete: the statistics of every file were added.
        """
        return ColumnBounds(
            self._columns,
            frozenset(self._missing),
            frozenset(self._valued),
            frozenset(self._nan),
            frozenset(self._exponents),
            self._partial,
            self._uncounted,
            complete,
        )


class _Kinds(dict[str, Any]):
    """The types of a struct's fields by their names in files."""


def _kinds_of(fields: Iterable[Any]) -> _Kinds:
    found = _Kinds()
    for field in fields:
        name, kind = physical_name(field), field.get("type") if isinstance(field, dict) else None
        if isinstance(kind, Mapping) and kind.get("type") == "struct":
            kind = _kinds_of(kind.get("fields") or ())
        if isinstance(name, str):
            found[name] = kind
    return found


def _all_fit(values: Any, kinds: _Kinds, *, counts: bool = False) -> bool:
    """Return True if clients can parse each value as its type; if `counts`, as number of nulls."""
    if values is None:
        return True
    if not isinstance(values, dict):
        return False
    for name, value in values.items():
        if value is None or name not in kinds:
            continue
        kind = kinds[name]
        if isinstance(kind, _Kinds):
            if not _all_fit(value, kind, counts=counts):
                return False
        elif not _fits(value, "long" if counts else kind):
            return False
    return True


def _fits(value: Any, kind: Any) -> bool:
    """Return True if clients can parse `value` as this type."""
    if value is None or not isinstance(kind, str):
        return True
    if kind in _BITS:
        return _is_whole(value, _BITS[kind])
    if kind in ("float", "double"):
        return _is_number(value)
    if kind == "boolean":
        return isinstance(value, bool)
    return kind != "string" or not isinstance(value, Mapping | list)


def _is_whole(value: Any, bits: int) -> bool:
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else None
    end = 1 << (bits - 1)
    return isinstance(value, int | float) and not isinstance(value, bool) and -end <= value < end


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return isinstance(value, int | float) or float(value) is not None
    except (TypeError, ValueError):
        return False


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse).decode


@cache
def _fast_decoder() -> Callable[[str], dict[str, Any]]:
    import msgspec

    head = msgspec.defstruct("Head", [("numRecords", Any, None)])
    decode: Callable[[str], Any] = msgspec.json.Decoder(head).decode
    return lambda text: {"numRecords": decode(text).numRecords}
