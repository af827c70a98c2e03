"""The conflict matrix as text for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from deltaproto.inspection.conflicts import Conflicts
from deltaproto.protocol.conflicts.cell import Conflict
from deltaproto.protocol.conflicts.delta_rs import MESSAGES, PYTHON, VARIANTS
from deltaproto.protocol.conflicts.exception import SQLSTATE, ExceptionRecord
from deltaproto.protocol.conflicts.operation import MEANING, Operation
from deltaproto.report.conflicts import (
    cell_facts,
    explained,
    facts,
    grid,
    meanings,
    rows_and_columns,
    statement_facts,
    suspect_lines,
    title,
)
from deltaproto.report.console import DataConsole, pairs

# Ten columns and the names of the rows have to fit into 80 characters.
SHORT = {
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
_STYLES = {"no": "green", "maybe": "yellow", "yes": "red", "wrong": "bold red", "-": "dim"}


def print_conflicts(console: DataConsole, answer: Conflicts) -> None:
    """The grid, then whatever was asked for in particular, then what else to know."""
    console.print(Text(title(answer), style="bold"))
    console.print(pairs(facts(answer)), indent=2)
    console.print("")
    if stated := statement_facts(answer):
        console.print(pairs(stated), indent=2)
        console.print("")
    if answer.question.exception is not None:
        _print_exception(console, answer.question.exception)
        _print_lines(console, "suspects", suspect_lines(answer))
    shown = bool(answer.cells) or answer.question.statement is None
    if len(answer.cells) > 1 or not explained(answer):
        _print_grid(console, answer)
    if explained(answer) and shown:
        _print_cells(console, answer)
    _print_lines(console, "for this table", answer.advice)
    _print_lines(console, "to know", answer.notes)


def _print_grid(console: DataConsole, answer: Conflicts) -> None:
    _, across = rows_and_columns(answer)
    found = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    found.add_column("", no_wrap=True)
    for column in across:
        found.add_column(SHORT[column], no_wrap=True, min_width=5)
    for row, marks in grid(answer):
        found.add_row(str(row), *(Text(mark, style=_STYLES[mark]) for mark in marks))
    console.print(found, indent=2)
    console.print("")
    lines = ["row: commits last and may lose; column: was committed meanwhile"]
    if any(cell.conflict is Conflict.WRONG for cell in answer.cells):
        lines.append("wrong: both are committed, and the table's rows are wrong")
    if answer.question.exception is not None:
        lines.append("-: not with this exception")
    for line in lines:
        console.print(Text(line, style="dim"), indent=2)
    if not explained(answer):
        console.print(pairs((f"{SHORT[o]}  {o}", MEANING[o]) for o in across), indent=2)
    else:
        legend = ", ".join(f"{SHORT[o]} {o}" for o in across)
        console.print(pairs([("columns", legend)]), indent=2)
    console.print("")


def _print_cells(console: DataConsole, answer: Conflicts) -> None:
    for cell in answer.cells:
        head = Text(f"  {cell.operation} against {cell.against}: ", style="bold")
        head.append(str(cell.conflict), style=_STYLES[cell.conflict])
        console.print(head)
        console.print(pairs(cell_facts(answer, cell)), indent=4)
        console.print("")
    if not answer.cells and answer.question.exception is not None:
        console.print(Text("  no such conflict with this exception"), "")
    console.print(pairs(meanings(answer)), indent=2)
    console.print("")


def _print_exception(console: DataConsole, record: ExceptionRecord) -> None:
    console.print(Text(f"  {record.name}", style="bold"))
    about = [
        ("what", record.summary),
        ("error class", f"{record.error_class} (SQLSTATE {SQLSTATE})"),
        ("engines", ", ".join(record.engines)),
        ("delta-rs", f"{PYTHON} ({VARIANTS[record.name]}): … {MESSAGES[record.name]} …"),
    ]
    console.print(pairs(about), indent=4)
    console.print("")
    for number, cause in enumerate(record.causes, 1):
        console.print(Text(f"  cause {number}: {cause.name}", style="bold"))
        told = [("when", cause.when), ("avoid", cause.avoid), ("source", cause.source)]
        console.print(pairs(told), indent=4)
        console.print("")


def _print_lines(console: DataConsole, label: str, lines: Iterable[str]) -> None:
    labelled = [(label if number == 0 else "", line) for number, line in enumerate(lines)]
    if labelled:
        console.print(pairs(labelled), indent=2)
        console.print("")
