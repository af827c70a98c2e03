"""`conflicts`' output in each format."""

from __future__ import annotations

from typing import IO, Any, assert_never

from deltaproto.inspection.conflicts import Conflicts
from deltaproto.protocol.conflicts.cell import Cell
from deltaproto.protocol.conflicts.delta_rs import NEWEST, VARIANTS
from deltaproto.protocol.conflicts.exception import SQLSTATE, ExceptionRecord
from deltaproto.protocol.conflicts.matrix import MatrixEngine
from deltaproto.protocol.conflicts.operation import CHANGES, MEANING, UNLISTED, Operation
from deltaproto.report.interface import Format, json_text, moment


def write_conflicts(answer: Conflicts, format_: Format, file: IO[str], *, color: bool) -> None:
    """The matrix or the cells asked for, with what they depend on."""
    match format_:
        case Format.JSON | Format.JSONL:
            line, complete = format_ is Format.JSONL, answer.complete
            file.write(json_text("conflicts", _fields(answer), line=line, complete=complete))
        case Format.MARKDOWN:
            file.write(_markdown(answer))
        case Format.TEXT:
            from deltaproto.report.conflicts_text import print_conflicts
            from deltaproto.report.console import DataConsole

            print_conflicts(DataConsole(file, color=color), answer)
        case _:
            assert_never(format_)


def explained(answer: Conflicts) -> bool:
    """True when operations were named, so that their cells are to be explained in full."""
    question = answer.question
    return any((question.operation, question.against, question.statement))


def title(answer: Conflicts) -> str:
    """What the answer is about."""
    return answer.table if answer.table is not None else f"any table on {engine(answer)}"


def engine(answer: Conflicts) -> str:
    """The engine, with the release that the cells hold for if they depend on it."""
    release = engine_version(answer)
    return str(answer.question.engine) if release is None else f"{answer.question.engine}@{release}"


def engine_version(answer: Conflicts) -> str | None:
    """The release of delta-rs that the cells hold for; None for engines without such a matrix."""
    if answer.question.engine is not MatrixEngine.DELTA_RS:
        return None
    return answer.question.release or ".".join(map(str, NEWEST))


def raised(answer: Conflicts, cell: Cell) -> list[str]:
    """What a cell's exceptions are called by the engine."""
    if answer.question.engine is MatrixEngine.DELTA_RS:
        return [VARIANTS[name] for name in cell.exceptions]
    return [str(name) for name in cell.exceptions]


def facts(answer: Conflicts) -> list[tuple[str, str]]:
    """What the matrix depends on, and why."""
    found = [
        ("engine", engine(answer)),
        ("isolation", f"{answer.isolation}: {answer.isolation_reason}"),
        ("row-level", f"{_switch(answer)}: {answer.row_level_reason}"),
    ]
    if answer.partition_columns:
        found.append(("partitions", ", ".join(answer.partition_columns)))
    if answer.identity:
        found.append(("identity", "the table has identity columns"))
    return found


def _switch(answer: Conflicts) -> str:
    if not answer.by_row:
        return "off"
    some = answer.by_row != CHANGES
    return f"on for {', '.join(sorted(answer.by_row))}" if some else "on"


def statement_facts(answer: Conflicts) -> list[tuple[str, str]]:
    """What the statement counts as, why, and what to watch and to add; empty without one."""
    statement = answer.question.statement
    if statement is None:
        return []
    found = statement.classification
    counted = str(found.operation) if found.operation is not None else "none"
    return [
        ("statement", statement.sql),
        ("counts as", counted if found.understood else "not understood"),
        *(("because", line) for line in found.reasons),
        *(("warning", line) for line in answer.statement_warnings),
        *(("advice", line) for line in answer.statement_advice),
    ]


def suspect_lines(answer: Conflicts) -> list[str]:
    """The commits that can have raised the exception, one a line; empty when not asked for."""
    if answer.suspects is None:
        return []
    lines = [
        f"version {s.version}, {moment(s.timestamp)}: {s.operation} by "
        f"{s.engine or 'an unnamed client'}{f', {s.user}' if s.user else ''}"
        for s in answer.suspects.found
    ]
    if not answer.suspects.complete:
        lines.append("Some commits could not be read.")
    return lines or ["No commit within ten minutes of that time can have raised it."]


def rows_and_columns(answer: Conflicts) -> tuple[list[Operation], list[Operation]]:
    """The operations that the grid shows."""
    question = answer.question
    return (
        [o for o in Operation if _shown(o, question.operation)],
        [o for o in Operation if _shown(o, question.against)],
    )


def _shown(operation: Operation, asked: Operation | None) -> bool:
    return operation is asked or (asked is None and operation not in UNLISTED)


