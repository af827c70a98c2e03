"""The conflict matrix that applies to a table, or to any table, and why this one."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from deltaproto.errors import UsageError
from deltaproto.history.suspects import Suspects
from deltaproto.inspection.interface import Inspection
from deltaproto.protocol.concurrency import Answer
from deltaproto.protocol.conflicts.cell import Cell
from deltaproto.protocol.conflicts.exception import ExceptionRecord
from deltaproto.protocol.conflicts.matrix import MatrixEngine, cells, default_level
from deltaproto.protocol.conflicts.notes import advice, notes
from deltaproto.protocol.conflicts.operation import Operation
from deltaproto.protocol.conflicts.statement import Classification, photon, predicates
from deltaproto.protocol.isolation import DECLARABLE, Engine, IsolationLevel


class RowLevel(StrEnum):
    """What `--row-level-concurrency` takes; `auto` is the table's, and off without a table."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Statement(NamedTuple):
    """A pending statement, and what it counts as."""

    sql: str
    classification: Classification


class Question(NamedTuple):
    """What is asked of the matrix. An operation of None stands for all."""

    engine: MatrixEngine = MatrixEngine.DATABRICKS
    isolation: IsolationLevel | None = None
    """None: the table's, or else the engine's default"""
    row_level: RowLevel = RowLevel.AUTO
    operation: Operation | None = None
    against: Operation | None = None
    exception: ExceptionRecord | None = None
    """only cells that may raise it"""
    statement: Statement | None = None
    """only cells of this statement's operation, which `operation` must not contradict"""


class Conflicts(NamedTuple):
    """The cells asked for, and what they depend on."""

    question: Question
    table: str | None
    isolation: IsolationLevel
    isolation_reason: str
    row_level: bool
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
    if question.statement is not None:
        question = question._replace(operation=question.statement.classification.operation)
    level, level_reason = _level(question, inspection)
    row_level, row_level_reason = _row_level(question, inspection)
    vectors = _enabled(inspection, "deletionVectors")
    identity = _enabled(inspection, "identityColumns")
    matrix = cells(
        engine,
        level,
        row_level=row_level,
        deletion_vectors=vectors,
        identity=bool(identity),
    )
    columns = None if inspection is None else inspection.state.metadata.partition_columns
    warnings, added = _of_statement(question, columns or (), inspection, row_level=row_level)
    return Conflicts(
        question=question,
        table=None if inspection is None else inspection.state.table,
        isolation=level,
        isolation_reason=level_reason,
        row_level=row_level,
        row_level_reason=row_level_reason,
        deletion_vectors=vectors,
        identity=identity,
        partition_columns=columns,
        cells=tuple(cell for cell in matrix if _wanted(question, cell)),
        notes=notes(
            engine,
            level,
            row_level=row_level,
            identity=identity if inspection is not None else False,
        ),
        advice=() if columns is None else advice(engine, columns, row_level=row_level),
        complete=inspection is None or inspection.complete,
        statement_warnings=warnings,
        statement_advice=added,
    )


def _wanted(question: Question, cell: Cell) -> bool:
    if question.statement is not None and question.operation is None:
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
    if effective is None or effective not in DECLARABLE:
        return default, (
            f"the table declares {declared}, which no table may declare; "
            f"this is the default of {engine}"
        )
    return effective, f"the table declares {declared}"


def _row_level(question: Question, inspection: Inspection | None) -> tuple[bool, str]:
    asked = question.row_level
    if question.engine is MatrixEngine.DELTA_SPARK:
        if asked is RowLevel.ON:
            raise UsageError(
                "Delta Spark has no row-level concurrency",
                "leave --row-level-concurrency out, or ask for --engine databricks",
            )
        return False, "Delta Spark compares files, not rows"
    own = None if inspection is None else inspection.row_level
    if asked is not RowLevel.AUTO:
        reason = f"asked for with --row-level-concurrency {asked}"
        if own is not None and own.databricks != ("yes" if asked is RowLevel.ON else "no"):
            reason += f"; the table's own answer is {own.databricks}: {own.reason}"
        return asked is RowLevel.ON, reason
    if own is None:
        return False, "not every table has it"
    if own.databricks is Answer.UNKNOWN:
        return False, f"not known, so it is not counted on: {own.reason}"
    if own.databricks is Answer.YES and (files := _files(question)):
        return False, f"the table has it, but not for this statement. {' '.join(files)}"
    return own.databricks is Answer.YES, own.reason


def _files(question: Question) -> tuple[str, ...]:
    return () if question.statement is None else question.statement.classification.files


def _of_statement(
    question: Question,
    columns: tuple[str, ...],
    inspection: Inspection | None,
    *,
    row_level: bool,
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
        if row_level or inspection is None:
            warnings += photon(found)
    return tuple(warnings), predicates(found, columns)


def _enabled(inspection: Inspection | None, name: str) -> bool | None:
    """Whether the table uses the feature; None when that is not known, or without a table."""
    if inspection is None:
        return None
    states = {state.name: state for state in inspection.subject.features}
    return states[name].enabled if name in states else False
