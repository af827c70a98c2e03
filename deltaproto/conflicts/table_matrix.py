"""The conflict matrix of a table, the operations compared by row, and the reasons."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.conflicts.delta_rs import NEWEST, Release, parse_release
from deltaproto.conflicts.matrix import (
    Compute,
    MatrixEngine,
    ResolvedByRow,
    build_cells,
    default_level,
    resolve_by_row,
)
from deltaproto.conflicts.notes import layout_advice, matrix_notes
from deltaproto.conflicts.operation import UNLISTED_OPERATIONS, Cell, Operation
from deltaproto.conflicts.query import (
    Classification,
    MatrixQuery,
    RowLevel,
    merge_requirements,
    missing_predicates,
    why_predicate_needed,
)
from deltaproto.conflicts.suspects import Suspects
from deltaproto.errors import UsageError
from deltaproto.inspection.interface import Inspection
from deltaproto.protocol.isolation import (
    DECLARABLE_LEVELS,
    IsolationLevel,
    RowLevelConcurrency,
    RowLevelSupport,
    WriterEngine,
)

_NONE: frozenset[Operation] = frozenset()


class RowLevelOperations(NamedTuple):
    """The operations compared by row, the reason, and whether it assumes deletion vectors."""

    operations: frozenset[Operation]
    reason: str
    granted: bool = False


def row_level_operations(
    question: MatrixQuery, inspection: Inspection | None
) -> RowLevelOperations:
    """Combine the table, the compute, the statement and the user's options.

    Raises:
        UsageError: if row-level concurrency or a Databricks compute is requested for another
        engine.
    """
    if question.engine is not MatrixEngine.DATABRICKS:
        return _file_level_only(question)
    own = None if inspection is None else inspection.row_level
    asked = question.row_level
    if asked is RowLevel.AUTO:
        if own is None:
            return RowLevelOperations(_NONE, "not every table supports it")
        if own.databricks is RowLevelSupport.UNKNOWN:
            return RowLevelOperations(_NONE, f"unknown, so assumed off: {own.reason}")
        if own.databricks is RowLevelSupport.NO:
            return RowLevelOperations(_NONE, own.reason)
        return _apply_statement_limits(
            question, inspection, _row_level_by_layout(own, question.compute), granted=False
        )
    reason = f"requested with --row-level-concurrency {asked}"
    if own is not None and own.databricks != ("yes" if asked is RowLevel.ON else "no"):
        reason += f"; according to the table it is {own.databricks}: {own.reason}"
    if asked is RowLevel.OFF:
        return RowLevelOperations(_NONE, reason)
    found = _by_row(False if own is None else own.liquid, question.compute)
    if question.compute.runtime is not None:
        reason += f"; {found.reason}"
    return _apply_statement_limits(
        question, inspection, ResolvedByRow(found.operations, reason), granted=True
    )


def _file_level_only(question: MatrixQuery) -> RowLevelOperations:
    name = "Delta Spark" if question.engine is MatrixEngine.DELTA_SPARK else str(question.engine)
    if question.row_level is RowLevel.ON:
        raise UsageError(
            f"{name} has no row-level concurrency",
            "remove --row-level-concurrency, or use --engine databricks",
        )
    if question.compute.runtime is not None or question.compute.photon is not None:
        about = "--runtime is a" if question.compute.runtime is not None else "--photon is for"
        raise UsageError(
            f"{about} Databricks Runtime, and the engine is {question.engine}",
            "remove one of them",
        )
    return RowLevelOperations(_NONE, f"{name} compares files, not rows")


def _row_level_by_layout(own: RowLevelConcurrency, compute: Compute) -> ResolvedByRow:
    found = _by_row(own.liquid, compute)
    if compute.runtime is None:
        return found._replace(reason=own.reason)
    layout = "liquid clustering" if own.liquid else "no partitions"
    return found._replace(reason=f"deletion vectors and {layout}; {found.reason}")


def _by_row(liquid: bool | None, compute: Compute) -> ResolvedByRow:
    """Return what the compute resolves by row; considers both cases if clustering is unknown."""
    found = resolve_by_row(bool(liquid), compute)
    if liquid is None and (clustered := resolve_by_row(True, compute)) != found:
        reason = (
            f"this reader does not show whether the table is clustered. If not: {found.reason}; if "
            f"it is: {clustered.reason}"
        )
        return ResolvedByRow(found.operations & clustered.operations, reason)
    return found


def _apply_statement_limits(
    question: MatrixQuery, inspection: Inspection | None, found: ResolvedByRow, *, granted: bool
) -> RowLevelOperations:
    """Remove operations that the statement's text excludes."""
    if question.statement is not None and found.operations:
        classification = question.statement.classification
        runtime = question.compute.runtime
        ruled_out = (
            classification.files
            or _complex_type_reasons(classification, inspection)
            or why_predicate_needed(classification, runtime)
        )
        if ruled_out:
            why = f"the table supports it, but not for this statement. {' '.join(ruled_out)}"
            return RowLevelOperations(_NONE, why, granted)
    return RowLevelOperations(*found, granted)


def _complex_type_reasons(
    classification: Classification, inspection: Inspection | None
) -> tuple[str, ...]:
    """Return why the column types in its condition prevent row-level resolution."""
    schema = None if inspection is None else inspection.state.metadata.schema
    if classification.condition is None or schema is None:
        return ()
    complex_ = {
        str(field.get("name")).casefold()
        for field in schema["fields"]
        if isinstance(field, dict) and isinstance(field.get("type"), dict)
    }
    used = sorted(classification.condition.columns & complex_)
    if not used:
        return ()
    return (f"Its condition uses {', '.join(used)}, a struct, array or map.",)


