"""The client catalogue as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from deltaproto.clients.candidate import Candidate, latest_version
from deltaproto.clients.capability import Client
from deltaproto.report.clients import (
    HEADINGS,
    MATRIX_HEADINGS,
    gate_text,
    matrix_rows,
    measured_versions,
    offers,
    range_facts,
    row_text,
    span,
)
from deltaproto.report.console import DataConsole, pairs

_STYLES = {
    "yes": "green",
    "unknown": "yellow",
    "only unused": "yellow",
    "not checked": "bold red",
    "no": "red",
}


def print_clients(console: DataConsole, rows: Iterable[Sequence[str]]) -> None:
    """All clients, a line each."""
    grid = _grid(HEADINGS[2:], first=HEADINGS[0])
    for row in rows:
        grid.add_row(row[0], *row[2:])
    console.print(grid, "")
    console.print(Text("`deltaproto clients ID` tells everything about one", style="dim"))


def print_client(console: DataConsole, client: Client) -> None:
    """One client, a block for each range of versions."""
    console.print(Text(client.id, style="bold"), Text(client.name), "")
    for each in client.ranges:
        console.print(Text(span(each), style="bold"))
        facts: list[tuple[str, str]] = []
        for path in each.paths:
            facts += [(f"path {path.name}", "")] if path.name else []
            facts += [
                ("reads", gate_text(path.read)),
                ("writes", gate_text(path.write)),
                ("offers", offers(path)),
            ]
        if each.note:
            facts.append(("note", each.note))
        if each.newest:
            facts.append(("newest", each.newest))
        facts.append(("known from", str(each.confidence)))
        console.print(pairs(facts), "", indent=2)
    if client.measured:
        console.print(pairs([("measured", measured_versions(client))]), "")
    newest = latest_version(client.newest, client)
    example = f"{client.id}@{newest}" if newest else client.id
    console.print(Text(f"`deltaproto clients {example}` shows every feature", style="dim"))


def print_candidate(console: DataConsole, candidate: Candidate) -> None:
    """One version: what it takes, every feature, the evidence."""
    console.print(Text(str(candidate.reference), style="bold"), Text(candidate.client.name), "")
    if candidate.range is None:
        console.print(Text(f"unknown: {candidate.unknown}", style="bold red"))
        return
    for path, rows in matrix_rows(candidate):
        if path.name:
            console.print(Text(f"path {path.name}", style="bold"))
        facts = [
            ("reads", gate_text(path.read)),
            ("writes", gate_text(path.write)),
            ("offers", offers(path)),
        ]
        console.print(pairs(facts), "", indent=2)
        grid = _grid(MATRIX_HEADINGS)
        for row in rows:
            name, kind, *answers = row_text(row)
            grid.add_row(name, kind, *(Text(a, style=_STYLES.get(a, "dim")) for a in answers))
        console.print(grid, "", indent=2)
    known = [("known from", str(candidate.range.confidence)), *range_facts(candidate.range)]
    console.print(pairs(known), indent=2)


def _grid(headings: Iterable[str], *, first: str | None = None) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    if first is not None:
        grid.add_column(first, no_wrap=True)
    for heading in headings:
        grid.add_column(heading, overflow="fold")
    return grid
