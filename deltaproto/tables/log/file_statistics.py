"""Statistics of data files, as `add.stats` stores them, and which of them clients cannot parse.

What counts as mistyped is what deltalake 1.6.6 refuses, measured type by type: it accepts numbers
in strings and fractions in whole numbers, and ignores values of dates, timestamps, decimals,
binaries, arrays and maps.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from deltaproto.protocol.metadata import physical_name

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


def are_mistyped(text: str, schema: Mapping[str, Any]) -> bool:
    """Return True if a bound or a number of nulls does not fit the type of its column.

    Args:
        text: readable statistics.
        schema: of the columns that are stored in data files.
    """
    found = _decode(text)
    return not (
        _fits(found.get("minValues"), schema)
        and _fits(found.get("maxValues"), schema)
        and _fits(found.get("nullCount"), schema, counts=True)
    )


def _fits(value: Any, kind: Any, *, counts: bool = False) -> bool:
    """Return True if clients can parse `value` as this type; if `counts`, as a number of nulls."""
    if value is None:
        return True
    if isinstance(kind, Mapping) and kind.get("type") == "struct":
        return isinstance(value, Mapping) and all(
            _fits(value.get(physical_name(field)), field.get("type"), counts=counts)
            for field in kind.get("fields") or ()
        )
    kind = "long" if counts else kind
    if not isinstance(kind, str):
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
