"""`Metadata`: the metaData action, and the features that its schema shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from deltaproto.caches import cache_by_text
from deltaproto.protocol.decoding import decode_json, holds_objects
from deltaproto.protocol.feature import Trait
from deltaproto.protocol.stored_secrets import (
    hide_in_addresses,
    hide_in_name,
    hide_in_property,
    hide_in_schema,
)

# Without any of these substrings, no column shows a trait; an escape may hide one.
_TRAIT_MARKERS = (
    "false",
    "delta.",
    "current_default",
    "__collation",
    "timestamp_n",
    "variant",
    "geo",
    "collate",
    "interval",
    "\\u",
)
# Delta's SchemaUtils.
FORBIDDEN_IN_NAMES = frozenset(" ,;{}()\n\t=")
"""characters that column names in Parquet cannot contain without column mapping"""


def quote_if_needed(name: str) -> str:
    """Back-quote a name unless it has only letters, digits and underscores, and no digit first.

    Source: `QuotingUtils.quoteIfNeeded` of Spark 4.
    """
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdecimal()
    return name if plain else f"`{name.replace('`', '``')}`"


class Metadata:
    """One metaData action, without credentials."""

    def __init__(
        self,
        id: str | None,
        name: str | None = None,
        schema_string: str | None = None,
        partition_columns: tuple[str, ...] = (),
        configuration: Mapping[str, str | None] = MappingProxyType({}),
        description: str | None = None,
    ) -> None:
        self.id = id and hide_in_name(id)
        self.name = name and hide_in_name(name)
        self.description = description and hide_in_name(description)
        self._stored_schema = schema_string
        self.partition_columns = tuple(map(hide_in_addresses, partition_columns))
        self.configuration: Mapping[str, str | None] = dict(
            map(hide_in_property, configuration.keys(), configuration.values())
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Metadata):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.id, self.schema_string))

    def _fields(self) -> tuple[Any, ...]:
        configuration = dict(self.configuration)
        return (self.id, self.name, self.schema_string, self.partition_columns, configuration)

    @classmethod
    def stored(cls, action: Mapping[str, Any]) -> Metadata:
        """Parse the metadata of a log action.

        Raises:
            ValueError: if `configuration`, `partitionColumns` or `schemaString` have a
                type that the spec does not allow.
        """
        configuration = action.get("configuration") or {}
        partitions = action.get("partitionColumns") or []
        schema = action.get("schemaString")
        if not isinstance(configuration, Mapping):
            raise ValueError("metaData.configuration is not a map")
        if not isinstance(partitions, list) or not all(isinstance(p, str) for p in partitions):
            raise ValueError("metaData.partitionColumns is not a list of names")
        if schema is not None and not isinstance(schema, str):
            raise ValueError("metaData.schemaString is not a string")
        return cls(
            id=_text(action.get("id")),
            name=_text(action.get("name")),
            schema_string=schema,
            partition_columns=tuple(partitions),
            configuration={key: _text(value) for key, value in configuration.items()},
            description=_text(action.get("description")),
        )

    def is_on(self, key: str) -> bool:
        """Return True if a boolean property is true."""
        return (self.configuration.get(key) or "").strip().lower() == "true"

    @cached_property
    def schema_string(self) -> str | None:
        """The schema as stored, without credentials; None if it is missing."""
        # Only read when needed: a checkpoint may repeat a long one many times.
        return self._stored_schema and hide_in_schema(self._stored_schema)

    def property(self, key: str) -> str | None:
        """Return a table property's value; keys are case-sensitive, as in Delta."""
        return self.configuration.get(key)

    @cached_property
    def schema(self) -> Mapping[str, Any] | None:
        """The parsed schema as stored in the log; None if it is not usable."""
        return parse_schema_string(self.schema_string)

    def logical_paths(self, physical: Iterable[Sequence[str]]) -> tuple[str, ...]:
        """Return the dotted names of columns at physical paths (PROTOCOL.md, "Column Mapping").

        Unknown parts of a path are unchanged. Names are back-quoted as in Spark's DESCRIBE DETAIL.
        """
        known: dict[int, dict[str, Any]] = {}

        def fields_of(struct: Any) -> Mapping[str, Any]:
            if id(struct) not in known:
                fields = struct.get("fields") if isinstance(struct, dict) else None
                # The first of several fields with a name counts.
                named = ((physical_name(field), field) for field in reversed(fields or ()))
                known[id(struct)] = {name: field for name, field in named if isinstance(name, str)}
            return known[id(struct)]

        def logical(path: Sequence[str]) -> str:
            names: list[str] = []
            struct: Any = self.schema
            for step in path:
                found = fields_of(struct).get(step)
                names.append(step if found is None else str(found.get("name")))
                struct = found.get("type") if found is not None else None
            return ".".join(map(quote_if_needed, names))

        return tuple(map(logical, physical))

    @cached_property
    def traits(self) -> Mapping[Trait, tuple[str, ...]] | None:
        """Traits of the schema with the columns that show them; None without a usable schema."""
        return _traits_of_schema(self.schema_string or "")


