"""The wanted columns of a Parquet schema, as trees of the few shapes that are supported.

Names inside lists and maps do not matter, only their shape does, so that the layouts of Spark,
parquet-mr, parquet-rs and Arrow are all understood.

Source: https://github.com/apache/parquet-format/blob/master/LogicalTypes.md and Arrow's
`parquet/arrow/schema.cc` for the legacy lists.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from deltaproto.tables.log.parquet.elements import (
    CHILDREN,
    NAME,
    PLAIN,
    REPEATED,
    REPETITION,
    TYPE,
    annotation_of,
    is_optional,
    read_element,
)
from deltaproto.tables.log.parquet.errors import NotSimple
from deltaproto.tables.log.parquet.thrift import STRUCT, Compact

BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY = 0, 1, 2, 4, 5, 6

_INTEGERS = {
    (INT32, PLAIN): 32,
    (INT64, PLAIN): 64,
    (INT32, ("int", 8)): 8,
    (INT32, ("int", 16)): 16,
    (INT32, ("int", 32)): 32,
    (INT64, ("int", 64)): 64,
}
_OTHERS = {
    (BOOLEAN, PLAIN),
    (FLOAT, PLAIN),
    (DOUBLE, PLAIN),
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
        for _ in range(self._next()[CHILDREN]):
            element = self._next()
            name = element[NAME]
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
        return read_element(self._thrift)

    def _pass_over(self, element: dict[int, Any]) -> None:
        pending = 1
        while True:
            pending += element.get(CHILDREN, 0) - 1
            self.leaves += TYPE in element
            if pending <= 0:
                return
            element = self._next()

    def _struct(self, element: dict[int, Any], path: list[bytes], definition: int) -> Struct:
        if TYPE in element or annotation_of(element) != PLAIN or element[CHILDREN] < 1:
            raise NotSimple("a column is not a plain struct")
        definition += is_optional(element)
        fields: dict[str, Node] = {}
        for _ in range(element[CHILDREN]):
            child = self._next()
            name = child[NAME].decode()
            if name in fields or len(path) > _DEEPEST:
                raise NotSimple("fields of one name, or nested too deeply")
            fields[name] = self._node(child, [*path, child[NAME]], definition)
        return Struct(definition, fields)

    def _node(self, element: dict[int, Any], path: list[bytes], definition: int) -> Node:
        if TYPE in element:
            return self._leaf(element, path, definition)
        annotation = annotation_of(element)[0]
        if annotation == "list":
            return self._list(element, path, definition)
        if annotation == "map":
            return self._map(element, path, definition)
        return self._struct(element, path, definition)

    def _leaf(
        self, element: dict[int, Any], path: list[bytes], definition: int, repetition: int = 0
    ) -> Leaf:
        kind = (element[TYPE], annotation_of(element))
        if (kind not in _INTEGERS and kind not in _OTHERS) or element.get(CHILDREN):
            raise NotSimple("a type that is not supported")
        leaf = Leaf(self.leaves, element[TYPE], _INTEGERS.get(kind, 0), path)
        leaf.definition = definition + is_optional(element)
        leaf.repetition = repetition
        self.leaves += 1
        return leaf

    def _list(self, element: dict[int, Any], path: list[bytes], definition: int) -> Repeated:
        definition += is_optional(element)
        entry = self._only_child(element)
        path = [*path, entry[NAME]]
        if TYPE in entry:
            item = {**entry, REPETITION: 0}
        else:
            name: bytes = entry[NAME]
            # Arrow takes these for a list of structs.
            if entry[CHILDREN] != 1 or name == b"array" or name.endswith(b"_tuple"):
                raise NotSimple("a list of structs")
            item = self._next()
            path = [*path, item[NAME]]
            if annotation_of(entry) != PLAIN or TYPE not in item:
                raise NotSimple("a list of something else than scalars")
        return Repeated(definition, [self._leaf(item, path, definition + 1, 1)])

    def _map(self, element: dict[int, Any], path: list[bytes], definition: int) -> Repeated:
        definition += is_optional(element)
        entry = self._only_child(element)
        if TYPE in entry or entry[CHILDREN] != 2:
            raise NotSimple("a map without keys and values")
        # Writers put MAP_KEY_VALUE here, or nothing.
        if annotation_of(entry)[0] not in ("", "map"):
            raise NotSimple("a map of unknown layout")
        leaves = []
        for _ in range(2):
            child = self._next()
            if TYPE not in child:
                raise NotSimple("a map of something else than scalars")
            where = [*path, entry[NAME], child[NAME]]
            leaves.append(self._leaf(child, where, definition + 1, 1))
        return Repeated(definition, leaves)

    def _only_child(self, element: dict[int, Any]) -> dict[int, Any]:
        if element[CHILDREN] != 1:
            raise NotSimple("a list or map with more than one child")
        entry = self._next()
        if entry[REPETITION] != REPEATED:
            raise NotSimple("a list or map that does not repeat")
        return entry
