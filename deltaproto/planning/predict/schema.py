"""A table's columns in the planner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.planning.predict.collations import collated_type
from deltaproto.protocol.metadata import FORBIDDEN_IN_NAMES, quote_if_needed

FORBIDDEN = FORBIDDEN_IN_NAMES

Path = tuple[str, ...]
"""names of the parents, then the column; `element`, `key` and `value` inside collections"""


class Atomic(NamedTuple):
    """A primitive type."""

    name: str


class Array(NamedTuple):
    """An array."""

    element: Type
    nullable: bool = True


class Map(NamedTuple):
    """A map."""

    key: Type
    value: Type
    nullable: bool = True


class Struct(NamedTuple):
    """A struct; also a whole schema."""

    columns: tuple[Column, ...]


Type = Atomic | Array | Map | Struct


class Column(NamedTuple):
    """A column, or a field of a struct."""

    name: str
    type: Type
    nullable: bool = True
    default: str | None = None
    generated: str | None = None
    """expression of a generated column"""
    identity: bool = False
    type_changes: tuple[tuple[Atomic, Atomic], ...] | None = None
    """recorded type changes of the column or its parts; None: none recorded"""
    invariant: str | None = None
    """stored value of `delta.invariants`, a condition as JSON"""

    @property
    def widened(self) -> bool:
        """True if type changes are recorded."""
        return self.type_changes is not None

    @property
    def bound(self) -> bool:
        """True if the feature `invariants` limits its values."""
        return not self.nullable or self.invariant is not None


def is_same_name(one: str, other: str) -> bool:
    """Return True if two names refer to the same column."""
    return one.casefold() == other.casefold()


def dotted_path(path: Path) -> str:
    """Format a path for error messages."""
    return ".".join(path)


def quoted_path(path: Path) -> str:
    """Format a path for column lists: dotted, with Spark's quoting."""
    return ".".join(map(quote_if_needed, path))


def child_columns(column: Column) -> tuple[Column, ...]:
    """Return the direct children of a column: fields, or parts of a collection."""
    match column.type:
        case Struct(columns):
            return columns
        case Array(element, nullable):
            return (Column("element", element, nullable),)
        case Map(key, value, nullable):
            return (Column("key", key, nullable=False), Column("value", value, nullable))
        case Atomic():
            return ()


class FieldIndex:
    """Finds many fields of the same structs without a walk over all fields for each."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Struct, dict[str, Column], dict[str, Column]]] = {}

    def find(self, struct: Struct, name: str) -> Column | None:
        """Return the first field with this name, ignoring case."""
        return self._of(struct)[1].get(name.casefold())

    def find_exact(self, struct: Struct, name: str) -> Column | None:
        """Return the first field with exactly this name."""
        return self._of(struct)[2].get(name)

    def _of(self, struct: Struct) -> tuple[Struct, dict[str, Column], dict[str, Column]]:
        # Keep the struct with its fields, so that no other struct gets its id.
        if id(struct) not in self._known:
            fields = struct.columns[::-1]
            self._known[id(struct)] = (
                struct,
                {field.name.casefold(): field for field in fields},
                {field.name: field for field in fields},
            )
        return self._known[id(struct)]


def find_column(schema: Struct, path: Path, index: FieldIndex | None = None) -> Column | None:
    """Return the column at a path; pass the same `index` to look up many."""
    at: Column = Column("", schema)
    for name in path:
        if index is not None and isinstance(at.type, Struct):
            found = index.find(at.type, name)
        else:
            parts = child_columns(at)
            found = next((part for part in parts if is_same_name(part.name, name)), None)
        if found is None:
            return None
        at = found
    return at if path else None


def resolve_path(schema: Struct, path: Path) -> Path:
    """Return a path with the schema's spelling; unknown names are unchanged."""
    names = []
    for at in range(len(path)):
        found = find_column(schema, path[: at + 1])
        names.append(path[at] if found is None else found.name)
    return tuple(names)


def enclosing_field(schema: Struct, path: Path) -> Path:
    """Return the path of the nearest struct field, skipping parts of collections."""
    while len(path) > 1:
        parent = find_column(schema, path[:-1])
        if parent is None or isinstance(parent.type, Struct):
            break
        path = path[:-1]
    return path


def walk_columns(schema: Struct) -> Iterator[tuple[Path, Column]]:
    """Yield every column, field and part of a collection, with its path."""
    yield from _below(Column("", schema), ())


def _below(column: Column, path: Path) -> Iterator[tuple[Path, Column]]:
    for part in child_columns(column):
        here = (*path, part.name)
        yield here, part
        yield from _below(part, here)


def change_column(schema: Struct, path: Path, change: Callable[[Column], Column | None]) -> Struct:
    """Return the schema with a column changed, or removed if `change` returns None."""
    after = _change_below(Column("", schema), path, change)
    assert after is not None
    assert isinstance(after.type, Struct)
    return after.type


def _change_below(
    column: Column, path: Path, change: Callable[[Column], Column | None]
) -> Column | None:
    if not path:
        return change(column)
    after = []
    for part in child_columns(column):
        new = _change_below(part, path[1:], change) if is_same_name(part.name, path[0]) else part
        if new is not None:
            after.append(new)
    match column.type:
        case Struct():
            return column._replace(type=Struct(tuple(after)))
        case Array():
            return column._replace(type=column.type._replace(element=after[0].type))
        case Map():
            return column._replace(
                type=column.type._replace(key=after[0].type, value=after[1].type)
            )
        case Atomic():
            return column