def grid(answer: Conflicts) -> list[tuple[Operation, list[str]]]:
    """A row of answers for each operation; `-` where another exception would be raised."""
    by_pair = {(cell.operation, cell.against): str(cell.conflict) for cell in answer.cells}
    down, across = rows_and_columns(answer)
    return [(row, [by_pair.get((row, column), "-") for column in across]) for row in down]


def cell_facts(answer: Conflicts, cell: Cell) -> list[tuple[str, str]]:
    """One cell's explanation."""
    names = raised(answer, cell)
    found = [("exceptions", ", ".join(names))] if names else []
    return [*found, ("when", cell.when), ("avoid", cell.avoid), ("source", cell.source)]


def meanings(answer: Conflicts) -> list[tuple[str, str]]:
    """What the operations asked for cover."""
    asked = dict.fromkeys((answer.question.operation, answer.question.against))
    return [(str(operation), MEANING[operation]) for operation in asked if operation is not None]


def _fields(answer: Conflicts) -> dict[str, Any]:
    question, compute = answer.question, answer.question.compute
    payload: dict[str, Any] = {
        "engine": str(question.engine),
        "engine_version": engine_version(answer),
        "isolation": str(answer.isolation),
        "row_level_concurrency": "on" if answer.by_row else "off",
        "row_level_operations": [str(o) for o in Operation if o in answer.by_row],
        "compute": {
            "runtime": None if compute.runtime is None else str(compute.runtime),
            "photon": compute.photon,
            "row_level_preview": compute.preview,
        },
        "table": answer.table,
        "reason": {
            "isolation": answer.isolation_reason,
            "row_level_concurrency": answer.row_level_reason,
        },
        "deletion_vectors": answer.deletion_vectors,
        "identity_columns": answer.identity,
        "partition_columns": (
            None if answer.partition_columns is None else list(answer.partition_columns)
        ),
        "cells": [_cell(answer, cell) for cell in answer.cells],
        "notes": list(answer.notes),
        "advice": list(answer.advice),
    }
    if question.statement is not None:
        found = question.statement.classification
        payload["statement"] = {
            "sql": question.statement.sql,
            "understood": found.understood,
            "operation": None if found.operation is None else str(found.operation),
            "blind_append": found.blind_append,
            "reasons": list(found.reasons),
            "warnings": list(answer.statement_warnings),
            "advice": list(answer.statement_advice),
        }
    if question.exception is not None:
        payload["exception"] = _exception(question.exception)
    if answer.suspects is not None:
        payload["suspects"] = [
            {**s._asdict(), "timestamp": moment(s.timestamp)} for s in answer.suspects.found
        ]
    return payload


def _cell(answer: Conflicts, cell: Cell) -> dict[str, Any]:
    return {
        "operation": str(cell.operation),
        "against": str(cell.against),
        "conflict": str(cell.conflict),
        "exceptions": [str(name) for name in cell.exceptions],
        "raised_as": raised(answer, cell),
        "when": cell.when,
        "avoid": cell.avoid,
        "source": cell.source,
    }


def _exception(record: ExceptionRecord) -> dict[str, Any]:
    return {
        "name": str(record.name),
        "error_class": record.error_class,
        "sqlstate": SQLSTATE,
        "engines": list(record.engines),
        "delta_rs": VARIANTS[record.name],
        "summary": record.summary,
        "causes": [cause._asdict() for cause in record.causes],
    }


def _markdown(answer: Conflicts) -> str:
    from deltaproto.report.markdown import escape, table

    parts = [f"## Conflicts: {escape(title(answer))}", "", table(("", ""), facts(answer))]
    record = answer.question.exception
    if record is not None:
        parts += ["", f"### {record.name}", "", escape(record.summary), ""]
        causes = [(c.name, c.when, c.avoid, c.source) for c in record.causes]
        parts.append(table(("Cause", "When", "Avoid", "Source"), causes))
    if suspected := suspect_lines(answer):
        parts += ["", *(f"- suspect: {escape(line)}" for line in suspected)]
    if stated := statement_facts(answer):
        parts += ["", *(f"- {name}: {escape(text)}" for name, text in stated)]
    _, across = rows_and_columns(answer)
    if answer.cells or answer.question.statement is None:
        shown = [(str(row), *marks) for row, marks in grid(answer)]
        parts += ["", table(("Operation / against", *across), shown)]
    if explained(answer):
        for cell in answer.cells:
            parts += ["", f"### {cell.operation} against {cell.against}: {cell.conflict}", ""]
            parts += [f"- {name}: {escape(text)}" for name, text in cell_facts(answer, cell)]
    lines = [*answer.advice, *answer.notes]
    return "\n".join([*parts, "", *(f"- {escape(line)}" for line in lines), ""])
