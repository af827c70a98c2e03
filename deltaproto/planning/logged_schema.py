"""A table's columns as the metaData action of its log holds them.

Source: PROTOCOL.md, "Schema Serialization Format"; Spark's `CharVarcharUtils`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.planning.schema import Array, Atomic, Column, Map, Struct, Type

_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
_COLLATIONS = "__COLLATIONS"


def from_log(schema: Mapping[str, Any]) -> Struct:
    """The schema that a metaData action holds, parsed as JSON already."""
    return Struct(tuple(_column(field) for field in schema.get("fields") or ()))


def _column(field: Any) -> Column:
    field = field if isinstance(field, Mapping) else {}
    found = field.get("metadata")
    metadata = found if isinstance(found, Mapping) else {}
    kind = _type(field.get("type"))
    if isinstance(kind, Atomic) and isinstance(metadata.get(_LENGTH), str):
        kind = Atomic(metadata[_LENGTH])
    elif kind == Atomic("string") and metadata.get(_COLLATIONS):
        kind = Atomic("string collate")
    generated = metadata.get("delta.generationExpression")
    default = metadata.get("CURRENT_DEFAULT")
    return Column(
        str(field.get("name", "")),
        kind,
        field.get("nullable") is not False,
        None if default is None else str(default),
        None if generated is None else str(generated),
        any(key.startswith("delta.identity.") for key in metadata),
        _type_changes(metadata["delta.typeChanges"]) if "delta.typeChanges" in metadata else None,
    )


def _type_changes(stored: Any) -> tuple[tuple[Atomic, Atomic], ...]:
    changes = stored if isinstance(stored, list) else []
    return tuple(
        (Atomic(str(each.get("fromType"))), Atomic(str(each.get("toType"))))
        for each in changes
        if isinstance(each, Mapping)
    )


def _type(stored: Any) -> Type:
    if not isinstance(stored, Mapping):
        return Atomic(str(stored))
    match stored.get("type"):
        case "struct":
            return from_log(stored)
        case "array":
            return Array(_type(stored.get("elementType")), stored.get("containsNull") is not False)
        case "map":
            return Map(
                _type(stored.get("keyType")),
                _type(stored.get("valueType")),
                stored.get("valueContainsNull") is not False,
            )
        case other:
            return _type(other)
