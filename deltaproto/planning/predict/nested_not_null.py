"""NOT NULL inside arrays and maps, which Delta Spark cannot enforce.

Source: Delta Spark 4.4's `OptimisticTransaction.updateMetadataInternal`,
`SchemaUtils.removeUnenforceableNotNullConstraints` and `SchemaUtils.typeAsNullable`; measured with
Delta Spark 4.4.0.
"""

from __future__ import annotations

import json
import re
from typing import Any

from deltaproto.caches import cache_by_identity
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import (
    Array,
    Column,
    Map,
    Path,
    Struct,
    Type,
    dotted_path,
    walk_columns,
)
from deltaproto.planning.predict.table import Table

_ALLOW = "spark.databricks.delta.constraints.allowUnenforcedNotNull.enabled"


def validate_nested_not_null(
    before: Table, after: Table, *, rewritten: bool = False
) -> Refusal | None:
    """Return why Delta Spark refuses to write the schema of `after`, or None.

    It writes every metadata change with its own schema text, and checks this rule if that text
    differs from the log's: because the columns change (`rewritten`: in any way, such as a comment),
    or because another engine wrote the text with blanks or keys in another order.
    """
    path = None if after.schema is None else find_unenforced(after.schema)
    if path is None:
        return None
    same = not rewritten and (before.schema, before.mapped) == (after.schema, after.mapped)
    if same and before.spark_text:
        return None
    return Refusal(
        "DELTA_NESTED_NOT_NULL_CONSTRAINT",
        f"{dotted_path(path)} has NOT NULL inside an array or map, which Delta Spark does not "
        "enforce",
        f"set {_ALLOW} = true: Delta Spark then removes such NOT NULL from the schema",
        sure=not same or before.spark_text is False,
        on_databricks=False,
    )


@cache_by_identity(64)
def find_unenforced(schema: Struct) -> Path | None:
    """Return the first column or field with NOT NULL inside its array or map."""
    inside: set[Path] = set()
    for path, column in walk_columns(schema):
        if isinstance(column.type, Array | Map):
            inside |= {(*path, part) for part in ("element", "key", "value")}
        if path in inside:
            continue
        match column.type:
            case Array(element):
                parts: tuple[Type, ...] = (element,)
            case Map(key, value):
                parts = (key, value)
            case _:
                continue
        if any(part != _relaxed(part) for part in parts):
            return path
    return None


def _relaxed(kind: Type) -> Type:
    """Return the type as Delta Spark relaxes it: structs completely, collections on two levels."""
    match kind:
        case Struct():
            return _nullable(kind)
        case Array(element):
            return Array(_nullable(element) if isinstance(element, Struct) else element)
        case Map(key, value) if isinstance(key, Struct) or isinstance(value, Struct):
            return Map(
                _nullable(key) if isinstance(key, Struct) else key,
                _nullable(value) if isinstance(value, Struct) else value,
            )
        case _:
            return kind


def _nullable(kind: Type) -> Type:
    match kind:
        case Struct(columns):
            return Struct(tuple(map(_nullable_field, columns)))
        case Array(element):
            return Array(_nullable(element))
        case Map(key, value):
            return Map(_nullable(key), _nullable(value))
        case _:
            return kind


def _nullable_field(column: Column) -> Column:
    return column._replace(type=_nullable(column.type), nullable=True)


def is_spark_text(schema_string: str) -> bool | None:
    """Return whether Spark writes a schema with exactly this text; None: unknown."""
    unsure: list[Any] = []
    try:
        text = json.dumps(
            _spark_form(json.loads(schema_string), unsure),
            ensure_ascii=False,
            separators=(",", ":"),
        )
    except (ValueError, RecursionError):
        return None
    if text != schema_string:
        return None if any(isinstance(each, float) for each in unsure) else False
    return None if unsure else True


_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)", re.ASCII)
_PARTS = {
    "struct": ("fields",),
    "array": ("elementType", "containsNull"),
    "map": ("keyType", "valueType", "valueContainsNull"),
}


def _spark_form(kind: Any, unsure: list[Any]) -> Any:
    """Return a type with keys in Spark's order and without unknown ones.

    `unsure` collects metadata whose text cannot be predicted: Spark orders it by hashes, and
    formats numbers like Java.
    """
    if kind == "decimal":
        return "decimal(10,0)"
    if isinstance(kind, str) and (found := _DECIMAL.fullmatch(kind)):
        return f"decimal({found[1]},{found[2]})"
    if not isinstance(kind, dict):
        return kind
    known = {"type": kind.get("type")}
    for name in _PARTS.get(str(known["type"]), ()):
        known[name] = _spark_form(kind.get(name), unsure)
    if isinstance(known.get("fields"), list):
        known["fields"] = [_spark_field(field, unsure) for field in kind["fields"]]
    return known


def _spark_field(field: Any, unsure: list[Any]) -> dict[str, Any]:
    metadata = field.get("metadata", {}) if isinstance(field, dict) else {}
    _collect_unsure(metadata, unsure)
    return {
        "name": field.get("name"),
        "type": _spark_form(field.get("type"), unsure),
        "nullable": field.get("nullable"),
        "metadata": metadata,
    }


def _collect_unsure(value: Any, unsure: list[Any]) -> None:
    if isinstance(value, float) or (isinstance(value, dict) and len(value) > 1):
        unsure.append(value)
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, dict | list) else ():
        _collect_unsure(part, unsure)