_DEEPEST = 200
"""levels of structs, arrays and maps; more than that, code that descends into a schema could exceed
Python's limit, which differs between its versions
"""


@cache_by_text(8)
def parse_schema_string(text: str | None) -> Mapping[str, Any] | None:
    """Parse a schema as stored in the log; None if it is not usable. Do not change the result.

    A schema with more than 200 levels of structs, arrays and maps is not usable.
    """
    if not text:
        return None
    try:
        schema = decode_json(text)
        if not isinstance(schema, dict) or _is_too_deep(schema, text):
            return None
        return schema if _has_columns(schema) else None
    except (ValueError, RecursionError):
        return None


_NESTING = ("fields", "elementType", "keyType", "valueType")


def _is_too_deep(schema: Mapping[str, Any], text: str) -> bool:
    # Counting is much faster than descending, and hardly any schema has that many levels.
    if "\\u" not in text and sum(text.count(f'"{key}"') for key in _NESTING) <= _DEEPEST:
        return False
    level: list[Any] = [schema]
    for _ in range(_DEEPEST):
        fields = [each.get("fields") for each in level]
        columns = [column for each in fields if isinstance(each, list) for column in each]
        inner = [column.get("type") for column in columns if isinstance(column, dict)]
        inner += [each.get(key) for each in level for key in _NESTING[1:]]
        level = [each for each in inner if isinstance(each, dict)]
        if not level:
            return False
    return True


@cache_by_text(1024)
def _traits_of_schema(schema_string: str) -> Mapping[Trait, tuple[str, ...]] | None:
    text = schema_string.lower()
    if not any(word in text for word in _TRAIT_MARKERS):
        nested = text.count('"fields"') > 1
        usable = (
            parse_schema_string(schema_string) is not None
            if nested
            else holds_objects(schema_string, "fields")
        )
        return {} if usable else None
    schema = parse_schema_string(schema_string)
    if schema is None:
        return None
    found: dict[Trait, dict[str, None]] = {}
    _walk_struct(schema, "", found, in_collection=False)
    return {trait: tuple(columns) for trait, columns in found.items()}


def _has_columns(struct: Mapping[str, Any]) -> bool:
    """Return True if every column of a struct, at any depth, is an object with a name."""
    columns = struct.get("fields")
    return isinstance(columns, list) and all(
        isinstance(column, dict)
        and isinstance(column.get("name"), str)
        and _is_whole(column.get("type"))
        for column in columns
    )


def _is_whole(kind: Any) -> bool:
    if not isinstance(kind, dict):
        return True
    if kind.get("type") == "struct":
        return _has_columns(kind)
    return all(_is_whole(kind.get(key)) for key in ("type", "elementType", "keyType", "valueType"))


