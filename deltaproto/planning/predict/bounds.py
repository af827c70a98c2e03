"""The bounds of columns in the statistics of data files, after a statement.

Readers may misread a missing bound (rule DP144). The schema and two properties determine which
bounds readers expect. The bounds that exist depend on who wrote each file, and when.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from deltaproto.clients import requirements
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.predict.schema import schema_json
from deltaproto.planning.predict.statistics import statistics_columns
from deltaproto.planning.predict.table import Table
from deltaproto.policy.hazards import HAZARDS_OF_BOUNDS
from deltaproto.protocol.column_bounds import ColumnBounds, missing_bound
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.indexed_columns import IndexedColumn, select_indexed
from deltaproto.protocol.properties import INDEXED_COLUMNS_PROPERTY, STATISTICS_COLUMNS_PROPERTY

OF_BOUNDS = frozenset(
    {
        *HAZARDS_OF_BOUNDS.values(),
        requirements.UNREAD_BOOLEAN_BOUNDS,
        requirements.ROUNDED_TIMESTAMPS,
    }
)
"""hazards that depend on which bounds readers expect"""
_EVERY = {INDEXED_COLUMNS_PROPERTY: "-1"}


class BoundHazards(NamedTuple):
    """The hazards of `OF_BOUNDS` that a table has."""

    present: frozenset[str]
    unseen: frozenset[str]
    """hazards that the table may or may not have"""


def find_bound_hazards(table: Table) -> BoundHazards | None:
    """Return the hazards after statements that may have changed them; None: as before."""
    if not table.bounds_changed:
        return None
    if table.bounds is None or table.schema is None:
        return BoundHazards(frozenset(), OF_BOUNDS)
    columns = list(_expected(table))
    present = {HAZARDS_OF_BOUNDS[trace] for trace in table.bounds.traces(columns)}
    unread = not table.bounds.complete and any(column.boolean for column in columns)
    if unread and requirements.UNBOUNDED_BOOLEANS not in present:
        present.add(requirements.UNREAD_BOOLEAN_BOUNDS)
    if any(column.type.startswith("timestamp") for column in columns):
        present.add(requirements.ROUNDED_TIMESTAMPS)
    unsure = (column for column in columns if column.name in table.unsure_bounds)
    unseen = {HAZARDS_OF_BOUNDS[trace] for column in unsure for trace in _possible(column)}
    return BoundHazards(frozenset(present), frozenset(unseen - present))


def _possible(column: IndexedColumn) -> Iterator[Trace]:
    """Yield what readers may misread in a column about which nothing is known."""
    yield missing_bound(column)
    if column.type in ("float", "double"):
        yield Trace.NAN_BOUNDS
    if column.type.startswith("decimal"):
        yield Trace.EXPONENT_BOUNDS


def follow_bounds(before: Table, after: Table, rewrites: Rewrite) -> Table:
    """Return the table `after` a statement, with the known facts about its statistics.

    Args:
        rewrites: the most that the statement may rewrite.
    """
    if before.uncounted_files and rewrites not in (Rewrite.NONE, Rewrite.VECTORS):
        after = after._replace(uncounted_files=False if after.rewritten else None)
    indexing = _indexing(before) != _indexing(after)
    rewritten = rewrites is not Rewrite.NONE
    if after.bounds is None or after.schema is None:
        # Rewriting alone changes the bounds of few tables; `requirements_after` knows most.
        return after._replace(bounds=None, bounds_changed=after.bounds_changed or indexing)
    if indexing:
        after = _reindexed(before, after, after.bounds)
    if rewritten and after.bounds is not None:
        purged = bool(before.vectors) and after.vectors is False and before.all_vectors
        after = _rewritten(after, after.bounds, every=after.rewritten or purged)
    return after._replace(all_vectors=after.all_vectors and not rewritten)


def hazards_of_copy(table: Table) -> BoundHazards | None:
    """Return the hazards of a new table with the same columns and rows, written by Delta Spark."""
    after = table._replace(rewritten=True)
    return find_bound_hazards(follow_bounds(table, after, Rewrite.ALL))


def with_new_rows(table: Table) -> Table:
    """Return the table after a statement that writes rows of unknown values."""
    unsure = table.unsure_bounds
    if table.bounds is not None and table.schema is not None:
        unsure |= table.bounds.columns - _stored_columns(table)
        unsure |= _misread_by_value(table)
    return table._replace(unsure_bounds=unsure, bounds_changed=True, all_vectors=False)


def _indexing(table: Table) -> tuple[Any, ...]:
    return (
        table.schema,
        table.partition_columns,
        table.configuration.get(STATISTICS_COLUMNS_PROPERTY),
        table.configuration.get(INDEXED_COLUMNS_PROPERTY),
    )


def _reindexed(before: Table, after: Table, bounds: ColumnBounds) -> Table:
    """Return the table after its columns changed, or the columns whose bounds readers expect."""
    names = frozenset(column.name for column in _columns(after))
    new = names - bounds.columns
    unsure = after.unsure_bounds & names
    missing = bounds.missing & names
    if bounds.partial:
        missing |= new
    if not bounds.complete:
        # Files that were not read may lack bounds that were not required before.
        newly = {c.name for c in _expected(after)} - {c.name for c in _expected(before)}
        unsure |= (new | newly) - missing
    return after._replace(
        bounds=bounds._replace(
            columns=names,
            missing=missing,
            valued=bounds.valued & names,
            nan=bounds.nan & names,
            exponents=bounds.exponents & names,
        ),
        unsure_bounds=unsure,
        bounds_changed=True,
    )


def _rewritten(table: Table, bounds: ColumnBounds, *, every: bool) -> Table:
    """Return the table after Delta Spark rewrote files, with the bounds that it stores.

    Args:
        every: True if it rewrote every file; False for an unknown part of them.
    """
    other = bounds.columns - _stored_columns(table)
    unsure = table.unsure_bounds
    # Delta-rs leaves out a NaN, and exponents.
    newly = bounds.columns if table.delta_rs_files else bounds.missing
    if bounds.uncounted or not bounds.complete:
        # Files without statistics get some.
        newly = bounds.columns
        unsure |= other - bounds.missing
        bounds = bounds._replace(complete=False)
    unsure |= newly & _misread_by_value(table)
    if every:
        structs = {column.name for column in _columns(table) if not column.type}
        unsure |= (bounds.missing & structs) | (bounds.missing & other) - bounds.valued
        bounds = bounds._replace(missing=bounds.valued & other - structs)
    else:
        unsure |= (bounds.valued & other) - bounds.missing
    return table._replace(bounds=bounds, unsure_bounds=unsure, bounds_changed=True)


def _misread_by_value(table: Table) -> frozenset[str]:
    """Return the columns with values whose bounds readers misread."""
    return frozenset(c.name for c in _columns(table) if len([*_possible(c)]) > 1)


def _stored_columns(table: Table) -> frozenset[str]:
    """Return the columns for which Delta Spark stores bounds."""
    return frozenset(path[0] for path in statistics_columns(table))


def _expected(table: Table) -> Iterator[IndexedColumn]:
    assert table.schema is not None
    return select_indexed(schema_json(table.schema), table.configuration, table.partition_columns)


def _columns(table: Table) -> Iterator[IndexedColumn]:
    """Return every column of the data files that can have bounds."""
    assert table.schema is not None
    return select_indexed(schema_json(table.schema), _EVERY, table.partition_columns)