class ConflictReport(NamedTuple):
    """The requested cells, and their inputs."""

    question: MatrixQuery
    table: str | None
    """the table as it was named; None for any table"""
    isolation: IsolationLevel
    """the isolation level of the matrix"""
    isolation_reason: str
    """where the level comes from"""
    by_row: frozenset[Operation]
    """the operations compared by row; empty: row-level concurrency is off"""
    row_level_reason: str
    """why rows or files are compared"""
    deletion_vectors: bool | None
    """None: unknown, or no table"""
    identity: bool | None
    """whether the table has identity columns; None: unknown, or no table"""
    partition_columns: tuple[str, ...] | None
    """the partition columns; None without a table"""
    cells: tuple[Cell, ...]
    """the requested cells of the matrix"""
    notes: tuple[str, ...]
    """what the matrix does not show, one sentence each"""
    advice: tuple[str, ...]
    """how to lay out this table so that fewer writes conflict"""
    complete: bool
    """false if the table may have newer commits, or the statement was not understood"""
    statement_warnings: tuple[str, ...] = ()
    """risks of the statement, one sentence each"""
    statement_advice: tuple[str, ...] = ()
    """recommended additions to the statement"""
    suspects: Suspects | None = None
    """commits that could have raised the exception; None if no time was given"""


def build_conflict_report(question: MatrixQuery, inspection: Inspection | None) -> ConflictReport:
    """Return the conflicts for the inspected table, or for any table if None.

    Raises:
        UsageError: if row-level concurrency is requested for an engine without it.
    """
    engine = question.engine
    if (statement := question.statement) is not None:
        if inspection is not None:
            found = statement.classification.for_protocol(inspection.state.protocol)
            statement = statement._replace(classification=found)
        question = question._replace(
            statement=statement, operation=statement.classification.operation
        )
    level, level_reason = _effective_level(question, inspection)
    compared = row_level_operations(question, inspection)
    vectors = _is_feature_used(inspection, "deletionVectors")
    identity = _is_feature_used(inspection, "identityColumns")
    matrix = build_cells(
        engine,
        level,
        by_row=compared.operations,
        deletion_vectors=True if compared.granted else vectors,
        identity=identity,
        release=_parse_release(question),
    )
    columns = None if inspection is None else inspection.state.metadata.partition_columns
    warnings, added = _statement_notes(question, columns or (), inspection, compared)
    return ConflictReport(
        question=question,
        table=None if inspection is None else inspection.state.table,
        isolation=level,
        isolation_reason=level_reason,
        by_row=compared.operations,
        row_level_reason=compared.reason,
        deletion_vectors=vectors,
        identity=identity,
        partition_columns=columns,
        cells=tuple(cell for cell in matrix if _is_requested(question, cell)),
        notes=matrix_notes(
            engine,
            level,
            row_level=bool(compared.operations),
            runtime=question.compute.runtime,
            identity=identity,
        ),
        advice=()
        if columns is None
        else layout_advice(
            engine, columns, row_level=bool(compared.operations), identity=bool(identity)
        ),
        complete=(inspection is None or inspection.complete)
        and (statement is None or statement.classification.understood),
        statement_warnings=warnings,
        statement_advice=added,
    )


def _parse_release(question: MatrixQuery) -> Release:
    found = None if question.release is None else parse_release(question.release)
    return found or NEWEST


def _is_requested(question: MatrixQuery, cell: Cell) -> bool:
    if question.statement is not None and question.operation is None:
        return False
    if cell.operation in UNLISTED_OPERATIONS and question.operation is None:
        return False
    if cell.against in UNLISTED_OPERATIONS and question.against is None:
        return False
    return (
        question.operation in (None, cell.operation)
        and question.against in (None, cell.against)
        and (question.exception is None or question.exception.name in cell.exceptions)
    )


def _effective_level(
    question: MatrixQuery, inspection: Inspection | None
) -> tuple[IsolationLevel, str]:
    engine, default = question.engine, default_level(question.engine)
    if question.isolation is not None:
        return question.isolation, "requested with --isolation"
    if inspection is None:
        return default, f"the default of {engine}"
    declared = inspection.isolation.declared
    if declared is None:
        return default, f"the table declares no level; this is the default of {engine}"
    effective = inspection.isolation.effective[WriterEngine(engine)]
    if effective is IsolationLevel.SNAPSHOT_ISOLATION:
        return default, (
            f"the table declares {declared}, for which {engine} never counts added files; the "
            f"cells are those of {default}"
        )
    if effective is None or effective not in DECLARABLE_LEVELS:
        fails = ", so every commit fails" if engine is MatrixEngine.DELTA_SPARK else ""
        return default, (
            f"the table declares {declared}, which is not allowed{fails}; "
            f"this is the default of {engine}"
        )
    return effective, f"the table declares {declared}"


def _statement_notes(
    question: MatrixQuery,
    columns: tuple[str, ...],
    inspection: Inspection | None,
    compared: RowLevelOperations,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return warnings about the statement, and recommended additions."""
    if question.statement is None:
        return (), ()
    found = question.statement.classification
    warnings = list(found.warnings)
    if not found.understood:
        warnings.append("The statement was not understood, so its conflicts are unknown.")
    if question.engine is MatrixEngine.DATABRICKS:
        warnings += found.files
        if compared.operations or inspection is None:
            warnings += merge_requirements(found, question.compute)
    return tuple(warnings), missing_predicates(found, columns)


def _is_feature_used(inspection: Inspection | None, name: str) -> bool | None:
    """Return whether the table uses the feature; None if unknown, or without a table."""
    if inspection is None:
        return None
    states = {state.name: state for state in inspection.subject.features}
    return states[name].enabled if name in states else False
