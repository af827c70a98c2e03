"""Parts of a table's schema and constraints that some clients cannot handle.

Sources: PROTOCOL.md, "Schema Serialization Format" and "Column Mapping"; `DataType` in Spark. The
client catalog lists which client handles what.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from deltaproto.caches import cache_by_text
from deltaproto.clients import requirements
from deltaproto.policy.constructs import ColumnNames, find_constructs
from deltaproto.protocol.decoding import parse_whole
from deltaproto.protocol.metadata import (
    FORBIDDEN_IN_NAMES,
    Metadata,
    parse_schema_string,
    walk_fields,
)

Columns = tuple[str, ...]
Contents = Mapping[str, Columns]
"""hazard name to the columns or constraints that have it"""

_SIMPLE = frozenset(
    {
        *("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary"),
        *("date", "timestamp", "timestamp_ntz"),
    }
)
_PLAIN = _SIMPLE | {"variant"}
_OF_FEATURES = ("geometry", "geography", "string collate", "timestamp_nanos", "timestamp_ntz_nanos")
"""prefixes of types that require a feature; the feature's support decides for them"""
# Compiled when first used: most tables have only types of the specification.
_DECIMAL = r"decimal\((\d+), ?(\d+)\)"
_PARAMETERS = r"\(.*\)"
_WRONG_DECIMAL = "decimal out of range"
_NUMBERED = r"time\( *[0-6] *\)|(?:var)?char\( *\d+ *\)"
"""types of Spark with a number in parentheses; with another one, Spark does not know them"""
_CASTS = frozenset(("cast", "try_cast", "::"))
_CONSTRAINT = "delta.constraints."
_PHYSICAL, _ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"
_MODE = "delta.columnMapping.mode"
_MODES = ("name", "id")
_HIGHEST, _NESTED = "delta.columnMapping.maxColumnId", "delta.columnMapping.nested.ids"
_MOST = 100_000
"""maximum number of column ids to look for"""
_ASSIGNED = "col-"
"""prefix of the physical names that Delta assigns with column mapping"""


def find_contents(metadata: Metadata) -> Contents:
    """Return the hazards of schema and constraints; empty without a usable schema."""
    configuration = metadata.configuration
    mapped = (configuration.get(_MODE) or "none").lower() in _MODES
    schema_string = metadata.schema_string or ""
    of_schema = _contents_of_schema(schema_string, metadata.partition_columns, mapped)
    dropped = mapped and _were_dropped(schema_string, configuration.get(_HIGHEST))
    constraints = {
        key[len(_CONSTRAINT) :]: text
        for key, text in configuration.items()
        if key.lower().startswith(_CONSTRAINT) and text
    }
    if not dropped and not constraints:
        return of_schema
    found = {hazard: dict.fromkeys(columns) for hazard, columns in of_schema.items()}
    if dropped:
        found[requirements.DROPPED_COLUMNS] = {}
    if constraints:
        columns = _columns_of(metadata.schema)
        for name, text in constraints.items():
            for construct in _constructs(text, columns):
                _add(found, requirements.EXPRESSION_PREFIX + construct, name)
    return _to_contents(found)


_IN_LOWER_CASE: Mapping[str, tuple[str, tuple[str, ...]]] = {
    _MODE: (requirements.MAPPING_MODE_CASE, _MODES),
    "delta.appendOnly": (requirements.SWITCHES_CASE, ("true",)),
    "delta.enableChangeDataFeed": (requirements.SWITCHES_CASE, ("true",)),
}


def find_other_case(configuration: Mapping[str, str | None]) -> Mapping[str, str]:
    """Return the hazard of each property with a value that only its case makes unusual."""
    found = {}
    for key, (hazard, values) in _IN_LOWER_CASE.items():
        value = configuration.get(key) or ""
        if value not in values and value.lower() in values:
            found[key] = hazard
    return found


class _Columns(NamedTuple):
    """The columns that expressions of a table refer to."""

    known: ColumnNames
    times: frozenset[str]
    """names of timestamps, without case"""


def _columns_of(schema: Mapping[str, Any] | None) -> _Columns:
    fields = [each for each in (schema or {}).get("fields") or () if isinstance(each, dict)]
    return _Columns(
        ColumnNames(str(each.get("name")) for each in fields),
        frozenset(
            str(each.get("name")).casefold()
            for each in fields
            if str(each.get("type")).startswith("timestamp")
        ),
    )


def _constructs(text: str, columns: _Columns) -> Iterator[str]:
    """Yield the constructs of an expression; casts of times are one, as their units differ."""
    found = find_constructs(text, columns.known)
    yield from found
    if _CASTS.isdisjoint(found):
        return
    from deltaproto.sql.tokens import scan_tokens

    words = ((each.value if each.quoted else each.text).casefold() for each in scan_tokens(text))
    if not columns.times.isdisjoint(words):
        yield "cast with a timestamp column"


