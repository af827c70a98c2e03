"""Compares a copy with the table that it was made from: columns, properties and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deltaproto.counts import counted
from deltaproto.execution.copy_state import CopyNames, NamedTable
from deltaproto.execution.runner import StatementRunner
from deltaproto.planning.ddl.constraint_text import restorable_text, stored_text
from deltaproto.planning.from_state import read_comments, table_from_state
from deltaproto.planning.plan import Plan
from deltaproto.planning.predict.schema import (
    Atomic,
    Column,
    Struct,
    parse_schema,
    walk_columns,
    without_type_changes,
)
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.copy_by_name import loss_names
from deltaproto.sql.quoting import quote_identifier


class CopiedColumns(NamedTuple):
    """The columns of the new table, with their expressions over the old one."""

    names: tuple[str, ...]
    selected: str
    hashed: tuple[bool, ...]
    """True for columns that Spark can hash as they are: maps and variants are not"""

    def source(self, table: str, condition: str = "") -> str:
        """Return the query that reads the rows of the new table from the old one."""
        # Every name in it is quoted.
        where = f" WHERE {condition}" if condition else ""
        return f"SELECT {self.selected} FROM {table}{where}"  # noqa: S608

    def insert(self, new: str, query: str, *, overwrite: bool = False) -> str:
        """Return the statement that adds the rows of `source` to the new table."""
        listed = ", ".join(map(quote_identifier, self.names))
        return f"INSERT {'OVERWRITE' if overwrite else 'INTO'} {new} ({listed}) {query}"

    def copied(self, table: str) -> str:
        """Return the query that reads the rows of the new table."""
        return f"SELECT {', '.join(map(quote_identifier, self.names))} FROM {table}"  # noqa: S608


def columns_of_copy(fill: str, names: CopyNames, new: NamedTable) -> CopiedColumns | None:
    """Return the columns of a copy; None if the new table has others than the statement.

    Args:
        fill: the plan's statement INSERT INTO … SELECT … FROM the old table.
    """
    columns = parse_schema(new.state.metadata.schema or {}).columns
    listed = ", ".join(quote_identifier(column.name) for column in columns)
    start, end = f"INSERT INTO {names.new} ({listed}) SELECT ", f" FROM {names.table}"
    if not (fill.startswith(start) and fill.endswith(end)):
        return None
    return CopiedColumns(
        tuple(column.name for column in columns),
        fill[len(start) : -len(end)],
        tuple(map(_is_hashable, columns)),
    )


def _is_hashable(column: Column) -> bool:
    below = walk_columns(Struct((column,)))
    return all(part.type != Atomic("variant") and path[-1:] != ("key",) for path, part in below)


def find_different_definition(plan: Plan, old: NamedTable, new: NamedTable) -> str | None:
    """Describe the first difference between two tables, except for losses that the plan lists."""
    return next(_find_differences(plan, old, new), None)


def _find_differences(plan: Plan, old: NamedTable, new: NamedTable) -> Iterator[str]:
    lost = {*loss_names(plan.steps)}
    wanted = plan.steps[-1].protocol_after
    if new.state.protocol != wanted:
        yield f"its protocol is {new.state.protocol}, and should be {wanted}"
    was, now = table_from_state(old.state), table_from_state(new.state)
    if not {"names", "types"} & lost:
        columns = [_outline(table.schema or Struct(()), lost) for table in (was, now)]
        if columns[0] != columns[1]:
            yield "its columns differ"
        comments = [read_comments(table.state.metadata) for table in (old, new)]
        if comments[0] != comments[1]:
            yield "its comments differ"
        if was.partition_columns != now.partition_columns:
            yield f"its partition columns are {now.partition_columns}"
        if "clustering" not in lost and (was.clustering or ()) != (now.clustering or ()):
            yield f"its clustering columns are {now.clustering}"
    kept = {} if "constraints" in lost else _checks(was)
    copied = _checks(now)
    if any(copied.get(name) != text for name, text in kept.items()):
        yield "its constraints differ"


def _checks(table: Table) -> dict[str, str]:
    """Return the constraints' expressions, with the names and spaces that Delta Spark writes."""
    texts = {name.lower(): table.configuration[key] for name, key in table.constraints.items()}
    return {name: stored_text(restorable_text(text) or text) for name, text in texts.items()}


def _outline(schema: Struct, lost: set[str]) -> Sequence[Column]:
    return [
        column._replace(
            identity=False,
            default=None if "defaults" in lost else column.default,
            generated=None if "generated" in lost else column.generated,
            nullable="not-null" in lost or column.nullable,
        )
        for column in without_type_changes(schema).columns
    ]


def find_different_rows(
    runner: StatementRunner, columns: CopiedColumns, source: str, copied: str
) -> str | None:
    """Describe how the rows of two queries differ; None if counts and checksums are equal.

    A checksum is the sum of the hashes of a column, or of whole rows, so order does not matter.

    Raises:
        EngineError: when Spark cannot run a query.
    """
    (old,), old_types = runner.query(_checksums(columns, source))
    (new,), new_types = runner.query(_checksums(columns, copied))
    assert old_types == new_types
    _, old_types = runner.query(f"{source} LIMIT 0")
    _, new_types = runner.query(f"{copied} LIMIT 0")
    if old_types != new_types:
        return f"the columns are {new_types}, and should be {old_types}"
    if old[0] != new[0]:
        return f"it has {counted(new[0], 'row')}, and should have {old[0]:,}"
    names = ("rows as a whole", *columns.names)
    pairs = zip(names, tuple(old)[1:], tuple(new)[1:], strict=True)
    different = [name for name, one, other in pairs if one != other]
    return f"the values differ in {', '.join(different)}" if different else None


def _checksums(columns: CopiedColumns, query: str) -> str:
    values = [
        name if plain else f"to_json(named_struct('v', {name}), map('ignoreNullFields', 'false'))"
        for name, plain in zip(map(quote_identifier, columns.names), columns.hashed, strict=True)
    ]
    sums = [f"sum(CAST(xxhash64({value}) AS DECIMAL(38, 0)))" for value in values]
    whole = f"sum(CAST(xxhash64({', '.join(values)}) AS DECIMAL(38, 0)))"
    return f"SELECT count(*), {whole}, {', '.join(sums)} FROM ({query})"  # noqa: S608
