"""The results of `conflicts`: documents and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

from deltaproto.conflicts.delta_rs import MESSAGES, NEWEST, PYTHON, VARIANTS
from deltaproto.conflicts.matrix import MatrixEngine
from deltaproto.conflicts.operation import (
    CHANGE_OPERATIONS,
    OPERATION_MEANINGS,
    SQLSTATE,
    UNLISTED_OPERATIONS,
    Cell,
    Conflict,
    ExceptionRecord,
    Operation,
)
from deltaproto.conflicts.table_matrix import ConflictReport
from deltaproto.counts import shorten
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Document,
    FactList,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.document.render import write_document
from deltaproto.render.interface import Format, format_timestamp, json_text

_SHORT = {
    Operation.INSERT: "INS",
    Operation.UPDATE: "UPD",
    Operation.DELETE: "DEL",
    Operation.MERGE: "MRG",
    Operation.OPTIMIZE: "OPT",
    Operation.OPTIMIZE_ZORDER: "OPZ",
    Operation.REORG: "REO",
    Operation.METADATA_CHANGE: "MET",
    Operation.PROTOCOL_CHANGE: "PRO",
    Operation.STREAMING_APPEND: "STR",
    Operation.RESTORE: "RES",
}
"""short headings, so that ten columns fit into 80 characters"""
_LONGEST_STATEMENT = 1_000
"""characters of a statement in text; JSON has all of it"""
_TONES = {
    str(Conflict.NO): Tone.GOOD,
    str(Conflict.MAYBE): Tone.WARNING,
    str(Conflict.YES): Tone.DANGER,
    str(Conflict.WRONG): Tone.DANGER,
}


def write_conflicts(answer: ConflictReport, format_: Format, file: IO[str], *, color: bool) -> None:
    """Write the matrix or the requested cells, with the facts that determine them."""
    if format_ in (Format.JSON, Format.JSONL):
        line, complete = format_ is Format.JSONL, answer.complete
        file.write(json_text("conflicts", conflicts_fields(answer), line=line, complete=complete))
        return
    write_document(conflicts_document(answer), format_, file, color=color)


def conflicts_document(answer: ConflictReport) -> Document:
    """Return the matrix, then the requested details, then the notes."""
    about = answer.table if answer.table is not None else f"any table on {_engine(answer)}"
    return Document("Conflicts", (about,), list(_blocks(answer)))


def _blocks(answer: ConflictReport) -> Iterator[Block]:
    yield _fact_list([*_facts(answer), *_statement_facts(answer)])
    if answer.question.exception is not None:
        yield _exception_section(answer.question.exception)
        if suspects := _suspect_lines(answer):
            yield Section("suspects", "Suspects", [Bullets([(line,) for line in suspects])])
    has_cells = bool(answer.cells) or answer.question.statement is None
    if has_cells and (len(answer.cells) > 1 or not _is_explained(answer)):
        yield Section("matrix", "Matrix", list(_matrix_blocks(answer)))
    if has_cells and _is_explained(answer):
        yield from _cell_sections(answer)
    for anchor, title, lines in (
        ("advice", "For this table", answer.advice),
        ("notes", "Notes", answer.notes),
    ):
        if lines:
            yield Section(anchor, title, [Bullets([(line,) for line in lines])])


def _matrix_blocks(answer: ConflictReport) -> Iterator[Block]:
    down, across = _rows_and_columns(answer)
    by_pair = {(cell.operation, cell.against): str(cell.conflict) for cell in answer.cells}
    marks = [[by_pair.get((row, column), "-") for column in across] for row in down]
    yield Paragraph(("Row: commits last and may lose. Column: committed in the meantime.",))
    yield TableBlock(
        ("Operation", *map(str, across)),
        [[(str(row),), *((mark,) for mark in each)] for row, each in zip(down, marks, strict=True)],
        cells=[[None, *map(_TONES.get, each)] for each in marks],
        short=("", *(_SHORT[column] for column in across)),
    )
    if any(cell.conflict is Conflict.WRONG for cell in answer.cells):
        yield Callout(Tone.DANGER, ("wrong: both are committed, and the table's rows are wrong.",))
    if answer.question.exception is not None:
        yield Paragraph(("-: not with this exception.",))
    if not _is_explained(answer):
        yield _fact_list([(str(operation), OPERATION_MEANINGS[operation]) for operation in across])


def _cell_sections(answer: ConflictReport) -> Iterator[Block]:
    for number, cell in enumerate(answer.cells):
        title = f"{cell.operation} against {cell.against}: {cell.conflict}"
        yield Section(f"cell-{number}", title, [_fact_list(_cell_facts(answer, cell))])
    if not answer.cells and answer.question.exception is not None:
        yield Paragraph(("No such conflict with this exception.",))
    if meanings := _meanings(answer):
        yield Section("operations", "Operations", [_fact_list(meanings)])


def _exception_section(record: ExceptionRecord) -> Section:
    about = _fact_list(
        [
            ("what", record.summary),
            ("error class", f"{record.error_class} (SQLSTATE {SQLSTATE})"),
            ("engines", ", ".join(record.engines)),
            ("delta-rs", f"{PYTHON} ({VARIANTS[record.name]}): … {MESSAGES[record.name]} …"),
        ]
    )
    causes = [
        Section(
            f"cause-{number}",
            f"cause {number}: {cause.name}",
            [_fact_list([("when", cause.when), ("avoid", cause.avoid), ("source", cause.source)])],
        )
        for number, cause in enumerate(record.causes, 1)
    ]
    return Section("exception", str(record.name), [about, *causes])


def _fact_list(rows: Iterable[tuple[str, str]]) -> FactList:
    return FactList([(name, (text,)) for name, text in rows])


def _is_explained(answer: ConflictReport) -> bool:
    """Return True if operations were named, so that their cells are explained in full."""
    question = answer.question
    return any((question.operation, question.against, question.statement))


def _engine(answer: ConflictReport) -> str:
    """Return the engine, with its version if the cells depend on it."""
    release = _engine_version(answer)
    return str(answer.question.engine) if release is None else f"{answer.question.engine}@{release}"


def _engine_version(answer: ConflictReport) -> str | None:
    """Return the delta-rs version of the cells; None for engines without a versioned matrix."""
    if answer.question.engine is not MatrixEngine.DELTA_RS:
        return None
    return answer.question.release or ".".join(map(str, NEWEST))


def _raised(answer: ConflictReport, cell: Cell) -> list[str]:
    """Return the engine's names for a cell's exceptions."""
    if answer.question.engine is MatrixEngine.DELTA_RS:
        return [VARIANTS[name] for name in cell.exceptions]
    return [str(name) for name in cell.exceptions]


def _facts(answer: ConflictReport) -> list[tuple[str, str]]:
    """Return the facts that determine the matrix, and their reasons."""
    found = [
        ("engine", _engine(answer)),
        ("isolation", f"{answer.isolation}: {answer.isolation_reason}"),
        ("row-level", f"{_switch(answer)}: {answer.row_level_reason}"),
    ]
    if answer.partition_columns:
        found.append(("partitions", ", ".join(answer.partition_columns)))
    if answer.identity:
        found.append(("identity", "the table has identity columns"))
    return found


def _switch(answer: ConflictReport) -> str:
    if not answer.by_row:
        return "off"
    some = answer.by_row != CHANGE_OPERATIONS
    return f"on for {', '.join(sorted(answer.by_row))}" if some else "on"


def _statement_facts(answer: ConflictReport) -> list[tuple[str, str]]:
    """Return the statement's operation, the reason, and advice; empty without a statement."""
    statement = answer.question.statement
    if statement is None:
        return []
    found = statement.classification
    counted = str(found.operation) if found.operation is not None else "none"
    return [
        ("statement", shorten(statement.sql, _LONGEST_STATEMENT)),
        ("counts as", counted if found.understood else "not understood"),
        *(("because", line) for line in found.reasons),
        *(("warning", line) for line in answer.statement_warnings),
        *(("advice", line) for line in answer.statement_advice),
    ]


