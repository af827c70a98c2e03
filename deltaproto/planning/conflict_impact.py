"""The impact of a step's commit on concurrent writers, the step itself and streams.

Sources: Delta Spark's `ConflictChecker` (see `writer_survival`); delta-rs's `ConflictChecker`,
measured with nine releases (see `conflicts.delta_rs`); the Databricks page "Isolation levels and
write conflicts": every metadata change fails every concurrent write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from functools import lru_cache

from deltaproto.conflicts.delta_rs import PYTHON
from deltaproto.conflicts.matrix import (
    MatrixEngine,
    build_cells,
    matrix_level,
)
from deltaproto.conflicts.operation import (
    Cell,
    Conflict,
    ExceptionName,
    Operation,
)
from deltaproto.counts import all_names
from deltaproto.planning.ddl.change_column import ChangeColumn
from deltaproto.planning.ddl.create import CreateTable
from deltaproto.planning.ddl.rows import RowStatement
from deltaproto.planning.ddl.user_statement import AddConstraint, StatementEffect, UserStatement
from deltaproto.planning.engine import EngineName
from deltaproto.planning.plan import (
    StepConflict,
    StreamEffect,
    StreamImpact,
)
from deltaproto.planning.predict.outcome import REMOVE_MAPPING, Outcome
from deltaproto.planning.predict.schema import walk_columns
from deltaproto.planning.predict.table import Table
from deltaproto.planning.statement import DropFeature, Statement, Wait
from deltaproto.planning.writer_survival import (
    EVERY_WRITE,
    UNKNOWN_WRITERS,
    Writers,
    describe_affected_writers,
    describe_other_writers,
    only_changes_clustering,
    predict_writer_fates,
)
from deltaproto.protocol.isolation import (
    ISOLATION_PROPERTY,
    IsolationLevel,
    evaluate_isolation,
)
from deltaproto.protocol.isolation import WriterEngine as Writer

_DELTA_SPARK, _DELTA_RS = EngineName.DELTA_SPARK.value, str(Writer.DELTA_RS)
_DATABRICKS = EngineName.DATABRICKS.value
_COMMIT_FAILED_ERROR = PYTHON.rpartition(".")[2]
_METADATA, _PROTOCOL = str(ExceptionName.METADATA), str(ExceptionName.PROTOCOL)
_EVERY_WRITE = "every concurrent write"
_DOCUMENTED = "as documented, every metadata or protocol change fails concurrent writes"
_COMPACTIONS = ("REORG", "OPTIMIZE")
_REWRITE_OPERATIONS = (*_COMPACTIONS, REMOVE_MAPPING)
# Commits whose conflicts the matrices describe.
_IN_MATRIX = {
    "WRITE": Operation.INSERT,
    "UPDATE": Operation.UPDATE,
    "DELETE": Operation.DELETE,
    "TRUNCATE": Operation.DELETE,
    "MERGE": Operation.MERGE,
    "OPTIMIZE": Operation.OPTIMIZE,
    "REORG": Operation.REORG,
    "RESTORE": Operation.RESTORE,
}
_DATA_OPERATIONS = frozenset(_IN_MATRIX.values()) - {Operation.RESTORE}
_MAY_LOSE = _DATA_OPERATIONS | {Operation.METADATA_CHANGE, Operation.RESTORE}
_MAY_WIN = _MAY_LOSE | {Operation.PROTOCOL_CHANGE}
_WHOLE_TABLE = {
    Operation.METADATA_CHANGE: "metadata changes",
    Operation.PROTOCOL_CHANGE: "protocol changes",
    Operation.RESTORE: "RESTORE",
}
_REMOVED_FOR_DELTA_RS = (
    "the step removes data files; deltalake 1.6.6 does not notice that an OPTIMIZE, an overwrite "
    "or a DELETE without predicate removes the same files, and rows are duplicated or reappear"
)
_FILE_OPERATIONS = frozenset(
    {"WRITE", "UPDATE", "DELETE", "MERGE", "TRUNCATE"}
    | {"OPTIMIZE", "REORG", "VACUUM START", "VACUUM END"}
)


def find_step_conflicts(
    statement: Statement, before: Table, outcome: Outcome, writers: Writers = UNKNOWN_WRITERS
) -> Iterator[StepConflict]:
    """Yield the concurrent transactions that conflict with a step.

    Args:
        writers: Delta Spark writers. If their releases are unknown, every outcome is listed.
    """
    if isinstance(statement, Wait) or not outcome.commits:
        return
    effect = statement.effect if isinstance(statement, UserStatement) else None
    evolves = isinstance(effect, RowStatement) and effect.evolves
    operations = [commit.operation for commit in outcome.commits]
    only_files, restores = changes_only_files(operations), "RESTORE" in operations
    changes = not (only_files or restores) or evolves
    if only_files or restores:
        yield from _lost_data_writes(effect, before, outcome)
    if restores:
        yield from _metadata_conflicts_elsewhere(before, outcome)
    if only_files or restores or _reads_rows(effect, outcome):
        yield from _failures_by_data(effect, before, outcome, changes)
    if changes:
        yield from _metadata_conflicts(statement, before, outcome, writers)
        if not (only_files or restores):
            yield from _lost_restores(before)
        yield from _rewrite_conflicts(outcome)
        yield from _failures_by_changes(before, outcome)


def changes_only_files(operations: Iterable[str]) -> bool:
    """Return True if commits with these operations change neither metadata nor protocol."""
    return _FILE_OPERATIONS.issuperset(operations)


def _lost_data_writes(
    effect: StatementEffect | None, before: Table, outcome: Outcome
) -> Iterator[StepConflict]:
    """Yield the writers that a change of data files fails, from the conflict matrices."""
    steps = {*_matrix_operations(effect, outcome)}
    lost = [
        cell
        for cell in _cells(MatrixEngine.DELTA_SPARK, before)
        if cell.against in steps and (cell.operation in _MAY_LOSE or cell.conflict is Conflict.YES)
    ]
    for who, exception, when in _merged(lost, lambda cell: cell.operation):
        yield StepConflict(_DELTA_SPARK, who, exception, when, "writer")
    rs = _cells(MatrixEngine.DELTA_RS, before)
    hit = {each.operation for each in rs if each.against in steps} & _DATA_OPERATIONS
    if hit and Operation.RESTORE not in steps:
        adds = isinstance(effect, RowStatement) and not effect.removes
        why = "the step adds files that they may have to read" if adds else _REMOVED_FOR_DELTA_RS
        yield StepConflict(_DELTA_RS, _in_words(hit), _COMMIT_FAILED_ERROR, why, "writer")


def _lost_restores(before: Table) -> Iterator[StepConflict]:
    """Yield the RESTORE that any metadata or protocol change fails."""
    lost = [
        cell
        for cell in _cells(MatrixEngine.DELTA_SPARK, before)
        if (cell.operation, cell.against) == (Operation.RESTORE, Operation.METADATA_CHANGE)
    ]
    for who, exception, when in _merged(lost, lambda cell: cell.operation):
        yield StepConflict(_DELTA_SPARK, who, exception, when, "writer")


def _failures_by_data(
    effect: StatementEffect | None, before: Table, outcome: Outcome, changes: bool
) -> Iterator[StepConflict]:
    """Yield what fails a step that reads or writes data files, from the conflict matrices.

    Args:
        changes: True if it also changes metadata. Then blind appends count at both levels.
    """
    steps = {*_matrix_operations(effect, outcome)}
    winners = _DATA_OPERATIONS if changes else _MAY_WIN
    level = IsolationLevel.SERIALIZABLE if changes else None
    failing = [
        cell
        for cell in _cells(MatrixEngine.DELTA_SPARK, before, level)
        if cell.operation in steps and cell.against in winners
    ]
    for who, exception, when in _merged(failing, lambda cell: cell.against):
        why = f"{when} The step can be run again."
        yield StepConflict(_DELTA_SPARK, who, exception, why, "step")


def _failures_by_changes(before: Table, outcome: Outcome) -> Iterator[StepConflict]:
    """Yield what other metadata and protocol changes do to a step that changes metadata."""
    protocol = [_PROTOCOL] * (outcome.table.protocol != before.protocol)
    for exception in (_METADATA, *protocol):
        why = "it always conflicts with the step; the step can be run again"
        who = "any other metadata or protocol change"
        yield StepConflict(_DELTA_SPARK, who, exception, why, "step")
    if _has_identity(before) is not False:
        who = "INSERT and MERGE that generate identity values"
        why = "they store the column's counter, which is metadata; the step can be run again"
        yield StepConflict(_DELTA_SPARK, who, _METADATA, why, "step")


def _cells(
    engine: MatrixEngine, table: Table, level: IsolationLevel | None = None
) -> tuple[Cell, ...]:
    """Return the cells with exceptions for a table, or for another isolation level."""
    isolation = evaluate_isolation(table.configuration.get(ISOLATION_PROPERTY))
    level = level or matrix_level(engine, isolation)
    return _conflicting_cells(engine, level, _has_identity(table))


def _has_identity(table: Table) -> bool | None:
    """Return True if the table has identity columns; None: unknown."""
    if table.schema is not None:
        return any(column.identity for _, column in walk_columns(table.schema))
    return None if "identityColumns" in table.protocol.supported else False


@lru_cache
def _conflicting_cells(
    engine: MatrixEngine, level: IsolationLevel, identity: bool | None
) -> tuple[Cell, ...]:
    cells = build_cells(engine, level, identity=identity)
    return tuple(cell for cell in cells if cell.conflict is not Conflict.NO)


def _matrix_operations(effect: StatementEffect | None, outcome: Outcome) -> Iterator[Operation]:
    for commit in outcome.commits:
        operation = _IN_MATRIX.get(commit.operation, Operation.METADATA_CHANGE)
        appends = operation in (Operation.INSERT, Operation.METADATA_CHANGE)
        if appends and _reads_rows(effect, outcome):
            yield Operation.MERGE
        elif operation is not Operation.METADATA_CHANGE:
            yield operation


def _reads_rows(effect: StatementEffect | None, outcome: Outcome) -> bool:
    """Return True if it reads rows, which makes an INSERT or a metadata change like MERGE."""
    if any(commit.operation == REMOVE_MAPPING for commit in outcome.commits):
        return True
    match effect:
        case RowStatement():
            return effect.removes or effect.reads
        case ChangeColumn():
            return effect.sync_identity
    return isinstance(effect, AddConstraint | CreateTable)


def _merged(
    cells: Iterable[Cell], other: Callable[[Cell], Operation]
) -> Iterator[tuple[str, str, str]]:
    """Yield the other operations of cells that are alike, with one exception, and when."""
    found: dict[tuple[str, str], set[Operation]] = {}
    for cell in cells:
        for exception in cell.exceptions:
            found.setdefault((str(exception), cell.when), set()).add(other(cell))
    for (name, when), operations in found.items():
        data = operations & _DATA_OPERATIONS
        whole = [_WHOLE_TABLE[each] for each in _WHOLE_TABLE if each in operations]
        files = [f"{_in_words(data)} of the same partitions or files"] if data else []
        yield all_names([*files, *whole]), name, when


def _in_words(operations: Set[Operation]) -> str:
    return all_names([str(each) for each in Operation if each in operations])


def _rewrite_conflicts(outcome: Outcome) -> Iterator[StepConflict]:
    operations = {commit.operation for commit in outcome.commits}
    if not operations.isdisjoint(_REWRITE_OPERATIONS):
        why = "the step rewrites data files, and both remove the same files"
        for exception in (ExceptionName.DELETE_READ, ExceptionName.DELETE_DELETE):
            yield StepConflict(
                _DELTA_SPARK, "UPDATE, DELETE, MERGE and OPTIMIZE", str(exception), why, "writer"
            )
    if not operations.isdisjoint(_COMPACTIONS):
        yield StepConflict(
            _DELTA_SPARK,
            "UPDATE, DELETE, MERGE and OPTIMIZE that commit while files are rewritten",
            str(ExceptionName.DELETE_READ),
            "files that the step rewrites were removed; the step can be run again",
            "step",
        )


def _metadata_conflicts(
    statement: Statement, before: Table, outcome: Outcome, writers: Writers
) -> Iterator[StepConflict]:
    if only_changes_clustering(statement, before):
        for loser, rest in (
            ("writer", "other writers are rebased"),
            ("step", "run the step again"),
        ):
            yield StepConflict(
                _DELTA_SPARK,
                "other changes of the clustering columns",
                str(ExceptionName.TRANSACTION),
                f"both write the same metadata domain; {rest}",
                loser,
            )
        yield StepConflict(_DATABRICKS, _EVERY_WRITE, _METADATA, _DOCUMENTED, "writer")
        return
    every_release = set()
    for fate in predict_writer_fates(statement, before, outcome, writers):
        if fate.since is None and fate.until is None:
            every_release.add(fate.exception)
        if (hit := describe_affected_writers(fate, writers)) is not None:
            yield StepConflict(_DELTA_SPARK, hit, fate.exception, fate.why, "writer")
    raised = outcome.table.protocol.supported - before.protocol.supported
    exceptions = {_PROTOCOL} - every_release if raised else set()
    rebased = ""
    if not every_release:
        exceptions.add(_METADATA)
        rebased = f"; {describe_other_writers(before, outcome, writers)}"
    for exception in sorted(exceptions):
        why = f"two such transactions always conflict{rebased}"
        who = "other metadata or protocol changes"
        yield StepConflict(_DELTA_SPARK, who, exception, why, "writer")
    yield from _metadata_conflicts_elsewhere(before, outcome)


def _metadata_conflicts_elsewhere(before: Table, outcome: Outcome) -> Iterator[StepConflict]:
    """Yield the impact of a metadata change on writers other than Delta Spark."""
    yield StepConflict(
        _DELTA_RS,
        EVERY_WRITE,
        _COMMIT_FAILED_ERROR,
        "deltalake treats all new metadata and any higher protocol as a conflict; it does not "
        "notice a protocol that is only lowered",
        "writer",
    )
    changed = before.protocol.supported != outcome.table.protocol.supported
    exception = _PROTOCOL if changed else _METADATA
    yield StepConflict(_DATABRICKS, _EVERY_WRITE, exception, _DOCUMENTED, "writer")


def predict_stream_impacts(
    statement: Statement, before: Table, outcome: Outcome
) -> Iterator[StreamImpact]:
    """Yield the impact on streams that read the table."""
    operations = [commit.operation for commit in outcome.commits]
    if isinstance(statement, Wait) or changes_only_files(operations):
        return
    unmapped = any(commit.operation == REMOVE_MAPPING for commit in outcome.commits)
    if unmapped:
        yield StreamImpact(
            "Delta Spark, every stream",
            StreamEffect.ENDS,
            "column mapping is removed: DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG, "
            "even after a restart; with schemaTrackingLocation it continues only if spark."
            "databricks.delta.streaming.allowSourceColumnRenameAndDrop is set",
        )
    else:
        yield _impact_without_schema_log(statement, before, outcome.table)
        stops = sum(commit.operation not in ("Empty Commit", "REORG") for commit in outcome.commits)
        times = "once" if stops == 1 else f"up to {stops} times"
        yield StreamImpact(
            "Delta Spark, with schemaTrackingLocation",
            StreamEffect.RESTART,
            f"it stops {times} with DELTA_STREAMING_METADATA_EVOLUTION",
        )
    yield StreamImpact("Databricks, as documented", StreamEffect.RESTART, "the metadata changes")
    if isinstance(statement, DropFeature) and statement.truncate:
        yield StreamImpact(
            "every lagging stream",
            StreamEffect.LOSES,
            "commits that it has not read yet may be deleted",
        )


def _impact_without_schema_log(statement: Statement, before: Table, after: Table) -> StreamImpact:
    """Return the impact on a Delta Spark stream without a schema log."""
    reads = "Delta Spark, plain"
    if before.schema is None or after.schema is None:
        if not isinstance(statement, UserStatement):
            return StreamImpact(reads, StreamEffect.CONTINUES, "the schema does not change")
        return StreamImpact(reads, StreamEffect.RESTART, "the schema may change (it is unknown)")
    if before.schema is after.schema:
        return StreamImpact(reads, StreamEffect.CONTINUES, "the stream is not affected")
    old, new = dict(walk_columns(before.schema)), dict(walk_columns(after.schema))
    if not old.keys() <= new.keys():
        why = "columns are removed: DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
        return StreamImpact(reads, StreamEffect.ENDS, f"{why}, even after a restart")
    changed = any(old.get(path, column)[:3] != column[:3] for path, column in new.items())
    if changed or len(new) > len(old):
        return StreamImpact(
            reads, StreamEffect.RESTART, "it stops once: DELTA_SCHEMA_CHANGED_WITH_VERSION"
        )
    return StreamImpact(reads, StreamEffect.CONTINUES, "the stream is not affected")
