"""A measurement as terminal text: two grids of tables with problems, and every wrong result."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from deltaproto.clients.measurement import MeasuredOutcome, MeasurementCell, ResultColumn
from deltaproto.render.certification.words import (
    Certified,
    asked,
    by_case,
    counts,
    surroundings,
    told,
)
from deltaproto.render.console import DataConsole, pairs

_MARKS = {
    MeasuredOutcome.RIGHT: ("+", "green"),
    MeasuredOutcome.REFUSED: ("-", "dim"),
    MeasuredOutcome.TIMED_OUT: ("t", "yellow"),
    MeasuredOutcome.CRASHED: ("!", "yellow"),
    MeasuredOutcome.WRONG: ("X", "bold red"),
    MeasuredOutcome.NOT_OFFERED: (" ", ""),
}
_HEADS = {
    ResultColumn.TIME_TRAVEL: "time",
    ResultColumn.APPEND_OMITTING: "omit",
    ResultColumn.APPEND_VIOLATING: "violate",
    ResultColumn.OVERWRITE: "overwr",
    ResultColumn.OPTIMIZE: "optim",
    ResultColumn.CHECKPOINT: "checkp",
    ResultColumn.CONFIGURE: "config",
}


def print_certified(console: DataConsole, certified: Certified) -> None:
    """Print the whole report."""
    measured = certified.measured
    console.print(Text(f"{measured.name}: {told(measured.cells)}", style="bold"), "")
    if len(measured.cells) == 1:
        _single(console, certified, measured.cells[0])
        return
    facts = [fact for fact in surroundings(measured)[1:] if fact[0] != "packages"]
    console.print(pairs(facts), "")
    found = by_case(measured.cells)
    marked = {name: cells for name, cells in found.items() if not _all_right(cells.values())}
    for reads, title in ((True, "reads"), (False, "writes")):
        operations = asked(measured.cells, reads=reads)
        if operations and marked:
            console.print(_grid(title, operations, marked), "")
    if len(marked) < len(found):
        right = len(found) - len(marked)
        console.print(Text(f"on {right:,} other tables everything was right"), "")
    legend = ", ".join(
        f"{_MARKS[each][0]} {each}" for each in counts(measured.cells) if _seen(each)
    )
    console.print(Text(legend, style="dim"), "")
    for cell in certified.wrong:
        console.print(Text(f"WRONG {cell.case}, {cell.operation}: {cell.why}", style="red"))
        console.print(Text(f"  {certified.command(cell)}", style="dim"))
    if certified.wrong:
        console.print("")
    if certified.differences:
        loose = sum(each.looser for each in certified.differences)
        console.print(
            Text(
                f"the catalogue says otherwise on {len(certified.differences):,} tables, and "
                f"promises too much on {loose:,} of them: see --format html"
            )
        )


def _single(console: DataConsole, certified: Certified, cell: MeasurementCell) -> None:
    case = certified.cases[cell.case]
    facts = [
        ("table", f"{case.name}: {case.about}"),
        ("operation", str(cell.operation)),
        ("outcome", str(cell.outcome)),
    ]
    console.print(pairs([*facts, *([("why", cell.why)] if cell.why else [])]))


def _all_right(cells: Iterable[MeasurementCell]) -> bool:
    fine = (MeasuredOutcome.RIGHT, MeasuredOutcome.NOT_OFFERED)
    return all(cell.outcome in fine for cell in cells)


def _seen(outcome: MeasuredOutcome) -> bool:
    return outcome is not MeasuredOutcome.NOT_OFFERED


def _grid(
    title: str,
    operations: list[ResultColumn],
    found: dict[str, dict[ResultColumn, MeasurementCell]],
) -> Table:
    grid = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    grid.add_column(title, no_wrap=True)
    for operation in operations:
        grid.add_column(_HEADS.get(operation, str(operation)), justify="center", no_wrap=True)
    for name, cells in found.items():
        marks = [
            Text(*_MARKS[cells[each].outcome]) if each in cells else Text("") for each in operations
        ]
        if any(mark.plain.strip() for mark in marks):
            grid.add_row(name, *marks)
    return grid
