"""The feature catalog as text."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.table import Table
from rich.text import Text

from deltaproto.protocol.feature import EVERY_RUNTIME, Feature, FeatureKind, FeatureStatus
from deltaproto.render import words
from deltaproto.render.console import DataConsole

_NAME_WIDTH = 28


def print_features(console: DataConsole, features: Iterable[Feature]) -> None:
    """Print all features, one per line, grouped by status."""
    by_status: dict[FeatureStatus, list[Feature]] = {}
    for feature in features:
        by_status.setdefault(feature.status, []).append(feature)
    for status, members in by_status.items():
        grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
        grid.add_column(f"{status} features", no_wrap=True, min_width=_NAME_WIDTH)
        for heading in ("needed by", "R,W", "Delta", "DBR", "droppable"):
            grid.add_column(heading, no_wrap=True)
        for feature in members:
            grid.add_row(*_row(feature))
        console.print(grid, "")
    console.print(
        *(
            Text(text, style="dim")
            for text in (
                "R,W = lowest reader and writer version; Delta, DBR = first delta-spark release",
                "      and Databricks Runtime that know the feature (all = all supported ones)",
                *words.DROP_MARKS.values(),
                "`deltaproto features NAME` tells everything about one",
            )
        )
    )


def _row(feature: Feature) -> tuple[str, ...]:
    runtime = feature.since.databricks or "-"
    return (
        feature.name,
        "writers" if feature.kind is FeatureKind.WRITER else "everyone",
        f"{feature.min_reader},{feature.min_writer}",
        feature.since.delta_spark or "-",
        "all" if runtime == EVERY_RUNTIME else runtime,
        words.droppable(feature),
    )


def print_feature(console: DataConsole, feature: Feature, facts: Iterable[tuple[str, str]]) -> None:
    """Print all details of one feature."""
    console.print(Text(feature.name, style="bold"), Text(feature.summary), "")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    previous = ""
    for label, text in facts:
        grid.add_row("" if label == previous else label, Text(text))
        previous = label or previous
    console.print(grid)
