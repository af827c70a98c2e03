"""The impact of a step's commit on concurrent writers, the step itself and streams.

Sources: Delta Spark's `ConflictChecker` (see `writer_survival`); delta-rs's `ConflictChecker`,
measured with nine releases (see `conflicts.delta_rs`); the Databricks page "Isolation levels and
write conflicts": every metadata change fails every concurrent write.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from deltaproto.conflicts.delta_rs import PYTHON
from deltaproto.conflicts.matrix import (
    Compute,
    MatrixEngine,
    ResolvedByRow,
    build_cells,
    default_level,
    resolve_by_row,
)
from deltaproto.conflicts.operation import UNLISTED_OPERATIONS, Cell, ExceptionName, Operation
from deltaproto.planning.ddl.user_statement import UserStatement
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.plan import (
    CellOutcome,
    ChangedCell,
    ConcurrencyChange,
    ConcurrencyRules,
    StepConflict,
    StreamEffect,
    StreamImpact,
)
from deltaproto.planning.predict.outcome import REMOVE_MAPPING, Outcome
from deltaproto.planning.predict.schema import walk_columns
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
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
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.databricks_runtime import parse_runtime
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.isolation import (
    DECLARABLE_LEVELS,
    ISOLATION_PROPERTY,
    IsolationLevel,
    RowLevelConcurrency,
    RowLevelSupport,
    WriterEngine,
    evaluate_isolation,
    row_level_concurrency,
)
from deltaproto.protocol.isolation import WriterEngine as Writer
from deltaproto.protocol.layers import FeatureState

_DELTA_RS = str(Writer.DELTA_RS)
_COMMIT_FAILED_ERROR = PYTHON.rpartition(".")[2]
_METADATA, _PROTOCOL = str(ExceptionName.METADATA), str(ExceptionName.PROTOCOL)
_EVERY_WRITE = "every concurrent write"
_DOCUMENTED = "as documented, every metadata or protocol change fails concurrent writes"
_REWRITE_OPERATIONS = ("REORG", "OPTIMIZE", REMOVE_MAPPING)
# Commits without metadata or protocol changes; the matrices describe their conflicts.
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
    on_spark = EngineName.DELTA_SPARK.value
    if not _changes_only_files(outcome):
        yield from _metadata_conflicts(statement, before, outcome, writers)
    if any(commit.operation in _REWRITE_OPERATIONS for commit in outcome.commits):
        why = "the step rewrites data files, and both remove the same files"
        for exception in (ExceptionName.DELETE_READ, ExceptionName.DELETE_DELETE):
            yield StepConflict(
                on_spark, "UPDATE, DELETE, MERGE and OPTIMIZE", str(exception), why, "writer"
            )
        if _changes_only_files(outcome):
            # Otherwise the new metadata fails every delta-rs write.
            yield StepConflict(
                _DELTA_RS,
                "UPDATE, DELETE, MERGE and OPTIMIZE",
                _COMMIT_FAILED_ERROR,
                "the step rewrites data files; deltalake 1.6.6 does not notice that an OPTIMIZE, "
                "an overwrite or a DELETE without predicate removes the same files, and rows are "
                "duplicated or reappear",
                "writer",
            )
        yield StepConflict(
            on_spark,
            "UPDATE, DELETE, MERGE and OPTIMIZE that commit while files are rewritten",
            str(ExceptionName.DELETE_READ),
            "files that the step rewrites were removed; the step can be run again",
            "step",
        )
    yield StepConflict(
        on_spark,
        "any other metadata or protocol change",
        _METADATA,
        "it always conflicts with the step; the step can be run again",
        "step",
    )


def _changes_only_files(outcome: Outcome) -> bool:
    return all(commit.operation in _FILE_OPERATIONS for commit in outcome.commits)


def _metadata_conflicts(
    statement: Statement, before: Table, outcome: Outcome, writers: Writers
) -> Iterator[StepConflict]:
    on_spark, databricks = EngineName.DELTA_SPARK.value, EngineName.DATABRICKS.value
    if only_changes_clustering(statement, before):
        yield StepConflict(
            on_spark,
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
            yield StepConflict(on_spark, hit, fate.exception, fate.why, "writer")
    if survives:
        yield StepConflict(
            on_spark,
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
    if isinstance(statement, Wait) or not outcome.commits or _changes_only_files(outcome):
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


_VECTORS, _IDENTITY, _CLUSTERING = "deletionVectors", "identityColumns", "clustering"
_NONE: frozenset[Operation] = frozenset()


class _Seen(NamedTuple):
    """The facts that determine the conflicts of one table."""

    rules: ConcurrencyRules
    by_row: frozenset[Operation]
    vectors: bool | None
    identity: bool | None


def concurrency_change(inputs: PlanInput, after: Table) -> ConcurrencyChange:
    """Return isolation, row-level concurrency and conflicts before and after a plan."""
    was = _seen(inputs, inputs.table)
    will = was if after is inputs.table else _seen(inputs, after)
    changed = (cell for engine in MatrixEngine for cell in _changed(engine, was, will))
    return ConcurrencyChange(was.rules, will.rules, tuple(changed) if will != was else ())


def _seen(inputs: PlanInput, table: Table) -> _Seen:
    names = {_VECTORS, _IDENTITY, _CLUSTERING} & table.protocol.supported
    enabled = {name: _enabled(inputs, table, name) for name in names}
    states = tuple(_state(name, enabled[name]) for name in sorted(names))
    own = row_level_concurrency(states, table.partition_columns, table.clustering)
    rows = _by_row(own, inputs.engine)
    support, reason = own.databricks, own.reason
    if support is RowLevelSupport.YES and inputs.engine.name is EngineName.DATABRICKS:
        support = RowLevelSupport.YES if rows.operations else RowLevelSupport.NO
        reason = f"{reason}; {rows.reason}"
    rules = ConcurrencyRules(
        evaluate_isolation(table.configuration.get(ISOLATION_PROPERTY)), support, reason
    )
    return _Seen(
        rules, rows.operations, enabled.get(_VECTORS, False), enabled.get(_IDENTITY, False)
    )


def _enabled(inputs: PlanInput, table: Table, name: str) -> bool | None:
    """Return True if the table uses a supported feature; None if unknown."""
    seen = next((state.enabled for state in inputs.states if state.name == name), None)
    if table is inputs.table:
        return seen
    rule = feature_catalog.feature_record(name).enablement
    if isinstance(rule, PropertyIs):
        return rule.holds(table.configuration.get(rule.key_in(table.configuration)))
    if name == _IDENTITY and table.schema is not None:
        return any(column.identity for _, column in walk_columns(table.schema))
    return seen


def _state(name: str, enabled: bool | None) -> FeatureState:
    feature = feature_catalog.feature_record(name)
    return FeatureState(feature, feature.kind, False, False, enabled, None, (), "")


def _by_row(own: RowLevelConcurrency, engine: Engine) -> ResolvedByRow:
    """Return the operations compared by row on the plan's engine, or else on any newer runtime."""
    if own.databricks is not RowLevelSupport.YES:
        return ResolvedByRow(_NONE, own.reason)
    named = parse_runtime(engine.version) if engine.name is EngineName.DATABRICKS else None
    # Do not assume row-level concurrency if it depends on unknown clustering.
    return resolve_by_row(bool(own.liquid), Compute(None if named is None else named.runtime))