def physical_name(field: Any) -> Any:
    """Return the name of a schema's field in files and partition values (PROTOCOL.md, "Column
    Mapping"); None if it has none.
    """
    if not isinstance(field, dict):
        return None
    metadata = field.get("metadata")
    mapped = (
        metadata.get("delta.columnMapping.physicalName") if isinstance(metadata, dict) else None
    )
    return mapped if mapped and isinstance(mapped, str) else field.get("name")


def walk_fields(
    kind: Any, path: tuple[str, ...] = (), *, physical: bool = False
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield the path and the metadata of every column and nested field of a stored schema.

    Args:
        physical: use the names in data files, for fields that have them.
    """
    if not isinstance(kind, Mapping):
        return
    for field in kind.get("fields") or ():
        metadata = field.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        name = metadata.get("delta.columnMapping.physicalName") if physical else None
        here = (*path, name if isinstance(name, str) else str(field.get("name", "")))
        yield here, metadata
        yield from walk_fields(field.get("type"), here, physical=physical)
    for key, name in (("elementType", "element"), ("keyType", "key"), ("valueType", "value")):
        yield from walk_fields(kind.get(key), (*path, name), physical=physical)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


_Found = dict[Trait, dict[str, None]]
"""distinct columns by trait, in order"""


def _walk_struct(
    struct: Mapping[str, Any], parent: str, found: _Found, *, in_collection: bool
) -> None:
    # Delta checks NOT NULL in nested structs, but not inside arrays and maps
    # (Invariants.getFromSchema with checkComplexTypes = false).
    for column in struct["fields"]:
        path = f"{parent}{column.get('name')}"
        metadata = column.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        bound = column.get("nullable") is False or "delta.invariants" in metadata
        if bound and not in_collection:
            found.setdefault(Trait.NON_NULLABLE, {})[path] = None
        if metadata:
            for trait in _traits_of_metadata(metadata):
                found.setdefault(trait, {})[path] = None
        _walk_type(column.get("type"), path, found, in_collection=in_collection)


def _traits_of_metadata(metadata: Mapping[str, Any]) -> Iterator[Trait]:
    if "delta.generationExpression" in metadata:
        yield Trait.GENERATED
    if any(key.startswith("delta.identity.") for key in metadata):
        yield Trait.IDENTITY
    if "CURRENT_DEFAULT" in metadata:
        yield Trait.DEFAULT
    if "delta.columnMapping.id" in metadata or "delta.columnMapping.physicalName" in metadata:
        yield Trait.MAPPING
    if "delta.typeChanges" in metadata:
        yield Trait.TYPE_CHANGE
    if "__COLLATIONS" in metadata or "__COLLATION_METADATA" in metadata:
        yield Trait.COLLATION


def _walk_type(kind: Any, path: str, found: _Found, *, in_collection: bool) -> None:
    if isinstance(kind, str):
        trait = _trait_of_type(kind.lower())
        if trait is not None:
            found.setdefault(trait, {})[path] = None
    elif isinstance(kind, dict):
        match kind.get("type"):
            case "struct":
                _walk_struct(kind, f"{path}.", found, in_collection=in_collection)
            case "array":
                inner = kind.get("elementType")
                _walk_type(inner, f"{path}.element", found, in_collection=True)
            case "map":
                _walk_type(kind.get("keyType"), f"{path}.key", found, in_collection=True)
                _walk_type(kind.get("valueType"), f"{path}.value", found, in_collection=True)
            case other:
                _walk_type(other, path, found, in_collection=in_collection)


@lru_cache(maxsize=1024)
def _trait_of_type(name: str) -> Trait | None:
    if name == "timestamp_ntz":
        return Trait.TIMESTAMP_NTZ
    if name.startswith("timestamp_nanos") or name.startswith("timestamp_ntz_nanos"):
        return Trait.TIMESTAMP_NANOS
    if name == "variant":
        return Trait.VARIANT
    if name.startswith(("geometry", "geography")):
        return Trait.GEOSPATIAL
    if name.startswith("string collate"):
        return Trait.COLLATION
    if name.startswith("interval "):
        return Trait.INTERVAL
    return None