def _suspect_lines(answer: ConflictReport) -> list[str]:
    """Return the commits that could have raised the exception; empty if not requested."""
    if answer.suspects is None:
        return []
    lines = [
        f"version {s.version}, {format_timestamp(s.timestamp)}: {s.operation} by "
        f"{s.engine or 'an unnamed client'}{f', {s.user}' if s.user else ''}"
        for s in answer.suspects.found
    ]
    if not answer.suspects.complete:
        lines.append("Some commits could not be read.")
    return lines or ["No commit within ten minutes of that time can have raised it."]


def _rows_and_columns(answer: ConflictReport) -> tuple[list[Operation], list[Operation]]:
    """Return the operations in the rows and columns of the grid."""
    question = answer.question
    return (
        [o for o in Operation if _shown(o, question.operation)],
        [o for o in Operation if _shown(o, question.against)],
    )


def _shown(operation: Operation, requested: Operation | None) -> bool:
    return operation is requested or (requested is None and operation not in UNLISTED_OPERATIONS)


def _cell_facts(answer: ConflictReport, cell: Cell) -> list[tuple[str, str]]:
    """Return the explanation of one cell."""
    names = _raised(answer, cell)
    found = [("exceptions", ", ".join(names))] if names else []
    return [*found, ("when", cell.when), ("avoid", cell.avoid), ("source", cell.source)]


def _meanings(answer: ConflictReport) -> list[tuple[str, str]]:
    """Return the definitions of the requested operations."""
    requested = dict.fromkeys((answer.question.operation, answer.question.against))
    return [
        (str(operation), OPERATION_MEANINGS[operation])
        for operation in requested
        if operation is not None
    ]


def conflicts_fields(answer: ConflictReport) -> dict[str, Any]:
    """Return the cells and what determines them as JSON."""
    question, compute = answer.question, answer.question.compute
    payload: dict[str, Any] = {
        "engine": str(question.engine),
        "engine_version": _engine_version(answer),
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
            {**s._asdict(), "timestamp": format_timestamp(s.timestamp)}
            for s in answer.suspects.found
        ]
    return payload


def _cell(answer: ConflictReport, cell: Cell) -> dict[str, Any]:
    return {
        "operation": str(cell.operation),
        "against": str(cell.against),
        "conflict": str(cell.conflict),
        "exceptions": [str(name) for name in cell.exceptions],
        "raised_as": _raised(answer, cell),
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
