"""The wanted columns of a Parquet schema, as trees of the few shapes that are supported.

Names inside lists and maps do not matter, only their shape does, so that the layouts of Spark,
parquet-mr, parquet-rs and Arrow are all understood.

Source: https://github.com/apache/parquet-format/blob/master/LogicalTypes.md and Arrow's
`parquet/arrow/schema.cc` for the legacy lists.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from deltaproto.tables.log.parquet.errors import NotSimple
from deltaproto.tables.log.parquet.thrift import (
    BINARY,
    BOOL,
    BYTE,
    I32,
    STRUCT,
    Compact,
    Wanted,
)

BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY = 0, 1, 2, 4, 5, 6

_TYPE, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _LOGICAL = 1, 3, 4, 5, 6, 10
_ELEMENT: Wanted = {
    _TYPE: I32,
    _REPETITION: I32,
    _NAME: BINARY,
    _CHILDREN: I32,
    _CONVERTED: I32,
    _LOGICAL: {1: {}, 2: {}, 3: {}, 10: {1: BYTE, 2: BOOL}},
}
_OPTIONAL, _REPEATED = 1, 2

# An annotation is a pair of name and, for integers, bits.
_CONVERTED_NAMES: dict[int, tuple[str, int]] = {
    0: ("string", 0),
    1: ("map", 0),
    2: ("map", 0),
    3: ("list", 0),
    15: ("int", 8),
    16: ("int", 16),
    17: ("int", 32),
    18: ("int", 64),
}
_LOGICAL_NAMES = {1: ("string", 0), 2: ("map", 0), 3: ("list", 0)}
_LOGICAL_INTEGER = 10

_PLAIN = ("", 0)
_OTHER = ("other", 0)
_INTEGERS = {
    (INT32, _PLAIN): 32,
    (INT64, _PLAIN): 64,
    (INT32, ("int", 8)): 8,
    (INT32, ("int", 16)): 16,
    (INT32, ("int", 32)): 32,
    (INT64, ("int", 64)): 64,
}
_OTHERS = {
    (BOOLEAN, _PLAIN),
    (FLOAT, _PLAIN),
    (DOUBLE, _PLAIN),
    (BYTE_ARRAY, ("string", 0)),
}
_DEEPEST = 6


class Leaf:
    """A column that really holds values."""

    __slots__ = ("bits", "definition", "index", "path", "repetition", "type")

    def __init__(self, index: int, type_: int, bits: int, path: list[bytes]) -> None:
        self.index = index
        self.type = type_
        self.bits = bits
        self.path = path
        self.definition = 0
        self.repetition = 0


class Struct:
    """A group without annotation; not null from definition level `definition` on."""

    __slots__ = ("definition", "fields")

    def __init__(self, definition: int, fields: dict[str, Node]) -> None:
        self.definition = definition
        self.fields = fields


class Repeated:
    """A list of scalars, or a map of scalars when it has two leaves.

    It is not null from definition level `definition` on and not empty above that.
    """

    __slots__ = ("definition", "leaves")

    def __init__(self, definition: int, leaves: list[Leaf]) -> None:
        self.definition = definition
        self.leaves = leaves


Node: TypeAlias = Leaf | Struct | Repeated


def leaves_of(node: Node) -> list[Leaf]:
    """The leaves below `node` in the order of the file."""
    if isinstance(node, Leaf):
        return [node]
    if isinstance(node, Repeated):
        return node.leaves
    return [leaf for field in node.fields.values() for leaf in leaves_of(field)]


class SchemaReader:
    """Reads the flattened schema of a footer, building only the wanted columns.

    After `read`, `columns` holds the wanted top-level structs by name in the order of the file
    and `leaves` counts the leaves of all columns.
    """

    def __init__(self, thrift: Compact, wanted: tuple[str, ...]) -> None:
        self.columns: dict[str, Struct] = {}
        self.leaves = 0
        self._thrift = thrift
        self._left = 0
        self._wanted = {name.encode() for name in wanted}

    def read(self) -> None:
        """Takes the whole list of schema elements.

        Raises:
            NotSimple: a wanted column has another shape, or the schema is corrupt.
        """
        self._left = self._thrift.elements(STRUCT)
        for _ in range(self._next()[_CHILDREN]):
            element = self._next()
            name = element[_NAME]
            if name in self._wanted:
                column = self._struct(element, [name], 0)
                if self.columns.setdefault(name.decode(), column) is not column:
                    raise NotSimple("two columns of one name")
            else:
                self._pass_over(element)
        if self._left:
            raise NotSimple("schema elements outside of the schema")

    def _next(self) -> dict[int, Any]:
        self._left -= 1
        if self._left < 0:
            raise NotSimple("the schema ends too early")
        return _element(self._thrift)

    def _pass_over(self, element: dict[int, Any]) -> None:
        pending = 1
        while True:
            pending += element.get(_CHILDREN, 0) - 1
            self.leaves += _TYPE in element
            if pending <= 0:
                return
            element = self._next()

    def _struct(self, element: dict[int, Any], path: list[bytes], definition: int) -> Struct:
        if _TYPE in element or _annotation(element) != _PLAIN or element[_CHILDREN] < 1:
            raise NotSimple("a column is not a plain struct")
        definition += _is_optional(element)
        fields: dict[str, Node] = {}
        for _ in range(element[_CHILDREN]):
            child = self._next()
            name = child[_NAME].decode()
            if name in fields or len(path) > _DEEPEST:
                raise NotSimple("fields of one name, or nested too deeply")
            fields[name] = self._node(child, [*path, child[_NAME]], definition)
        return Struct(definition, fields)

    def _node(self, element: dict[int, Any], path: list[bytes], definition: int) -> Node:
        if _TYPE in element:
            return self._leaf(element, path, definition)
        annotation = _annotation(element)[0]
        if annotation == "list":
            return self._list(element, path, definition)
        if annotation == "map":
            return self._map(element, path, definition)
        return self._struct(element, path, definition)

    def _leaf(
        self, element: dict[int, Any], path: list[bytes], definition: int, repetition: int = 0
    ) -> Leaf:
        kind = (element[_TYPE], _annotation(element))
        if kind not in _INTEGERS and kind not in _OTHERS or element.get(_CHILDREN):
            raise NotSimple("a type that is not supported")
        leaf = Leaf(self.leaves, element[_TYPE], _INTEGERS.get(kind, 0), path)
        leaf.definition = definition + _is_optional(element)
        leaf.repetition = repetition
        self.leaves += 1
        return leaf

    def _list(self, element: dict[int, Any], path: list[bytes], definition: int) -> Repeated:
        definition += _is_optional(element)
        entry = self._only_child(element)
        path = [*path, entry[_NAME]]
        if _TYPE in entry:
            item = {**entry, _REPETITION: 0}
        else:
            name: bytes = entry[_NAME]
            # Arrow takes these for a list of structs.
            if entry[_CHILDREN] != 1 or name == b"array" or name.endswith(b"_tuple"):
                raise NotSimple("a list of structs")
            item = self._next()
            path = [*path, item[_NAME]]
            if _annotation(entry) != _PLAIN or _TYPE not in item:
                raise NotSimple("a list of something else than scalars")
        return Repeated(definition, [self._leaf(item, path, definition + 1, 1)])

    def _map(self, element: dict[int, Any], path: list[bytes], definition: int) -> Repeated:
        definition += _is_optional(element)
        entry = self._only_child(element)
        if _TYPE in entry or entry[_CHILDREN] != 2:
            raise NotSimple("a map without keys and values")
        # Writers put MAP_KEY_VALUE here, or nothing.
        if _annotation(entry)[0] not in ("", "map"):
            raise NotSimple("a map of unknown layout")
        leaves = []
        for _ in range(2):
            child = self._next()
            if _TYPE not in child:
                raise NotSimple("a map of something else than scalars")
            where = [*path, entry[_NAME], child[_NAME]]
            leaves.append(self._leaf(child, where, definition + 1, 1))
        return Repeated(definition, leaves)

    def _only_child(self, element: dict[int, Any]) -> dict[int, Any]:
        if element[_CHILDREN] != 1:
            raise NotSimple("a list or map with more than one child")
        entry = self._next()
        if entry[_REPETITION] != _REPEATED:
            raise NotSimple("a list or map that does not repeat")
        return entry


def _element(thrift: Compact) -> dict[int, Any]:
    element = thrift.struct(_ELEMENT)
    children = element.get(_CHILDREN, 0)
    if children < 0 or bool(children) == (_TYPE in element):
        raise NotSimple("a schema element that is neither leaf nor group")
    return element


def _is_optional(element: dict[int, Any]) -> int:
    repetition: int = element[_REPETITION]
    if repetition not in (0, _OPTIONAL):
        raise NotSimple("a repeated field without annotation")
    return repetition


def _annotation(element: dict[int, Any]) -> tuple[str, int]:
    converted = element.get(_CONVERTED)
    logical = element.get(_LOGICAL)
    names = []
    if converted is not None:
        names.append(_CONVERTED_NAMES.get(converted, _OTHER))
    if logical is not None:
        names.append(_logical(logical))
    if len(set(names)) > 1:
        return _OTHER
    return names[0] if names else _PLAIN


def _logical(union: dict[int, Any]) -> tuple[str, int]:
    if len(union) != 1:
        return _OTHER
    ((member, value),) = union.items()
    if member == _LOGICAL_INTEGER:
        return ("int", value[1]) if value[2] else _OTHER
    return _LOGICAL_NAMES[member]
