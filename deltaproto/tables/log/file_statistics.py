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
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from deltaproto.protocol.feature import Trace
from deltaproto.protocol.indexed_columns import indexed_columns
from deltaproto.protocol.metadata import Metadata, physical_name

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
    expected = None
    found: set[Trace] = set()
    for text in texts:
        if expected is None:
            expected = _ExpectedStatistics(metadata)
        statistics = _decode(text)
        if expected.is_mistyped(statistics):
            found.add(Trace.MISTYPED_STATISTICS)
        found.update(expected.misread_bounds(statistics))
        if _EXPONENT.search(text) and expected.has_exponents(json.loads(text, parse_float=str)):
            found.add(Trace.EXPONENT_BOUNDS)
    return found


class _ExpectedStatistics:
    """What a schema lets readers expect of the statistics of a file."""

    def __init__(self, metadata: Metadata) -> None:
        fields = (metadata.schema or {}).get("fields") or ()
        self._kinds = _kinds_of(
            field for field in fields if field.get("name") not in metadata.partition_columns
        )
        self._columns = {column.name: column for column in indexed_columns(metadata)}
        self._floats = [c.name for c in self._columns.values() if c.type in ("float", "double")]

    def is_mistyped(self, statistics: Mapping[str, Any]) -> bool:
        """Return True if a bound or a number of nulls does not fit the type of its column."""
        return not (
            _all_fit(statistics.get("minValues"), self._kinds)
            and _all_fit(statistics.get("maxValues"), self._kinds)
            and _all_fit(statistics.get("nullCount"), self._kinds, counts=True)
        )

    def misread_bounds(self, statistics: Mapping[str, Any]) -> Iterator[Trace]:
        """Yield what readers of the bounds may misunderstand, except for exponents."""
        missing: set[str] = set()
        for member in ("minValues", "maxValues"):
            bounds = statistics.get(member)
            if not isinstance(bounds, Mapping):
                continue
            missing |= self._columns.keys() - bounds.keys()
            if None in bounds.values():
                missing |= {name for name in self._columns if bounds.get(name) is None}
            if any(bounds.get(name) == "NaN" for name in self._floats):
                yield Trace.NAN_BOUNDS
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
            column = self._columns[name]
            plain = Trace.UNBOUNDED_BOOLEANS if column.boolean else Trace.UNBOUNDED_COLUMNS
            yield Trace.UNBOUNDED_LATER_COLUMNS if column.later else plain

    def has_exponents(self, statistics: Mapping[str, Any]) -> bool:
        """Return True if a bound of a decimal is a number such as 1E-10.

        Args:
            statistics: with fractions and exponents as texts.
        """
        decimals = [name for name, c in self._columns.items() if c.type.startswith("decimal")]
        return any(
            "e" in str(bounds.get(name) or "").lower()
            for bounds in map(statistics.get, ("minValues", "maxValues"))
            if isinstance(bounds, Mapping)
            for name in decimals
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
