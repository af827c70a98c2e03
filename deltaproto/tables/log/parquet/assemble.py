"""From the levels of the leaves back to nested values (Dremel), the way Arrow shows them.

All leaves of a struct repeat its levels; any disagreement between them is corrupt data.
"""

from __future__ import annotations

from typing import Any

from deltaproto.tables.log.parquet.errors import NotSimple
from deltaproto.tables.log.parquet.pages import Cells, Entry
from deltaproto.tables.log.parquet.schema import Leaf, Node, Repeated, Struct, leaves_of


def column_values(column: Struct, cells: dict[int, Cells], rows: int) -> list[dict[str, Any]]:
    """The values of a top-level struct in one row group of `rows` rows, without nulls.

    `cells` are those of its leaves, by their index.

    Raises:
        NotSimple: the leaves disagree.
    """
    leaves = [cells[leaf.index] for leaf in leaves_of(column)]
    present = leaves[0].rows
    if any(leaf.rows != present or leaf.count != rows for leaf in leaves):
        raise NotSimple("leaves that disagree about their rows")
    found = []
    for position in range(len(present)):
        row = {index: cell.entries[position] for index, cell in cells.items()}
        value = _value(column, row)
        if not isinstance(value, dict):
            raise NotSimple("leaves that disagree about a null")
        found.append(value)
    return found


def _value(node: Node, row: dict[int, list[Entry]]) -> Any:
    if isinstance(node, Leaf):
        (entry,) = row[node.index]
        return entry[1]
    if isinstance(node, Repeated):
        return _repeated(node, row)
    present = {row[leaf.index][0][0] >= node.definition for leaf in leaves_of(node)}
    if len(present) > 1:
        raise NotSimple("leaves that disagree about a null")
    if present == {False}:
        return None
    return {name: _value(field, row) for name, field in node.fields.items()}


def _repeated(node: Repeated, row: dict[int, list[Entry]]) -> Any:
    columns = [row[leaf.index] for leaf in node.leaves]
    # Up to the level of an empty list the levels are the same in keys and values.
    depths = [[min(level, node.definition + 1) for level, _ in column] for column in columns]
    first = depths[0]
    if any(depth != first for depth in depths):
        raise NotSimple("keys and values that do not go together")
    is_map = len(columns) == 2
    if min(first) <= node.definition:
        if len(first) > 1:
            raise NotSimple("an empty list with elements")
        if first[0] < node.definition:
            return None
        return {} if is_map else []
    if not is_map:
        return [value for _, value in columns[0]]
    if any(level < node.leaves[0].definition for level, _ in columns[0]):
        raise NotSimple("a map with a null key")
    return {key: value for (_, key), (_, value) in zip(*columns, strict=True)}
