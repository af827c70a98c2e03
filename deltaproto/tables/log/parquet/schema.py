"""The elements of a Parquet schema, and the meaning of their annotations.

Source: https://github.com/apache/parquet-format/blob/master/LogicalTypes.md
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from deltaproto.caches import cache_by_text
from deltaproto.tables.log.parquet.thrift import (
    BINARY,
    BOOL,
    BYTE,
    I32,
    STRUCT,
    CompactReader,
    UnsupportedParquet,
    WantedFields,
)

TYPE, REPETITION, NAME, CHILDREN, _CONVERTED, _LOGICAL = 1, 3, 4, 5, 6, 10
_ELEMENT: WantedFields = {
    TYPE: I32,
    REPETITION: I32,
    NAME: BINARY,
    CHILDREN: I32,
    _CONVERTED: I32,
    _LOGICAL: {1: {}, 2: {}, 3: {}, 10: {1: BYTE, 2: BOOL}},
}
_OPTIONAL, REPEATED = 1, 2

# An annotation is a name and, for integers, the number of bits.
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

PLAIN = ("", 0)
_OTHER = ("other", 0)


def read_element(thrift: CompactReader) -> dict[int, Any]:
    """Parse an element: a name, and either a type or children, as constants of this module.

    Raises:
        UnsupportedParquet, LookupError, ValueError: it is corrupt.
    """
    element = thrift.struct(_ELEMENT)
    element[NAME].decode()
    children = element.get(CHILDREN, 0)
    if children < 0 or bool(children) == (TYPE in element):
        raise UnsupportedParquet("a schema element that is neither leaf nor group")
    return element


def is_optional(element: dict[int, Any]) -> int:
    """Return 1 or 0: the element's contribution to the definition level.

    Raises:
        UnsupportedParquet: the element is repeated.
    """
    repetition: int = element[REPETITION]
    if repetition not in (0, _OPTIONAL):
        raise UnsupportedParquet("a repeated field without annotation")
    return repetition


def annotation_of(element: dict[int, Any]) -> tuple[str, int]:
    """Return name and bits; the old and the new annotation format must agree."""
    converted = element.get(_CONVERTED)
    logical = element.get(_LOGICAL)
    names = []
    if converted is not None:
        names.append(_CONVERTED_NAMES.get(converted, _OTHER))
    if logical is not None:
        names.append(_logical(logical))
    if len(set(names)) > 1:
        return _OTHER
    return names[0] if names else PLAIN


def _logical(union: dict[int, Any]) -> tuple[str, int]:
    if len(union) != 1:
        return _OTHER
    ((member, value),) = union.items()
    if member == _LOGICAL_INTEGER:
        return ("int", value[1]) if value[2] else _OTHER
    return _LOGICAL_NAMES[member]


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
    """A column that stores values."""

    __slots__ = ("bits", "definition", "index", "path", "repetition", "type")

    def __init__(self, index: int, type_: int, bits: int, path: list[bytes]) -> None:
        self.index = index
        self.type = type_
        self.bits = bits
        self.path = path
        self.definition = 0
        self.repetition = 0


class ParquetGroup:
    """A group without annotation. It is not null at definition level `definition` or higher."""

    __slots__ = ("definition", "fields")

    def __init__(self, definition: int, fields: dict[str, Node]) -> None:
        self.definition = definition
        self.fields = fields


class RepeatedGroup:
    """A list of scalars, or a map of scalars when it has two leaves.

    It is not null at definition level `definition` or higher, and not empty at higher levels.
    """

    __slots__ = ("definition", "leaves")

    def __init__(self, definition: int, leaves: list[Leaf]) -> None:
        self.definition = definition
        self.leaves = leaves


Node: TypeAlias = Leaf | ParquetGroup | RepeatedGroup


def leaves_of(node: Node) -> list[Leaf]:
    """Return the leaves below `node` in file order."""
    if isinstance(node, Leaf):
        return [node]
    if isinstance(node, RepeatedGroup):
        return node.leaves
    return [leaf for field in node.fields.values() for leaf in leaves_of(field)]


@cache_by_text(16)
def read_schema(elements: bytes, wanted: tuple[str, ...]) -> tuple[Mapping[str, ParquetGroup], int]:
    """Return the wanted top-level structs by name in file order, and the number of all leaves.

    Args:
        elements: the serialized list of schema elements.

    Raises:
        UnsupportedParquet: a wanted column has a different structure, or the schema is corrupt.
    """
    schema = _SchemaReader(CompactReader(elements), wanted)
    schema.read()
    if not schema.leaves:
        raise UnsupportedParquet("a schema without columns")
    return MappingProxyType(schema.columns), schema.leaves


class _SchemaReader:
    """Reads the flattened schema of a footer, building only the wanted columns.

    After `read`, `columns` has the wanted top-level structs by name in file order and `leaves` is
    the number of leaves of all columns.
    """

    def __init__(self, thrift: CompactReader, wanted: tuple[str, ...]) -> None:
        self.columns: dict[str, ParquetGroup] = {}
        self.leaves = 0
        self._thrift = thrift
        self._left = 0
        self._wanted = {name.encode() for name in wanted}

    def read(self) -> None:
        """Process the whole list of schema elements.

        Raises:
            UnsupportedParquet: a wanted column has a different structure, or the schema is corrupt.
        """
        self._left = self._thrift.elements(STRUCT)
        for _ in range(self._next()[CHILDREN]):
            element = self._next()
            name = element[NAME]
            if name in self._wanted:
                column = self._struct(element, [name], 0)
                if self.columns.setdefault(name.decode(), column) is not column:
                    raise UnsupportedParquet("two columns with the same name")
            else:
                self._pass_over(element)
        if self._left:
            raise UnsupportedParquet("schema elements outside the schema")

    def _next(self) -> dict[int, Any]:
        self._left -= 1
        if self._left < 0:
            raise UnsupportedParquet("the schema is truncated")
        return read_element(self._thrift)

    def _pass_over(self, element: dict[int, Any]) -> None:
        pending = 1
        while True:
            pending += element.get(CHILDREN, 0) - 1
            self.leaves += TYPE in element
            if pending <= 0:
                return
            element = self._next()

    def _struct(self, element: dict[int, Any], path: list[bytes], definition: int) -> ParquetGroup:
        if TYPE in element or annotation_of(element) != PLAIN or element[CHILDREN] < 1:
            raise UnsupportedParquet("a column is not a plain struct")
        definition += is_optional(element)
        fields: dict[str, Node] = {}
        for _ in range(element[CHILDREN]):
            child = self._next()
            name = child[NAME].decode()
            if name in fields or len(path) > _DEEPEST:
                raise UnsupportedParquet("fields with the same name, or nested too deeply")
            fields[name] = self._node(child, [*path, child[NAME]], definition)
        return ParquetGroup(definition, fields)

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
            raise UnsupportedParquet("a type that is not supported")
        leaf = Leaf(self.leaves, element[TYPE], _INTEGERS.get(kind, 0), path)
        leaf.definition = definition + is_optional(element)
        leaf.repetition = repetition
        self.leaves += 1
        return leaf

    def _list(self, element: dict[int, Any], path: list[bytes], definition: int) -> RepeatedGroup:
        definition += is_optional(element)
        entry = self._only_child(element)
        path = [*path, entry[NAME]]
        if TYPE in entry:
            item = {**entry, REPETITION: 0}
        else:
            name: bytes = entry[NAME]
            # Arrow reads these as a list of structs.
            if entry[CHILDREN] != 1 or name == b"array" or name.endswith(b"_tuple"):
                raise UnsupportedParquet("a list of structs")
            item = self._next()
            path = [*path, item[NAME]]
            if annotation_of(entry) != PLAIN or TYPE not in item:
                raise UnsupportedParquet("a list of non-scalars")
        return RepeatedGroup(definition, [self._leaf(item, path, definition + 1, 1)])

    def _map(self, element: dict[int, Any], path: list[bytes], definition: int) -> RepeatedGroup:
        definition += is_optional(element)
        entry = self._only_child(element)
        if TYPE in entry or entry[CHILDREN] != 2:
            raise UnsupportedParquet("a map without keys and values")
        # Writers store MAP_KEY_VALUE here, or nothing.
        if annotation_of(entry)[0] not in ("", "map"):
            raise UnsupportedParquet("a map of unknown layout")
        leaves = []
        for _ in range(2):
            child = self._next()
            if TYPE not in child:
                raise UnsupportedParquet("a map of non-scalars")
            where = [*path, entry[NAME], child[NAME]]
            leaves.append(self._leaf(child, where, definition + 1, 1))
        return RepeatedGroup(definition, leaves)

    def _only_child(self, element: dict[int, Any]) -> dict[int, Any]:
        if element[CHILDREN] != 1:
            raise UnsupportedParquet("a list or map with more than one child")
        entry = self._next()
        if entry[REPETITION] != REPEATED:
            raise UnsupportedParquet("a list or map that is not repeated")
        return entry
