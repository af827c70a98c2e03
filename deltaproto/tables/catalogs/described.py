"""The parts of a table's log that its catalog entry repeats, in a comparable form.

Source: `HiveExternalCatalog` and `CatalogTableUtils` of Spark (the schema in the properties
`spark.sql.sources.schema…`, along with a placeholder column), Delta's `TableFeatureProtocolUtils`
(properties of the protocol).
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from deltaproto.counts import first_names
from deltaproto.tables.catalogs.column_types import canonical_json_type, canonical_type

_PLACEHOLDER = {"col": "array<string>"}
"""the columns of an entry whose engine reads the schema from the log"""
_SCHEMA = "spark.sql.sources.schema"
_VERSIONS = ("delta.minreaderversion", "delta.minwriterversion")
_FEATURE = "delta.feature."
_LONG = 4
_MOST_NAMED, _LONGEST_TYPE = 4, 80


class Columns(NamedTuple):
    """The top-level columns of an entry or a log."""

    types: Mapping[str, str | None]
    """canonical types by name in lower case; None: not known, or not comparable"""
    hive: bool = False
    """whether the types are from a catalog that has only Hive's types"""

    @property
    def digest(self) -> str:
        """The number of columns, a digest of their names, and one of their types."""
        return f"{len(self.types)}-{_digest(self.types)}-{self._types_digest()}"

    def _types_digest(self) -> str:
        known = {name: type_ for name, type_ in self.types.items() if type_ is not None}
        pairs = (f"{name}\0{type_}" for name, type_ in known.items())
        return f"{'h' if self.hive else 'x'}{_digest(known)}.{_digest(pairs)}"


def _digest(texts: Iterable[str]) -> str:
    joined = "\0".join(sorted(texts)).encode("utf-8", "replace")
    return blake2b(joined, digest_size=8).hexdigest()


def schema_columns(
    schema: object, partitions: Container[str] = (), *, hive: bool = False
) -> Columns | None:
    """Return the columns of a schema in Delta's and Spark's JSON; None without usable columns.

    Case and order do not count: metastores store names in lower case, and partition columns last.

    Args:
        partitions: partition columns, whose types catalogs like Hive often have as `string`.
        hive: return the types in a catalog that has only Hive's types.
    """
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    found: dict[str, str | None] = {}
    for field in fields if isinstance(fields, list) else ():
        name = field.get("name") if isinstance(field, Mapping) else None
        if not isinstance(name, str):
            return None
        comparable = not (hive and name in partitions)
        type_ = canonical_json_type(field.get("type"), hive=hive) if comparable else None
        found[name.lower()] = type_
    return Columns(found, hive) if found else None


def log_columns_digest(schema: object, partitions: Container[str]) -> str | None:
    """Return `Columns.digest` of a log, with digests of the types for each kind of catalog."""
    exact = schema_columns(schema)
    hive = schema_columns(schema, partitions, hive=True)
    return exact and hive and f"{exact.digest}-{hive._types_digest()}"


class ColumnDifference(StrEnum):
    """How the columns of an entry and a log differ."""

    NUMBER = "number"
    NAMES = "names"
    TYPES = "types"


def compare_digests(entry: str, log: str) -> ColumnDifference | None:
    """Return how columns differ, by `Columns.digest` of an entry and `log_columns_digest`.

    Also None if the types are known for different columns. Older inventories have digests of names
    only.
    """
    (count, names, *types), (count_in_log, names_in_log, *types_in_log) = (
        entry.split("-"),
        log.split("-"),
    )
    if count != count_in_log:
        return ColumnDifference.NUMBER
    if names != names_in_log:
        return ColumnDifference.NAMES
    for each in types:
        known = each.partition(".")[0]
        if any(other.startswith(f"{known}.") and other != each for other in types_in_log):
            return ColumnDifference.TYPES
    return None


def describe_differences(entry: Columns, log: Columns) -> str:
    """Return which columns of an entry differ from those of a log; empty: none, as far as known."""
    only_here = sorted(entry.types.keys() - log.types.keys())
    only_there = sorted(log.types.keys() - entry.types.keys())
    other = [
        f"{name} is {_shorten(here)} instead of {_shorten(there)}"
        for name, here in sorted(entry.types.items())
        if here is not None and (there := log.types.get(name)) is not None and here != there
    ]
    parts = [
        f"only in the entry: {first_names(only_here, _MOST_NAMED)}" if only_here else "",
        f"only in the log: {first_names(only_there, _MOST_NAMED)}" if only_there else "",
        first_names(other, _MOST_NAMED),
    ]
    return "; ".join(filter(None, parts))


def _shorten(type_: str) -> str:
    return type_ if len(type_) <= _LONGEST_TYPE else f"{type_[:_LONGEST_TYPE]}…"


def hive_columns(
    columns: Iterable[tuple[str, str]],
    partitions: Iterable[tuple[str, str]],
    properties: Mapping[str, str],
) -> Columns | None:
    """Return the columns of an entry with Hive's fields; None if it only refers to the log.

    Args:
        columns: names and types.
        partitions: the same for the partition columns, which Hive stores separately.
    """
    found = {name.lower(): canonical_type(type_, hive=True) for name, type_ in columns}
    if found and found != _PLACEHOLDER:
        return Columns(found | {name.lower(): None for name, _ in partitions}, hive=True)
    try:
        return schema_columns(json.loads(_stored_schema(properties)))
    except (ValueError, RecursionError):
        return None


def unity_columns(columns: Iterable[Mapping[str, object]]) -> Columns | None:
    """Return the columns of an entry in Unity Catalog; None if it has none, or a placeholder."""
    found = {str(each.get("name")).lower(): _unity_type(each) for each in columns}
    return Columns(found) if found and found != _PLACEHOLDER else None


def _unity_type(column: Mapping[str, object]) -> str | None:
    """Return the type of a column: `type_json` is a field or only its type, and never shortened."""
    try:
        stated = json.loads(str(column.get("type_json")))
    except (ValueError, RecursionError):
        stated = None
    if isinstance(stated, Mapping) and "name" in stated:
        stated = stated.get("type")
    return canonical_json_type(stated) or canonical_type(str(column.get("type_text") or ""))


def _stored_schema(properties: Mapping[str, str]) -> str:
    """Return the schema that Spark stores as one property, or as numbered parts of it."""
    if _SCHEMA in properties:
        return properties[_SCHEMA]
    count = properties.get(f"{_SCHEMA}.numParts", "")
    if not count.isdecimal():
        return ""
    parts = [
        properties.get(f"{_SCHEMA}.part.{number}") for number in range(min(int(count), 10_000))
    ]
    return "" if None in parts else "".join(part or "" for part in parts)


class DeclaredProtocol(NamedTuple):
    """The protocol in the properties of an entry."""

    reader: int | None
    """None: not stated"""
    writer: int | None
    features: tuple[str, ...]
    """may be empty although the log has some"""


def declared_protocol(properties: Mapping[str, object]) -> DeclaredProtocol | None:
    """Return the protocol in the properties of an entry; None if they state nothing."""
    lower = {key.lower(): str(value) for key, value in properties.items()}
    reader, writer = (_version(lower.get(key, "")) for key in _VERSIONS)
    features = tuple(
        key[len(_FEATURE) :]
        for key, value in properties.items()
        if key.lower().startswith(_FEATURE) and value in ("supported", "enabled")
    )
    if reader is None and writer is None and not features:
        return None
    return DeclaredProtocol(reader, writer, features)


def _version(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _LONG else None
