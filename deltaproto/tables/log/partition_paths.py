"""Compares a data file's path with the partition values that the log has for the file.

The log is authoritative (PROTOCOL.md, "Add File and Remove File": a path is opaque), but some
clients take the values from the folders. The folders may show other values, or none: files with
random prefixes have no partition folders, and Delta Spark names folders in the time zone of its
session while it stores timestamps in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from deltaproto.protocol.feature import Trace
from deltaproto.protocol.metadata import Metadata, physical_name

_NULL = "__HIVE_DEFAULT_PARTITION__"
_UNESCAPED = "_-!.~();@&+$,"
_ESCAPED = {each for each in map(chr, range(128)) if not (each.isalnum() or each in _UNESCAPED)}
_TIMESTAMP = re.compile(r"(\d{4,}-\d\d-\d\d)([ T])(\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z?)", re.ASCII)


def shows_partition_values(path: str, values: Mapping[str, object]) -> bool:
    """Return True if the path's folders have exactly these partition values.

    Args:
        path: the path in an action, with a URI's escapes.
        values: the action's `partitionValues`, by column; empty text and None are null.
    """
    folders = {}
    for folder in path.split("/")[:-1]:
        name, found, value = unquote(folder).partition("=")
        if found:
            folders[unquote(name)] = unquote(value)
    return all(_equal(folders.get(name), value) for name, value in values.items())


def is_iso_timestamp(value: object) -> bool | None:
    """Return True for 2026-01-31T00:00:00.000000Z, False for 2026-01-31 00:00:00, else None."""
    found = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if found is None or (found[2] == "T") is not bool(found[5]):
        return None
    return bool(found[5])


def _needs_escapes(value: str) -> bool:
    # Delta Spark escapes these in folders of partitions, or else in the path as a URI.
    return not value.isalnum() and any(each in _ESCAPED for each in value)


def _equal(folder: str | None, value: object) -> bool:
    if folder is None:
        return False
    if value is None or value == "":
        return folder == _NULL
    return folder == value or (isinstance(value, str) and _instant(folder) == _instant(value) != "")


def _instant(text: str) -> str:
    """Return a timestamp in canonical form, assuming UTC; "" for other text."""
    found = _TIMESTAMP.fullmatch(text)
    return "" if found is None else f"{found[1]} {found[3]}.{(found[4] or '').ljust(6, '0')}"


class PartitionEvidence:
    """What the live files of a table show about its partition values."""

    def __init__(self) -> None:
        self.seen = False
        """a file with partition values was added"""
        self.hidden = False
        """a path does not show its values"""
        self.folders = False
        """a path has a folder of a partition, with any value"""
        self.non_ascii = False
        """a partition value is not ASCII"""
        self.escaped = False
        """a partition value needs escapes in a path"""
        self._known: dict[str, set[str]] = {}
        self._forms: dict[str, set[str]] = {}
        self._iso: set[str] = set()
        self._plain: set[str] = set()

    def add(self, path: str, values: Mapping[str, object] | None) -> None:
        """Add a live file. Without its partition values, nothing is known about it."""
        if not values:
            return
        self.seen = True
        self.folders = self.folders or "=" in unquote(path.rpartition("/")[0])
        self.hidden = self.hidden or not shows_partition_values(path, values)
        for name, value in values.items():
            # Many files have the same values.
            if not isinstance(value, str) or value in (
                known := self._known.setdefault(name, set())
            ):
                continue
            if len(known) < _MOST_KNOWN:
                known.add(value)
            self.non_ascii = self.non_ascii or not value.isascii()
            self.escaped = self.escaped or _needs_escapes(value)
            forms = self._forms.setdefault(name, set())
            if value and len(forms) < _MOST_KNOWN:
                forms.add(value.translate(_DIGITS))
            iso = is_iso_timestamp(value)
            if iso is not None:
                (self._iso if iso else self._plain).add(name)

    def traces(self, types: Mapping[str, str | None]) -> dict[Trace, bool]:
        """Return the traces that were seen, for partition columns of these types."""
        times = {name for name, type_ in types.items() if type_ == "timestamp"}
        return {
            Trace.HIDDEN_PARTITIONS: self.hidden,
            Trace.NON_ASCII_VALUES: self.non_ascii,
            Trace.ESCAPED_VALUES: self.escaped,
            Trace.ISO_TIMESTAMPS: not times.isdisjoint(self._iso),
            Trace.MIXED_TIMESTAMPS: not times.isdisjoint(self._iso & self._plain),
            **self._misfits(types),
        }

    def _misfits(self, types: Mapping[str, str | None]) -> dict[Trace, bool]:
        found = set[Trace]()
        for name, forms in self._forms.items():
            fitting, narrower = _patterns(types.get(name))
            for form in forms:
                if fitting is not None and not re.fullmatch(fitting, form):
                    narrow = narrower is not None and re.fullmatch(narrower, form)
                    found.add(Trace.UNWIDENED_VALUES if narrow else Trace.MISFIT_VALUES)
                elif form.startswith("-") and re.fullmatch(_WITH_PLACES, types.get(name) or ""):
                    found.add(Trace.NEGATIVE_DECIMALS)
        return {trace: trace in found for trace in _OF_FORMS}


def _patterns(type_: str | None) -> tuple[str | None, str | None]:
    """Return the form of a partition column's values, and the form before its type was widened.

    A form has 0 for every digit. None: any form; no other form.
    Source: PROTOCOL.md, "Partition Value Serialization", and the values that deltalake 0.22 to
    1.6.6 read. Delta Kernel needs exactly the decimal places of the type.
    """
    if type_ is None:
        return None, None
    decimal = re.fullmatch(_DECIMAL, type_)
    if decimal is None:
        return _PATTERNS.get(type_), _DATE if type_ == "timestamp_ntz" else None
    precision, places = int(decimal[1]), int(decimal[2])
    digits = f"-?0{{1,{max(precision - places, 1)}}}"
    if not places:
        return f"{digits}|{_EXPONENT}", None
    return rf"{digits}\.0{{{places}}}|{_EXPONENT}", rf"{digits}(\.0{{1,{places}}})?"


_DECIMAL = r"decimal\(([0-9]{1,2}), ?([0-9]{1,2})\)"
_WITH_PLACES = r"decimal\([0-9]+, ?[1-9][0-9]?\)"
_OF_FORMS = (Trace.UNWIDENED_VALUES, Trace.MISFIT_VALUES, Trace.NEGATIVE_DECIMALS)
_DIGITS = str.maketrans("123456789", "000000000")
_MOST_KNOWN = 1000
_EXPONENT = r"-?0+(\.0*)?[Ee][+-]?0+"
_DATE = "0000-00?-00?"
_ZONE = "(Z|[+-]00:?00)"
_PATTERNS = {
    "byte": "[+-]?0{1,3}",
    "short": "[+-]?0{1,5}",
    "integer": "[+-]?0{1,10}",
    "long": "[+-]?0{1,19}",
    **dict.fromkeys(
        ("float", "double"),
        r"(?i:[+-]?((0+\.?0*|\.0+)(e[+-]?0+)?|nan|inf|infinity))",
    ),
    "boolean": "(?i:true|false)",
    "date": _DATE,
    "timestamp": rf"0000-00-00( 00:00:00(\.0+)?{_ZONE}?|T00:00:00(\.0+)?{_ZONE})",
    "timestamp_ntz": r"0000-00-00 00:00:00(\.0+)?",
}


def partition_types(metadata: Metadata) -> dict[str, str | None]:
    """Return the type of each partition column, by its physical name; None: unknown."""
    if not metadata.partition_columns:
        return {}
    fields = (metadata.schema or {}).get("fields") or ()
    known = {field.get("name"): field for field in fields if isinstance(field, dict)}
    types: dict[str, str | None] = {}
    for name in metadata.partition_columns:
        field = known.get(name)
        type_ = None if field is None else field.get("type")
        types[str(physical_name(field) or name)] = type_ if isinstance(type_, str) else None
    return types


def is_partitioned_by_text(types: Mapping[str, str | None]) -> bool:
    """Return True if a partition column has text or timestamps, or a type that is not known."""
    return not {"string", "binary", "timestamp", "timestamp_ntz", None}.isdisjoint(types.values())


def has_odd_values(types: Mapping[str, str | None]) -> bool:
    """Return True if clients store values for a partition column in forms that others misread.

    They are text, timestamps and decimals: deltalake stores -1.50 as -1.-50 (measured with 0.15.3
    to 1.6.6).
    """
    return is_partitioned_by_text(types) or any(
        type_ is not None and type_.startswith("decimal") for type_ in types.values()
    )
