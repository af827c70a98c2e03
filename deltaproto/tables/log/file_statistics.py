"""Statistics of data files in `add.stats`, and which of them clients cannot parse.

Values count as mistyped if deltalake 1.6.6 refuses them, measured type by type: it accepts numbers
in strings and fractions in whole numbers, and ignores values of dates, timestamps, decimals,
binaries, arrays and maps. A bound counts as missing if deltalake 0.15.2 to 1.6.6 loses rows without
it in filters on pyarrow datasets: the statistics have bounds, but none for a column that is not
NULL in every row.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from deltaproto.caches import cache_by_text
from deltaproto.protocol.column_bounds import ColumnBounds
from deltaproto.protocol.decoding import decode_fast
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.indexed_columns import IndexedColumn, select_indexed
from deltaproto.protocol.metadata import Metadata, parse_schema_string, physical_name
from deltaproto.protocol.properties import INDEXED_COLUMNS_PROPERTY, STATISTICS_COLUMNS_PROPERTY

MISREAD_BOUNDS = (
    *(Trace.UNBOUNDED_COLUMNS, Trace.UNBOUNDED_BOOLEANS, Trace.UNBOUNDED_LATER_COLUMNS),
    *(Trace.NAN_BOUNDS, Trace.EXPONENT_BOUNDS),
)
"""traces of statistics that readers of the bounds may misunderstand"""
_EXPONENT = re.compile(r"\d[eE][+-]?\d")
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_COUNTED = re.compile(r'\{"numRecords":\d')
_REMEMBERED = 512
"""number of schemas"""


def are_readable(text: str) -> bool:
    """Return True if `text` is a JSON object whose `numRecords`, if it has one, is a number."""
    try:
        number = _row_count(text)
    except (ValueError, RecursionError):
        return False
    if type(number) is int:
        return -(1 << 63) <= number < 1 << 63
    return _fits(number, "long")


def has_row_count(text: str | None) -> bool:
    """Return True if the statistics of a file have its number of rows."""
    if text is None or _COUNTED.match(text):
        return text is not None
    try:
        return _row_count(text) is not None
    except (ValueError, RecursionError):
        return False


def _row_count(text: str) -> Any:
    """Return `numRecords` as it is stored; None if there is none.

    Raises:
        ValueError: if the text is not a JSON object.
        RecursionError: if it is nested too deeply.
    """
    # Only the fast decoder refuses half of a surrogate pair, as clients do.
    if "msgspec" in sys.modules or "\\u" in text:
        return _fast_decoder()(text).numRecords
    found = _decode(text)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found.get("numRecords")


def compare_statistics(texts: Iterable[str], metadata: Metadata) -> set[Trace]:
    """Return how the statistics of files differ from what the schema lets readers expect.

    Args:
        texts: readable statistics.
    """
    left = iter(texts)
    first = next(left, None)
    if first is None:
        return set()
    expected = _expected_statistics(
        metadata.schema_string,
        metadata.partition_columns,
        metadata.configuration.get(STATISTICS_COLUMNS_PROPERTY),
        metadata.configuration.get(INDEXED_COLUMNS_PROPERTY),
    )
    bounds = _BoundsReader(expected)
    found = set[Trace]()
    for text in chain([first], left):
        statistics = _decode_readable(text)
        if Trace.MISTYPED_STATISTICS not in found and _is_mistyped(statistics, expected.types):
            found.add(Trace.MISTYPED_STATISTICS)
        if expected.required and _lacks(statistics, expected.required):
            found.add(Trace.LACKING_COLUMNS)
        bounds.add(text, statistics)
    return found | bounds.traces(expected.columns)


def _lacks(statistics: Mapping[str, Any], required: frozenset[str]) -> bool:
    """Return True if the null counts of a file with rows do not have every required column."""
    nulls = statistics.get("nullCount")
    if not isinstance(nulls, dict) or not nulls or statistics.get("numRecords") == 0:
        return False
    return not required <= nulls.keys()


def read_bounds(texts: Iterable[str], metadata: Metadata, *, complete: bool) -> ColumnBounds:
    """Return what the statistics of files show about the bounds of every column, by name.

    Args:
        texts: readable statistics.
        complete: True if they are the statistics of every file.
    """
    every = {INDEXED_COLUMNS_PROPERTY: "-1"}
    columns = select_indexed(metadata.schema, every, metadata.partition_columns)
    bounds = _BoundsReader(_expect(columns, _ColumnTypes()))
    for text in texts:
        bounds.add(text, _decode_readable(text))
    fields = _data_fields(metadata.schema, metadata.partition_columns)
    names = {physical_name(field): field["name"] for field in fields}
    return bounds.found(complete=complete).renamed(names)


def _data_fields(schema: Mapping[str, Any] | None, partition_columns: Sequence[str]) -> list[Any]:
    fields = (schema or {}).get("fields") or ()
    return [field for field in fields if field.get("name") not in partition_columns]


class _Expected(NamedTuple):
    """The bounds and types that readers expect in the statistics of a table's files."""

    columns: tuple[IndexedColumn, ...]
    """the columns that should have bounds"""
    names: frozenset[str]
    """of these columns, in the statistics"""
    floats: tuple[str, ...]
    decimals: tuple[str, ...]
    types: "_ColumnTypes"
    required: frozenset[str] = frozenset()
    """the NOT NULL columns among them"""


