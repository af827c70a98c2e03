"""What the statistics of a table's data files show about the bounds of each column.

Columns that are not indexed count as well, because a change of the table's properties can make
readers expect their bounds.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from deltaproto.protocol.feature import Trace
from deltaproto.protocol.indexed_columns import IndexedColumn

_NOTHING: frozenset[str] = frozenset()


class ColumnBounds(NamedTuple):
    """Top-level columns, grouped by what the statistics of some file show about them."""

    columns: frozenset[str] = _NOTHING
    """the columns whose bounds were looked for; others were added later"""
    missing: frozenset[str] = _NOTHING
    """a file has bounds, but none of this column, which may have values there"""
    valued: frozenset[str] = _NOTHING
    """a file has a value of this column"""
    nan: frozenset[str] = _NOTHING
    """NaN is a bound of this column"""
    exponents: frozenset[str] = _NOTHING
    """a bound of this decimal column has an exponent"""
    partial: bool = False
    """a file has bounds, so it lacks those of a column that is added later"""
    uncounted: bool = False
    """a file has no bounds at all"""
    complete: bool = False
    """the statistics of every file were read"""

    def traces(self, expected: Iterable[IndexedColumn]) -> set[Trace]:
        """Return what readers misread if they expect the bounds of these columns."""
        found = set()
        for column in expected:
            if column.name in self.missing:
                found.add(missing_bound(column))
            if column.name in self.nan:
                found.add(Trace.NAN_BOUNDS)
            if column.name in self.exponents:
                found.add(Trace.EXPONENT_BOUNDS)
        return found

    def renamed(self, names: Mapping[str, str]) -> "ColumnBounds":
        """Return the bounds with renamed columns; names that are not mapped stay."""

        def rename(columns: frozenset[str]) -> frozenset[str]:
            return frozenset(names.get(name, name) for name in columns)

        return self._replace(
            columns=rename(self.columns),
            missing=rename(self.missing),
            valued=rename(self.valued),
            nan=rename(self.nan),
            exponents=rename(self.exponents),
        )


def missing_bound(column: IndexedColumn) -> Trace:
    """Return the trace of a file that has no bounds of the column."""
    if column.later:
        return Trace.UNBOUNDED_LATER_COLUMNS
    return Trace.UNBOUNDED_BOOLEANS if column.boolean else Trace.UNBOUNDED_COLUMNS
