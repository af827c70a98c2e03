"""The conflict matrix that applies to a table, or to any table, and why this one."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.history.suspects import Suspects
from deltaproto.inspection.interface import Inspection
from deltaproto.inspection.question import Question
from deltaproto.inspection.rows import Rows, rows
from deltaproto.protocol.conflicts.cell import Cell
from deltaproto.protocol.conflicts.delta_rs import NEWEST, Release, parse_release
from deltaproto.protocol.conflicts.matrix import MatrixEngine, cells, default_level
from deltaproto.protocol.conflicts.notes import advice, notes
from deltaproto.protocol.conflicts.operation import UNLISTED, Operation
from deltaproto.protocol.conflicts.statement import needed_by_merge, predicates
from deltaproto.protocol.isolation import DECLARABLE, Engine, IsolationLevel


class Conflicts(NamedTuple):
    """The cells asked for, and what they depend on."""

    question: Question
    table: str | None
    isolation: IsolationLevel
    isolation_reason: str
    by_row: frozenset[Operation]
    """the operations compared by row; empty: row-level concurrency is off"""
    row_level_reason: str
    deletion_vectors: bool | None
    """None: not known, or no table"""
    identity: bool | None
    partition_columns: tuple[str, ...] | None
    cells: tuple[Cell, ...]
    notes: tuple[str, ...]
    advice: tuple[str, ...]
    complete: bool
    statement_warnings: tuple[str, ...] = ()
    statement_advice: tuple[str, ...] = ()
    """what to add to the statement itself"""
    suspects: Suspects | None = None
    """the commits that can have raised the exception; None when no time was given"""


def conflicts(question: Question, inspection: Inspection | None) -> Conflicts:
    """The answer for the inspected table, or without one for any table.

    Raises:
        UsageError: when row-level concurrency is asked of an engine that has none.
    """
    engine = question.engine
    if (statement := question.statement) is not None:
        if inspection is not None:
            found = statement.classification.on(inspection.state.protocol)
            statement = statement._replace(classification=found)
        question = question._replace(
            statement=statement, operation=statement.classification.operation
        )
    level, level_reason = _level(question, inspection)
    compared = rows(question, inspection)
    vectors = _enabled(inspection, "deletionVectors")
    identity = _enabled(inspection, "identityColumns")
    matrix = cells(
        engine,
        level,
        by_row=compared.operations,
        deletion_vectors=True if compared.granted else vectors,
        identity=identity,
        release=_release(question),
    )
    columns = None if inspection is None else inspection.state.metadata.partition_columns
    warnings, added = _of_statement(question, columns or (), inspection, compared)
    return Conflicts(
        question=question,
        table=None if inspection is None else inspection.state.table,
        isolation=level,
        isolation_reason=level_reason,
        by_row=compared.operations,
        row_level_reason=compared.reason,
        deletion_vectors=vectors,
        identity=identity,
        partition_columns=columns,
        cells=tuple(cell for cell in matrix if _wanted(question, cell)),
        notes=notes(
            engine,
            level,
            row_level=bool(compared.operations),
            runtime=question.compute.runtime,
            identity=identity,
        ),
        advice=()
        if columns is None
        else advice(engine, columns, row_level=bool(compared.operations), identity=bool(identity)),
        complete=inspection is None or inspection.complete,
        statement_warnings=warnings,
        statement_advice=added,
    )


def _release(question: Question) -> Release:
    found = None if question.release is None else parse_release(question.release)
    return found or NEWEST


def _wanted(question: Question, cell: Cell) -> bool:
    if question.statement is not None and question.operation is None:
        return False
    if cell.operation in UNLISTED and question.operation is None:
        return False
    if cell.against in UNLISTED and question.against is None:
        return False
    return (
        question.operation in (None, cell.operation)
        and question.against in (None, cell.against)
        and (question.exception is None or question.exception.name in cell.exceptions)
    )


def _level(question: Question, inspection: Inspection | None) -> tuple[IsolationLevel, str]:
    engine, default = question.engine, default_level(question.engine)
    if question.isolation is not None:
        return question.isolation, "asked for with --isolation"
    if inspection is None:
        return default, f"the default of {engine}"
    declared = inspection.isolation.declared
    if declared is None:
        return default, f"the table declares none; this is the default of {engine}"
    effective = inspection.isolation.effective[Engine(engine)]
    if effective is IsolationLevel.SNAPSHOT_ISOLATION and engine is MatrixEngine.DELTA_RS:
        return default, (
            f"the table declares {declared}, under which delta-rs never counts added files; the "
            f"cells are those of {default}"
        )
    if effective is None or effective not in DECLARABLE:
        fails = ", so every commit fails" if engine is MatrixEngine.DELTA_SPARK else ""
        return default, (
            f"the table declares {declared}, which no table may declare{fails}; "
            f"this is the default of {engine}"
        )
    return effective, f"the table declares {declared}"


def _of_statement(
    question: Question,
    columns: tuple[str, ...],
    inspection: Inspection | None,
    compared: Rows,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Warnings about the statement, and what to add to it."""
    if question.statement is None:
        return (), ()
    found = question.statement.classification
    warnings = list(found.warnings)
    if not found.understood:
        warnings.append("The statement was not understood, so nothing is claimed about it.")
    if question.engine is MatrixEngine.DATABRICKS:
        warnings += found.files
        if compared.operations or inspection is None:
            warnings += needed_by_merge(found, question.compute)
    return tuple(warnings), predicates(found, columns)


def _enabled(inspection: Inspection | None, name: str) -> bool | None:
    """Whether the table uses the feature; None when that is not known, or without a table."""
    if inspection is None:
        return None
    states = {state.name: state for state in inspection.subject.features}
    return states[name].enabled if name in states else False