def add_column(schema: Struct, parent: Path, column: Column) -> Struct:
    """Return the schema with a column appended to the struct at `parent`."""

    def append(to: Column) -> Column:
        assert isinstance(to.type, Struct)
        return to._replace(type=Struct((*to.type.columns, column)))

    return change_column(schema, parent, append)


def move_column(schema: Struct, path: Path, after: str | None) -> Struct:
    """Return the schema with a column moved after a sibling, or to the front (None)."""
    moved = find_column(schema, path)

    def move(to: Column) -> Column:
        if not isinstance(to.type, Struct):
            return to  # Spark moves a part of a collection to the front without effect.
        others = [c for c in to.type.columns if c != moved]
        at = next((n for n, c in enumerate(others, 1) if after and is_same_name(c.name, after)), 0)
        columns = (*others[:at], *(() if moved is None else (moved,)), *others[at:])
        return to._replace(type=Struct(columns))

    return change_column(schema, path[:-1], move)


def find_unmappable(schema: Struct) -> tuple[str, ...]:
    """Return the columns whose names require column mapping."""
    paths = (dotted_path(path) for path, _ in walk_columns(schema))
    return tuple(path for path in paths if FORBIDDEN & set(path))


def columns_of_type(schema: Struct, *prefixes: str) -> tuple[str, ...]:
    """Return the columns whose type name starts with one of these prefixes."""
    return tuple(
        dotted_path(path)
        for path, column in walk_columns(schema)
        if isinstance(column.type, Atomic) and column.type.name.startswith(prefixes)
    )


def find_duplicate(schema: Struct) -> Path | None:
    """Return the first column or field with a duplicate name, ignoring case."""
    for path, column in ((), Column("", schema)), *walk_columns(schema):
        fields = column.type.columns if isinstance(column.type, Struct) else ()
        seen: set[str] = set()
        for field in fields:
            if field.name.casefold() in seen:
                return (*path, field.name)
            seen.add(field.name.casefold())
    return None


def without_type_changes(schema: Struct) -> Struct:
    """Return the schema without recorded type changes."""
    changed = _type_without_changes(schema)
    assert isinstance(changed, Struct)
    return changed


def _type_without_changes(kind: Type) -> Type:
    match kind:
        case Struct(columns):
            return Struct(
                tuple(
                    column._replace(type=_type_without_changes(column.type), type_changes=None)
                    for column in columns
                )
            )
        case Array():
            return kind._replace(element=_type_without_changes(kind.element))
        case Map():
            return kind._replace(
                key=_type_without_changes(kind.key), value=_type_without_changes(kind.value)
            )
        case Atomic():
            return kind


_GENERATED = "delta.generationExpression"
_INVARIANT = "delta.invariants"
_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
_COLLATIONS = "__COLLATIONS"


def parse_schema(schema: Mapping[str, Any]) -> Struct:
    """Convert the parsed JSON schema of a metaData action."""
    return Struct(tuple(_column(field) for field in schema.get("fields") or ()))


def _column(field: Any) -> Column:
    field = field if isinstance(field, Mapping) else {}
    found = field.get("metadata")
    metadata = found if isinstance(found, Mapping) else {}
    name = str(field.get("name", ""))
    kind = _type(field.get("type"))
    if isinstance(kind, Atomic) and isinstance(metadata.get(_LENGTH), str):
        kind = Atomic(metadata[_LENGTH])
    elif isinstance(metadata.get(_COLLATIONS), Mapping):
        kind = _collated(kind, name, metadata[_COLLATIONS])
    generated = metadata.get(_GENERATED)
    default = metadata.get("CURRENT_DEFAULT")
    return Column(
        name,
        kind,
        field.get("nullable") is not False,
        None if default is None else str(default),
        None if generated is None else str(generated),
        any(key.startswith("delta.identity.") for key in metadata),
        _type_changes(metadata["delta.typeChanges"]) if "delta.typeChanges" in metadata else None,
        str(metadata[_INVARIANT]) if _INVARIANT in metadata else None,
    )


def _collated(kind: Type, path: str, collations: Mapping[str, Any]) -> Type:
    """Return a field's type with the collations that its metadata names by path.

    The fields of a struct have their own metadata.
    """
    match kind:
        case Array(element):
            return kind._replace(element=_collated(element, f"{path}.element", collations))
        case Map(key, value):
            return kind._replace(
                key=_collated(key, f"{path}.key", collations),
                value=_collated(value, f"{path}.value", collations),
            )
        case Atomic("string") if path in collations:
            return Atomic(collated_type(str(collations[path])))
        case _:
            return kind


def schema_json(kind: Type) -> Any:
    """Return a type as in a metaData action, without column mapping and defaults."""
    match kind:
        case Atomic(name):
            return "string" if name.startswith(("char", "varchar")) else name
        case Struct(columns):
            return {"type": "struct", "fields": [_field_json(column) for column in columns]}
        case Array(element, nullable):
            items = schema_json(element)
            return {"type": "array", "elementType": items, "containsNull": nullable}
        case Map(key, value, nullable):
            kinds = {"keyType": schema_json(key), "valueType": schema_json(value)}
            return {"type": "map", **kinds, "valueContainsNull": nullable}


def _field_json(column: Column) -> Mapping[str, Any]:
    stored = {_GENERATED: column.generated, _INVARIANT: column.invariant}
    return {
        "name": column.name,
        "type": schema_json(column.type),
        "nullable": column.nullable,
        "metadata": {key: text for key, text in stored.items() if text is not None},
    }


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
            return parse_schema(stored)
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