@cache_by_text(_REMEMBERED)
def _expected_statistics(
    schema_string: str | None,
    partition_columns: tuple[str, ...],
    named: str | None,
    indexed: str | None,
) -> _Expected:
    configuration = {STATISTICS_COLUMNS_PROPERTY: named, INDEXED_COLUMNS_PROPERTY: indexed}
    schema = parse_schema_string(schema_string)
    columns = select_indexed(schema, configuration, partition_columns)
    fields = _data_fields(schema, partition_columns)
    expected = _expect(columns, _column_types(fields))
    strict = (physical_name(field) for field in fields if field.get("nullable") is False)
    return expected._replace(required=expected.names.intersection(strict))


def _expect(columns: Iterable[IndexedColumn], types: "_ColumnTypes") -> _Expected:
    columns = tuple(columns)
    return _Expected(
        columns,
        frozenset(column.name for column in columns),
        tuple(c.name for c in columns if c.type in ("float", "double")),
        tuple(c.name for c in columns if c.type.startswith("decimal")),
        types,
    )


class _BoundsReader:
    """Collects what the statistics of files show about the bounds of some columns."""

    def __init__(self, expected: _Expected) -> None:
        self._columns = expected.names
        self._floats, self._decimals = expected.floats, expected.decimals
        self._missing: set[str] = set()
        self._valued: set[str] = set()
        self._nan: set[str] = set()
        self._exponents: set[str] = set()
        self._partial = False
        self._uncounted = False

    def add(self, text: str, statistics: Mapping[str, Any]) -> None:
        """Add the statistics of a file; `text` is their JSON."""
        missing: set[str] = set()
        for member in ("minValues", "maxValues"):
            bounds = statistics.get(member)
            if not isinstance(bounds, dict):
                self._uncounted = True
                continue
            self._partial = True
            absent = self._columns - bounds.keys()
            if None in bounds.values():
                absent |= {name for name in self._columns if bounds.get(name) is None}
            self._valued |= self._columns - absent
            missing |= absent
            for name in self._floats:
                if bounds.get(name) == "NaN":
                    self._nan.add(name)
        nulls = statistics.get("nullCount")
        if not isinstance(nulls, dict) or not nulls:
            self._missing |= missing
        elif missing:
            self._add_counted(missing, nulls, statistics.get("numRecords"))
        if self._decimals and _EXPONENT.search(text):
            self._add_exponents(json.loads(text, parse_float=str))

    def _add_counted(self, missing: Iterable[str], nulls: Mapping[str, Any], rows: Any) -> None:
        """Add columns without a bound in a file that has null counts."""
        for name in missing:
            number = nulls.get(name)
            # Readers conclude that the column is NULL, which is true here.
            if number is not None and number == rows:
                continue
            # Of a struct, they conclude only whether it is NULL itself.
            if isinstance(number, dict) and 0 in number.values():
                continue
            self._missing.add(name)
            if isinstance(number, int):
                self._valued.add(name)

    def _add_exponents(self, statistics: Mapping[str, Any]) -> None:
        """Add decimals with a bound such as 1E-10; fractions and exponents are texts."""
        for bounds in map(statistics.get, ("minValues", "maxValues")):
            if isinstance(bounds, dict):
                self._exponents.update(
                    name for name in self._decimals if "e" in str(bounds.get(name) or "").lower()
                )

    def traces(self, expected: Iterable[IndexedColumn]) -> set[Trace]:
        """Return what readers misread if they expect the bounds of these columns."""
        if not (self._missing or self._nan or self._exponents):
            return set()
        return self.found(complete=False).traces(expected)

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


class _ColumnTypes(dict[str, Any]):
    """The types of a struct's fields by their names in files."""


def _column_types(fields: Iterable[Any]) -> _ColumnTypes:
    found = _ColumnTypes()
    for field in fields:
        name, kind = physical_name(field), field.get("type") if isinstance(field, dict) else None
        if isinstance(kind, Mapping) and kind.get("type") == "struct":
            kind = _column_types(kind.get("fields") or ())
        if isinstance(name, str):
            found[name] = kind
    return found


def _is_mistyped(statistics: Mapping[str, Any], types: _ColumnTypes) -> bool:
    """Return True if a bound or a number of nulls does not fit the type of its column."""
    return not (
        _all_fit(statistics.get("minValues"), types)
        and _all_fit(statistics.get("maxValues"), types)
        and _all_fit(statistics.get("nullCount"), types, counts=True)
    )


def _all_fit(values: Any, types: _ColumnTypes, *, counts: bool = False) -> bool:
    """Return True if clients can parse each value as its type; if `counts`, as number of nulls."""
    if values is None:
        return True
    if not isinstance(values, dict):
        return False
    for name, value in values.items():
        if value is None or name not in types:
            continue
        kind = types[name]
        if isinstance(kind, _ColumnTypes):
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


def _decode_readable(text: str) -> dict[str, Any]:
    """Decode statistics that are readable."""
    found = decode_fast(text)
    return found if isinstance(found, dict) else _decode(text)


@cache
def _fast_decoder() -> Callable[[str], Any]:
    import msgspec

    head = msgspec.defstruct("Head", [("numRecords", Any, None)])
    decode: Callable[[str], Any] = msgspec.json.Decoder(head).decode
    return decode
