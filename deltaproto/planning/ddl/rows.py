"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE: rows change, the protocol does not.

Measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from deltaproto.counts import counted
from deltaproto.planning.ddl.resolution import (
    UNRESOLVED,
    Resolution,
    resolve_condition,
    resolve_delete_condition,
    resolve_replace_condition,
    resolve_value,
)
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.bounds import with_new_rows
from deltaproto.planning.predict.outcome import Outcome, PredictedCommit, Refusal, Rewrite
from deltaproto.planning.predict.schema import (
    Column,
    Path,
    Struct,
    dotted_path,
    find_column,
    find_duplicate,
    is_same_name,
    walk_columns,
)
from deltaproto.planning.predict.table import Table

_NEW_COLUMNS = "the types of the new columns are unknown, because they come from the query"
_EVOLVES = (
    "new columns come from the query, so the schema afterwards is unknown; a VARIANT column "
    "adds variantType to the protocol"
)
ROWS_MAY_BE_REFUSED = (
    "rows that violate a constraint or do not fit their columns make the statement fail"
)
_UNKNOWN = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
_UNKNOWN_OF_NONE = "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"


class RowClauses(NamedTuple):
    """The references of a statement to the table's columns."""

    names: tuple[str, ...] = ()
    """table names that may qualify a column"""
    where: str = ""
    sets: tuple[tuple[Path, str], ...] = ()
    """assignments of columns"""
    columns: tuple[Path, ...] | None = None
    """the columns of an INSERT; None: all of them"""
    values: tuple[tuple[str, ...], ...] = ()
    """the rows of an INSERT"""
    opaque: bool = False
    """True if it has more clauses, which are not analyzed"""


class RowStatement(NamedTuple):
    """A statement that changes rows."""

    operation: str
    """operation name in commitInfo"""
    adds: bool = False
    removes: bool = False
    """True if it removes or changes rows"""
    sure: bool = False
    """True if it commits even without changes"""
    evolves: bool = False
    """True if it may add columns"""
    reads: bool = False
    """True if it adds rows of a query on the same table, and so is not a blind append"""
    words: RowClauses = RowClauses(opaque=True)

    @property
    def rewrites(self) -> bool:
        """True if files with rows that stay may be rewritten."""
        return self.removes and self.operation in ("UPDATE", "DELETE", "MERGE")

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if self.removes and table.is_on("delta.appendOnly"):
            refusal = Refusal(
                "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                "the table is append-only",
                "set delta.appendOnly = false first",
            )
            return Outcome(table, refusal=refusal)
        judged = self._judged(table, engine)
        if judged.refusal is not None:
            return Outcome(table, refusal=judged.refusal)
        # REPLACE WHERE accepts only rows that fulfill the condition.
        replaces = self.operation == "WRITE" and bool(self.words.where)
        by_row = self.adds and (replaces or _has_row_checks(table))
        commit = PredictedCommit(
            self.operation, table.protocol, sure=self.sure and not judged.unresolved and not by_row
        )
        if self.removes and (table.vectors or table.is_on("delta.enableDeletionVectors")):
            # It may leave some rows, or remove the last ones.
            table = table._replace(vectors=None)
        if self.removes and table.row_ids:
            table = table._replace(row_ids=None)
        if self.removes:
            # Maybe of the last such file.
            table = table._replace(
                untracked=None if table.untracked else table.untracked,
                uncounted_files=None if table.uncounted_files else table.uncounted_files,
            )
        # Deletes rewrite files, too.
        table = table.with_new_files()
        table = with_new_rows(table)
        rewrites = Rewrite.SOME if self.rewrites else Rewrite.NONE
        warnings = [ROWS_MAY_BE_REFUSED] * by_row + [UNRESOLVED] * judged.unresolved
        if self.evolves:
            table = table.with_schema(None)._replace(unpredicted=_NEW_COLUMNS)
            warnings = [_EVOLVES, *warnings]
        return Outcome(table, (commit,), rewrites, warnings=tuple(warnings))

    def _judged(self, table: Table, engine: Engine) -> Resolution:
        """Return the first refusal of its column references, and whether all columns are known."""
        if table.schema is None:
            return Resolution(unresolved=True)
        if self.operation == "MERGE" and not table.schema.columns and not self.evolves:
            error = "DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET"
            return Resolution(Refusal(error, "the table has no columns", "first add columns"))
        unresolved = self.words.opaque
        for judged in self._parts(table, table.schema, engine):
            if judged.refusal is not None:
                return judged
            unresolved |= judged.unresolved
        return Resolution(unresolved=unresolved)

    def _parts(self, table: Table, schema: Struct, engine: Engine) -> Iterator[Resolution]:
        words = self.words
        if self.operation == "WRITE":
            yield from _resolve_insert(table, schema, words, engine)
            if words.where:
                yield resolve_replace_condition(table, words.where, engine)
            return
        if words.where:
            judge = resolve_delete_condition if self.operation == "DELETE" else resolve_condition
            yield judge(table, words.where, words.names, engine)
        for number, (path, expression) in enumerate(words.sets):
            found = _find_target_column(schema, path, words.names)
            if isinstance(found, Refusal):
                yield Resolution(found)
                continue
            if any(
                dotted_path(path).casefold() == dotted_path(p).casefold()
                for p, _ in words.sets[:number]
            ):
                yield Resolution(
                    Refusal(
                        "DELTA_CONFLICT_SET_COLUMN",
                        f"{dotted_path(path)} is set twice",
                        "set it once",
                    )
                )
            if found.identity:
                yield Resolution(
                    Refusal(
                        "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                        f"{dotted_path(path)} is an identity column, which UPDATE cannot set",
                        "remove it from SET",
                    )
                )
            yield resolve_value(table, expression, found.type, words.names, engine)


