"""A measurement on a terminal: what is not right in two grids, and each wrong answer."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from deltaproto.clients.measurement import Cell, Operation, Outcome
from deltaproto.report.certification.words import (
    Certified,
    asked,
    by_case,
    counts,
    surroundings,
    told,
)
from deltaproto.report.console import DataConsole, pairs

_MARKS = {
    Outcome.RIGHT: ("+", "green"),
    Outcome.REFUSED: ("-", "dim"),
    Outcome.TIMED_OUT: ("t", "yellow"),
    Outcome.CRASHED: ("!", "yellow"),
    Outcome.WRONG: ("X", "bold red"),
    Outcome.NOT_OFFERED: (" ", ""),
}
_HEADS = {
    Operation.TIME_TRAVEL: "time",
    Operation.APPEND_OMITTING: "omit",
    Operation.APPEND_VIOLATING: "violate",
    Operation.OVERWRITE: "overwr",
    Operation.OPTIMIZE: "optim",
    Operation.CHECKPOINT: "checkp",
    Operation.CONFIGURE: "config",
}


def print_certified(console: DataConsole, certified: Certified) -> None:
    """The whole answer."""
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


def _single(console: DataConsole, certified: Certified, cell: Cell) -> None:
    case = certified.cases[cell.case]
    facts = [
        ("table", f"{case.name}: {case.about}"),
        ("operation", str(cell.operation)),
        ("outcome", str(cell.outcome)),
    ]
    console.print(pairs([*facts, *([("why", cell.why)] if cell.why else [])]))


def _all_right(cells: Iterable[Cell]) -> bool:
    fine = (Outcome.RIGHT, Outcome.NOT_OFFERED)
    return all(cell.outcome in fine for cell in cells)


def _seen(outcome: Outcome) -> bool:
    return outcome is not Outcome.NOT_OFFERED


def _grid(
    title: str, operations: list[Operation], found: dict[str, dict[Operation, Cell]]
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