@cache_by_text(1024)
def _were_dropped(schema_string: str, highest_id: str | None) -> bool:
    """Return True if the schema lacks an assigned column id: files keep dropped columns."""
    highest = parse_whole(highest_id or "")
    if highest is None:
        return False
    ids = _ids(parse_schema_string(schema_string))
    return any(number not in ids for number in range(1, min(highest, _MOST) + 1))


@cache_by_text(4096)
def _contents_of_schema(schema_string: str, partitions: Sequence[str], mapped: bool) -> Contents:
    found: _Found = {}
    schema = parse_schema_string(schema_string)
    if schema is None:
        return {}
    columns = [each for each in schema["fields"] if isinstance(each, dict)]
    of_expressions = _columns_of(schema)
    partitioned = frozenset(partitions)
    for hazard, path in _walk(schema, "", mapped):
        _add(found, hazard, path)
    for column in columns:
        if _invariant(column.get("metadata")) is not None:
            _add(
                found, requirements.EXPRESSION_PREFIX + "delta.invariants", str(column.get("name"))
            )
        for text in _column_expressions(column.get("metadata")):
            for construct in _constructs(text, of_expressions):
                _add(found, requirements.EXPRESSION_PREFIX + construct, str(column.get("name")))
    for name in partitions:
        if name not in of_expressions.known:
            _add(found, requirements.PARTITION_NOT_IN_SCHEMA, name)
        if partitions.count(name) > 1:
            _add(found, requirements.REPEATED_PARTITIONS, name)
    if columns and partitioned.issuperset(str(column.get("name")) for column in columns):
        for name in partitions:
            _add(found, requirements.ONLY_PARTITIONS, name)
    for column in columns:
        odd = _hazard_of_partition(column.get("type"))
        if odd is not None and str(column.get("name")) in partitioned:
            _add(found, odd, str(column.get("name")))
    if mapped:
        for path in _ambiguous_columns(schema):
            _add(found, requirements.AMBIGUOUS_COLUMNS, path)
        for column in columns:
            name, physical = str(column.get("name")), _physical(column)
            if name in partitioned and physical not in (None, name):
                _add(found, requirements.MAPPED_PARTITIONS, name)
            elif name not in partitioned and not (physical or _ASSIGNED).startswith(_ASSIGNED):
                _add(found, requirements.MAPPING_ADDED_LATER, name)
    return _to_contents(found)


def _hazard_of_partition(kind: object) -> str | None:
    """Return the hazard of a partition column of this type."""
    if kind == "binary":
        return requirements.BINARY_PARTITIONS
    found = re.fullmatch(_DECIMAL, kind) if isinstance(kind, str) else None
    places = parse_whole(found[2]) if found else None
    return requirements.DECIMAL_PARTITIONS if places else None


def _walk(struct: Mapping[str, Any], parent: str, mapped: bool) -> Iterator[tuple[str, str]]:
    fields = [each for each in struct.get("fields") or () if isinstance(each, dict)]
    yield from _unknown_members(struct, "fields type", parent.rstrip(".") or "the whole schema")
    if parent and not fields:
        yield requirements.TYPE_PREFIX + "empty struct", parent.rstrip(".")
    seen: set[str] = set()
    for field in fields:
        name = str(field.get("name"))
        path = f"{parent}{name}"
        if name.casefold() in seen:
            yield requirements.DUPLICATE_COLUMNS, path
        seen.add(name.casefold())
        if mapped and not _is_mapped(field):
            yield requirements.UNMAPPED_COLUMNS, path
        if mapped and not FORBIDDEN_IN_NAMES.isdisjoint(name):
            yield requirements.MAPPED_NAMES, path
        described = field.get("metadata", {})
        if not isinstance(field.get("nullable"), bool) or described is None:
            yield requirements.TYPE_PREFIX + requirements.MALFORMED, path
        elif "metadata" not in field:
            yield requirements.COLUMNS_WITHOUT_METADATA, path
        yield from _unknown_members(field, "name type nullable metadata", path)
        kind = field.get("type")
        # Most columns have a simple type, for which there is nothing to yield.
        if not isinstance(kind, str) or kind not in _SIMPLE:
            yield from _contents_of_type(kind, path, mapped)


