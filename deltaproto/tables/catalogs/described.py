"""What a catalog's entry repeats of a table's log, in a form that can be compared.

Source: `HiveExternalCatalog` and `CatalogTableUtils` of Spark (the schema in the properties
`spark.sql.sources.schema…`, beside a placeholder column), Delta's `TableFeatureProtocolUtils`
(properties of the protocol).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

_PLACEHOLDER = [("col", "array<string>")]
"""the columns of an entry whose engine reads the schema from the log"""
_SCHEMA = "spark.sql.sources.schema"
_VERSIONS = ("delta.minreaderversion", "delta.minwriterversion")
_FEATURE = "delta.feature."
_LONG = 4


def columns_digest(names: Iterable[object]) -> str | None:
    """Return the number of top-level columns and a digest of their names; None without columns.

    Case and order do not count: metastores store names in lower case, and partition columns last.
    """
    found = sorted(str(name).lower() for name in names)
    if not found:
        return None
    digest = blake2b("\0".join(found).encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{len(found)}-{digest}"


def schema_digest(schema: object) -> str | None:
    """Return `columns_digest` of a schema in Delta's and Spark's JSON; None if it is not usable."""
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    if not isinstance(fields, list):
        return None
    names = [field.get("name") if isinstance(field, Mapping) else None for field in fields]
    return columns_digest(names) if all(isinstance(name, str) for name in names) else None


def hive_columns_digest(
    columns: Iterable[tuple[str, str]],
    partitions: Iterable[tuple[str, str]],
    properties: Mapping[str, str],
) -> str | None:
    """Return `columns_digest` of an entry with Hive's fields; None if it only refers to the log.

    Args:
        columns: names and types.
        partitions: those of the partition columns, which Hive keeps apart.
    """
    found = [(name.lower(), type_.lower().replace(" ", "")) for name, type_ in columns]
    if found and found != _PLACEHOLDER:
        return columns_digest([name for name, _ in found] + [name for name, _ in partitions])
    try:
        return schema_digest(json.loads(_stored_schema(properties)))
    except (ValueError, RecursionError):
        return None


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
