"""Which operations of a question are compared by row, and why."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.errors import UsageError
from deltaproto.inspection.interface import Inspection
from deltaproto.inspection.question import Question, RowLevel
from deltaproto.protocol.concurrency import Answer, RowLevelConcurrency
from deltaproto.protocol.conflicts.by_row import ByRow, Compute, by_row
from deltaproto.protocol.conflicts.matrix import MatrixEngine
from deltaproto.protocol.conflicts.operation import Operation
from deltaproto.protocol.conflicts.statement import Classification, needs_predicate

_NONE: frozenset[Operation] = frozenset()


class Rows(NamedTuple):
    """The operations compared by row, why, and whether that takes deletion vectors for granted."""

    operations: frozenset[Operation]
    reason: str
    granted: bool = False


def rows(question: Question, inspection: Inspection | None) -> Rows:
    """What the table, the compute, the statement and the user's own word come to.

    Raises:
        UsageError: when row-level concurrency or a Databricks compute is asked of another engine.
    """
    if question.engine is not MatrixEngine.DATABRICKS:
        return _by_files(question)
    own = None if inspection is None else inspection.row_level
    asked = question.row_level
    if asked is RowLevel.AUTO:
        if own is None:
            return Rows(_NONE, "not every table has it")
        if own.databricks is Answer.UNKNOWN:
            return Rows(_NONE, f"not known, so it is not counted on: {own.reason}")
        if own.databricks is Answer.NO:
            return Rows(_NONE, own.reason)
        return _narrowed(question, inspection, _reasoned(own, question.compute), granted=False)
    reason = f"asked for with --row-level-concurrency {asked}"
    if own is not None and own.databricks != ("yes" if asked is RowLevel.ON else "no"):
        reason += f"; the table's own answer is {own.databricks}: {own.reason}"
    if asked is RowLevel.OFF:
        return Rows(_NONE, reason)
    found = _by_row(False if own is None else own.liquid, question.compute)
    if question.compute.runtime is not None:
        reason += f"; {found.reason}"
    return _narrowed(question, inspection, ByRow(found.operations, reason), granted=True)


def _by_files(question: Question) -> Rows:
    name = "Delta Spark" if question.engine is MatrixEngine.DELTA_SPARK else str(question.engine)
    if question.row_level is RowLevel.ON:
        raise UsageError(
            f"{name} has no row-level concurrency",
            "leave --row-level-concurrency out, or ask for --engine databricks",
        )
    if question.compute.runtime is not None:
        raise UsageError(
            f"--runtime is a Databricks Runtime, and the engine is {question.engine}",
            "leave one of them out",
        )
    return Rows(_NONE, f"{name} compares files, not rows")


def _reasoned(own: RowLevelConcurrency, compute: Compute) -> ByRow:
    found = _by_row(own.liquid, compute)
    if compute.runtime is None:
        return found._replace(reason=own.reason)
    layout = "liquid clustering" if own.liquid else "no partitions"
    return found._replace(reason=f"deletion vectors and {layout}; {found.reason}")


def _by_row(liquid: bool | None, compute: Compute) -> ByRow:
    """What the compute resolves by row, clustered or not where that is not known."""
    found = by_row(bool(liquid), compute)
    if liquid is None and (clustered := by_row(True, compute)) != found:
        reason = (
            f"this reader does not show whether the table is clustered. If not: {found.reason}; if "
            f"it is: {clustered.reason}"
        )
        return ByRow(found.operations & clustered.operations, reason)
    return found


def _narrowed(
    question: Question, inspection: Inspection | None, found: ByRow, *, granted: bool
) -> Rows:
    """Without what the statement's own text rules out."""
    if question.statement is not None and found.operations:
        classification = question.statement.classification
        runtime = question.compute.runtime
        ruled_out = (
            classification.files
            or _on_complex(classification, inspection)
            or needs_predicate(classification, runtime)
        )
        if ruled_out:
            why = f"the table has it, but not for this statement. {' '.join(ruled_out)}"
            return Rows(_NONE, why, granted)
    return Rows(*found, granted)


def _on_complex(classification: Classification, inspection: Inspection | None) -> tuple[str, ...]:
    """Why rows are ruled out by the types of the columns that its condition uses."""
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
