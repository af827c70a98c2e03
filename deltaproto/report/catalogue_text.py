"""The feature catalogue as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from deltaproto.protocol.feature import Feature
from deltaproto.report import words
from deltaproto.report.console import DataConsole


def print_features(
    console: DataConsole, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """All features, a line each."""
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    for heading in headings:
        grid.add_column(heading, no_wrap=heading == "feature", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    console.print(grid, "")
    console.print(*(Text(text, style="dim") for text in words.DROP_MARKS.values()))
    console.print(Text("`deltaproto features NAME` tells everything about one", style="dim"))


def print_feature(console: DataConsole, feature: Feature, facts: Iterable[tuple[str, str]]) -> None:
    """One feature with everything known about it."""
    console.print(Text(feature.name, style="bold"), Text(feature.summary), "")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    previous = ""
    for label, text in facts:
        grid.add_row("" if label == previous else label, Text(text))
        previous = label or previous
    console.print(grid)