def _ambiguous_columns(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield columns with the column mapping id or the physical path of an earlier one."""
    ids: set[int] = set()
    paths: set[tuple[str, ...]] = set()
    fields = zip(walk_fields(schema), walk_fields(schema, physical=True), strict=True)
    for (name, _), (path, described) in fields:
        # Delta assigns a new id or name where there is none.
        if not isinstance(described.get(_PHYSICAL), str):
            continue
        stored = described.get(_ID)
        if path in paths or (isinstance(stored, int) and stored in ids):
            yield ".".join(name)
        paths.add(path)
        ids |= {stored} if isinstance(stored, int) else set()


def _is_mapped(field: Mapping[str, Any]) -> bool:
    metadata = field.get("metadata")
    if not isinstance(metadata, dict):
        return False
    name = metadata.get(_PHYSICAL)
    return isinstance(name, str) and bool(name) and type(metadata.get(_ID)) is int


def _contents_of_type(kind: Any, path: str, mapped: bool) -> Iterator[tuple[str, str]]:
    if isinstance(kind, str):
        word = _unusual_type(kind)
        if word is not None:
            yield requirements.TYPE_PREFIX + word, path
        if kind == "variant":
            yield from _collection(path, mapped)
    elif isinstance(kind, dict):
        match kind.get("type"):
            case "struct":
                yield from _walk(kind, f"{path}.", mapped)
            case "array":
                yield from _unknown_members(kind, "type elementType containsNull", path)
                yield from _unless(isinstance(kind.get("containsNull"), bool), path)
                yield from _collection(path, mapped)
                yield from _contents_of_type(kind.get("elementType"), f"{path}.element", mapped)
            case "map":
                known = "type keyType valueType valueContainsNull"
                yield from _unknown_members(kind, known, path)
                yield from _unless(isinstance(kind.get("valueContainsNull"), bool), path)
                yield from _collection(path, mapped)
                yield from _contents_of_type(kind.get("keyType"), f"{path}.key", mapped)
                yield from _contents_of_type(kind.get("valueType"), f"{path}.value", mapped)
            case other:
                yield requirements.TYPE_PREFIX + str(other), path
    else:
        yield from _unless(False, path)


def _unknown_members(part: Mapping[str, Any], known: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield the hazard of a part of the schema with members that the specification does not have.

    Source: Spark's `DataType.parseDataType`, which compares the names of all members.
    """
    if not part.keys() <= frozenset(known.split()):
        yield requirements.UNKNOWN_MEMBERS, path


def _unless(well_formed: bool, path: str) -> Iterator[tuple[str, str]]:
    """Yield the hazard of a type that lacks what the specification requires."""
    if not well_formed:
        yield requirements.TYPE_PREFIX + requirements.MALFORMED, path


def _collection(path: str, mapped: bool) -> Iterator[tuple[str, str]]:
    """Yield the hazard of mapped collections: their parts have no column ids in Parquet files."""
    if mapped:
        yield requirements.MAPPED_COLLECTIONS, path


def _unusual_type(kind: str) -> str | None:
    """Return the type's name without parameters, or None for a type of the spec."""
    if kind in _PLAIN or kind.lower().startswith(_OF_FEATURES):
        return None
    decimal = re.fullmatch(_DECIMAL, kind)
    if decimal is not None:
        precision, scale = parse_whole(decimal[1]), parse_whole(decimal[2])
        if precision is None or scale is None or not 1 <= precision <= 38 or scale > precision:
            return _WRONG_DECIMAL
        return None
    name = re.sub(_PARAMETERS, "", kind).strip()
    if name == "decimal" and kind != name:
        return _WRONG_DECIMAL
    if name in ("time", "char", "varchar") and not re.fullmatch(_NUMBERED, kind):
        return kind if kind != name else f"{name} without a number"
    return name or "without a name"


def _ids(kind: Any) -> set[int]:
    """Return the column ids of a type and everything in it, including those for Iceberg."""
    if not isinstance(kind, dict):
        return set()
    found = set().union(*(_ids(kind.get(part)) for part in ("elementType", "keyType", "valueType")))
    for field in kind.get("fields") or ():
        found |= _ids(field.get("type"))
        described = field.get("metadata")
        if isinstance(described, dict):
            nested = described.get(_NESTED)
            values = [described.get(_ID), *(nested.values() if isinstance(nested, dict) else ())]
            found |= {value for value in values if isinstance(value, int)}
    return found


def _column_expressions(metadata: Any) -> Iterator[str]:
    """Yield a column's generation expression and invariants."""
    if not isinstance(metadata, dict):
        return
    generated = metadata.get("delta.generationExpression")
    if isinstance(generated, str):
        yield generated
    invariant = _invariant(metadata)
    if invariant is not None:
        yield invariant


def _invariant(metadata: Any) -> str | None:
    """Return the expression of a column's `delta.invariants` (PROTOCOL.md, "Column Invariants")."""
    if not isinstance(metadata, dict) or "delta.invariants" not in metadata:
        return None
    try:
        return str(json.loads(metadata["delta.invariants"])["expression"]["expression"])
    except (ValueError, TypeError, KeyError):
        return None


def _physical(column: Mapping[str, Any]) -> str | None:
    metadata = column.get("metadata")
    found = metadata.get(_PHYSICAL) if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else None


_Found = dict[str, dict[str, None]]
"""hazard name to columns or constraints, in order and each once"""


def _add(found: _Found, hazard: str, name: str) -> None:
    found.setdefault(hazard, {})[name] = None


def _to_contents(found: _Found) -> Contents:
    return {hazard: tuple(names) for hazard, names in found.items()}