def _changed(engine: MatrixEngine, was: _Seen, will: _Seen) -> Iterator[ChangedCell]:
    for before, after in zip(_cells(engine, was), _cells(engine, will), strict=True):
        one, other = _outcome(before), _outcome(after)
        if one != other:
            names = str(engine), str(before.operation), str(before.against)
            yield ChangedCell(*names, one, other)


def _outcome(cell: Cell) -> CellOutcome:
    return CellOutcome(str(cell.conflict), tuple(map(str, cell.exceptions)), cell.when)


def _cells(engine: MatrixEngine, seen: _Seen) -> tuple[Cell, ...]:
    effective = seen.rules.isolation.effective[WriterEngine(engine)]
    # Like `conflicts`, use the default level for a level that no table may declare.
    level = effective if effective in DECLARABLE_LEVELS else default_level(engine)
    assert level is not None
    if engine is not MatrixEngine.DATABRICKS:
        return _matrix(engine, level, _NONE, None, seen.identity)
    return _matrix(engine, level, seen.by_row, seen.vectors, seen.identity)


@lru_cache(maxsize=256)
def _matrix(
    engine: MatrixEngine,
    level: IsolationLevel,
    rows: frozenset[Operation],
    vectors: bool | None,
    identity: bool | None,
) -> tuple[Cell, ...]:
    """Return the documented pairs."""
    every = build_cells(engine, level, by_row=rows, deletion_vectors=vectors, identity=identity)
    return tuple(cell for cell in every if not {cell.operation, cell.against} & UNLISTED_OPERATIONS)