def _find_target_column(schema: Struct, path: Path, names: tuple[str, ...]) -> Column | Refusal:
    """Find the assigned column."""
    if len(path) > 1 and any(is_same_name(path[0], name) for name in names):
        path = path[1:]
    found = find_column(schema, path)
    if found is not None:
        return found
    error = _UNKNOWN if schema.columns else _UNKNOWN_OF_NONE
    if find_column(schema, path[:1]) is not None:
        error = "FIELD_NOT_FOUND"
    remedy = "run DESCRIBE to see the columns"
    return Refusal(error, f"the table has no column {dotted_path(path)}", remedy)


def _resolve_insert(
    table: Table, schema: Struct, words: RowClauses, engine: Engine
) -> Iterator[Resolution]:
    targets: list[Column] = []
    for path in words.columns or ():
        found = _find_target_column(schema, path, ())
        if isinstance(found, Refusal):
            yield Resolution(found)
            return
        if found in targets:
            error = "COLUMN_ALREADY_EXISTS"
            yield Resolution(Refusal(error, f"{dotted_path(path)} is listed twice", "list it once"))
        targets.append(found)
    if any(map(_is_computed, schema.columns)):
        # Whether values are accepted depends on how columns are generated.
        yield Resolution(unresolved=True)
    if words.columns is None:
        targets = [*schema.columns]
    if len({len(row) for row in words.values}) > 1:
        error, message = "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH", "rows differ in length"
        yield Resolution(Refusal(error, message, "give each row the same number of values"))
        return
    for row in words.values:
        counted = len(row) == len(targets)
        if not counted and (words.columns is not None or len(row) < len(targets)):
            yield Resolution(_column_count_refusal(row, targets, named=words.columns is not None))
            return
        # By position, Spark casts the values before it counts them.
        for expression, column in zip(row, targets, strict=False):
            if not column.identity:
                alone = table._replace(schema=Struct(()))
                yield resolve_value(alone, expression, column.type, (), engine)
        if not counted:
            yield Resolution(_column_count_refusal(row, targets, named=False))
            return
    yield from _refuse_equal_names(schema, named=words.columns is not None)
    required = (c for c in schema.columns if not (c.nullable or _is_computed(c)))
    missing = [column.name for column in required if column.default is None]
    absent = [name for name in missing if name not in [c.name for c in targets]]
    if absent:
        yield Resolution(
            Refusal(
                "DELTA_INSERT_COLUMN_MISMATCH",
                f"{', '.join(absent)} must have a value",
                "add it to the statement",
            )
        )


def _is_computed(column: Column) -> bool:
    return column.generated is not None or column.identity


def _refuse_equal_names(schema: Struct, *, named: bool) -> Iterator[Resolution]:
    """Refuse rows for a table in which two names differ in case only."""
    twice = find_duplicate(schema)
    if twice is None:
        return
    error = "DELTA_DUPLICATE_COLUMNS_FOUND.EXISTING_SCHEMA"
    if named:
        # Columns that are not listed are filled from the schema, by name.
        error = "AMBIGUOUS_REFERENCE" if len(twice) == 1 else "AMBIGUOUS_REFERENCE_TO_FIELDS"
    message = f"two columns have the name {dotted_path(twice)}, apart from case"
    remedy = "write the rows to a new table with other names"
    yield Resolution(Refusal(error, message, remedy))


def _column_count_refusal(row: tuple[str, ...], targets: list[Column], *, named: bool) -> Refusal:
    more = len(row) > len(targets)
    if named:
        error = "INSERT_COLUMN_ARITY_MISMATCH." + (
            "TOO_MANY_DATA_COLUMNS" if more else "NOT_ENOUGH_DATA_COLUMNS"
        )
    else:
        error = "DELTA_METADATA_MISMATCH" if more else "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
    columns = counted(len(targets), "column")
    message = f"a row has {counted(len(row), 'value')} for {columns}"
    return Refusal(error, message, "give each column one value")


def _has_row_checks(table: Table) -> bool:
    """Return True if only the row values decide whether rows are accepted."""
    if table.constraints:
        return True
    columns = [column for _, column in walk_columns(table.schema or Struct(()))]
    return any(
        column.bound
        or column.generated is not None
        or str(getattr(column.type, "name", "")).startswith(("char", "varchar"))
        for column in columns
    )
