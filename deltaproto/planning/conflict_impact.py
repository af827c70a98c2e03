"""The impact of a step's commit on concurrent writers, the step itself and streams.

Sources: Delta Spark's `ConflictChecker` (see `writer_survival`); delta-rs's `ConflictChecker`,
measured with nine releases (see `conflicts.delta_rs`); the Databricks page "Isolation levels and
write conflicts": every metadata change fails every concurrent write.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from deltaproto.conflicts.delta_rs import PYTHON
from deltaproto.conflicts.matrix import (
    MatrixEngine,
    matrix_level,
)
from deltaproto.conflicts.operation import (
    APPEND_OPERATIONS,
    Cell,
    Conflict,
    ExceptionName,
    Operation,
)
from deltaproto.counts import all_names
from deltaproto.planning.concurrency_change import matrix_cells
from deltaproto.planning.ddl.rows import RowStatement
from deltaproto.planning.ddl.user_statement import StatementEffect, UserStatement
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
    evaluate_isolation,
)
from deltaproto.protocol.isolation import WriterEngine as Writer

_DELTA_SPARK, _DELTA_RS = EngineName.DELTA_SPARK.value, str(Writer.DELTA_RS)
_COMMIT_FAILED_ERROR = PYTHON.rpartition(".")[2]
_METADATA, _PROTOCOL = str(ExceptionName.METADATA), str(ExceptionName.PROTOCOL)
_EVERY_WRITE = "every concurrent write"
_DOCUMENTED = "as documented, every metadata or protocol change fails concurrent writes"
_REWRITE_OPERATIONS = ("REORG", "OPTIMIZE", REMOVE_MAPPING)
# Commits without metadata or protocol changes; the matrices describe their conflicts.
_IN_MATRIX = {
    "WRITE": Operation.INSERT,
    "UPDATE": Operation.UPDATE,
    "DELETE": Operation.DELETE,
    "TRUNCATE": Operation.DELETE,
    "MERGE": Operation.MERGE,
    "OPTIMIZE": Operation.OPTIMIZE,
    "REORG": Operation.REORG,
}
_DATA_OPERATIONS = frozenset(_IN_MATRIX.values())
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
    only_files = changes_only_files(commit.operation for commit in outcome.commits)
    if only_files:
        yield from _file_conflicts(effect, before, outcome)
    if not only_files or evolves:
        yield from _metadata_conflicts(statement, before, outcome, writers)
        yield from _rewrite_conflicts(outcome)
    yield StepConflict(
        _DELTA_SPARK,
        "any other metadata or protocol change",
        _METADATA,
        "it always conflicts with the step; the step can be run again",
        "step",
    )


def changes_only_files(operations: Iterable[str]) -> bool:
    """Return True if commits with these operations change neither metadata nor protocol."""
    return _FILE_OPERATIONS.issuperset(operations)


def _file_conflicts(
    effect: StatementEffect | None, before: Table, outcome: Outcome
) -> Iterator[StepConflict]:
    """Yield the conflicts of a step that changes only data files, from the conflict matrices."""
    steps = set(_matrix_operations(effect, outcome))
    spark = [cell for cell in _data_cells(MatrixEngine.DELTA_SPARK, before) if cell.exceptions]
    lost = [cell for cell in spark if cell.against in steps]
    for who, exception, when in _merged(lost, lambda cell: cell.operation):
        yield StepConflict(_DELTA_SPARK, who, exception, when, "writer")
    rs = _data_cells(MatrixEngine.DELTA_RS, before)
    hit = {c.operation for c in rs if c.against in steps and c.conflict is not Conflict.NO}
    if hit:
        removes = steps - APPEND_OPERATIONS
        why = _REMOVED_FOR_DELTA_RS if removes else "the step adds files that they may have to read"
        yield StepConflict(_DELTA_RS, _in_words(hit), _COMMIT_FAILED_ERROR, why, "writer")
    failing = [cell for cell in spark if cell.operation in steps]
    for who, exception, when in _merged(failing, lambda cell: cell.against):
        why = f"{when} The step can be run again."
        yield StepConflict(_DELTA_SPARK, who, exception, why, "step")


def _data_cells(engine: MatrixEngine, table: Table) -> Iterator[Cell]:
    isolation = evaluate_isolation(table.configuration.get(ISOLATION_PROPERTY))
    level = matrix_level(engine, isolation)
    schema = table.schema
    columns = None if schema is None else [column for _, column in walk_columns(schema)]
    identity = None if columns is None else any(column.identity for column in columns)
    for cell in matrix_cells(engine, level, frozenset(), None, identity):
        if {cell.operation, cell.against} <= _DATA_OPERATIONS:
            yield cell


def _matrix_operations(effect: StatementEffect | None, outcome: Outcome) -> Iterator[Operation]:
    for commit in outcome.commits:
        if commit.operation == "WRITE" and isinstance(effect, RowStatement) and effect.removes:
            # An overwrite removes files and adds others.
            yield Operation.MERGE
        elif commit.operation in _IN_MATRIX:
            yield _IN_MATRIX[commit.operation]


def _merged(
    cells: Iterable[Cell], other: Callable[[Cell], Operation]
) -> Iterator[tuple[str, str, str]]:
    """Yield the other operations of cells that are alike, with one exception, and when."""
    found: dict[tuple[str, str], set[Operation]] = {}
    for cell in cells:
        for exception in cell.exceptions:
            found.setdefault((str(exception), cell.when), set()).add(other(cell))
    for (name, when), operations in found.items():
        yield f"{_in_words(operations)} of the same partitions or files", name, when


def _in_words(operations: Container[Operation]) -> str:
    return all_names([str(each) for each in Operation if each in operations])


def _rewrite_conflicts(outcome: Outcome) -> Iterator[StepConflict]:
    if any(commit.operation in _REWRITE_OPERATIONS for commit in outcome.commits):
        why = "the step rewrites data files, and both remove the same files"
        for exception in (ExceptionName.DELETE_READ, ExceptionName.DELETE_DELETE):
            yield StepConflict(
                _DELTA_SPARK, "UPDATE, DELETE, MERGE and OPTIMIZE", str(exception), why, "writer"
            )
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
    databricks = EngineName.DATABRICKS.value
    if only_changes_clustering(statement, before):
        yield StepConflict(
            _DELTA_SPARK,
            "other changes of the clustering columns",
            str(ExceptionName.TRANSACTION),
            "both write the same metadata domain; other writers are rebased",
            "writer",
        )
        yield StepConflict(databricks, _EVERY_WRITE, _METADATA, _DOCUMENTED, "writer")
        return
    dropped = before.protocol.supported - outcome.table.protocol.supported
    raised = outcome.table.protocol.supported - before.protocol.supported
    survives = True
    for fate in predict_writer_fates(statement, before, outcome, writers):
        survives &= fate != fate._replace(since=None, until=None)
        if (hit := describe_affected_writers(fate, writers)) is not None:
            yield StepConflict(_DELTA_SPARK, hit, fate.exception, fate.why, "writer")
    if survives:
        yield StepConflict(
            _DELTA_SPARK,
            "other metadata or protocol changes",
            _PROTOCOL if raised else _METADATA,
            "two such transactions always conflict; "
            + describe_other_writers(before, outcome, writers),
            "writer",
        )
    yield StepConflict(
        _DELTA_RS,
        EVERY_WRITE,
        _COMMIT_FAILED_ERROR,
        "deltalake treats all new metadata and any higher protocol as a conflict; it does not "
        "notice a protocol that is only lowered",
        "writer",
    )
    exception = _PROTOCOL if dropped or raised else _METADATA
    yield StepConflict(databricks, _EVERY_WRITE, exception, _DOCUMENTED, "writer")


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
