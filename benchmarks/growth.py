"""How time grows with one size: every side at every size in turns, as a picture and as a table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.page import Row, Section, row, spread, table
from benchmarks.pairs import (
    Cost,
    Side,
    in_turns,
    mebibytes,
    own_peak,
    processor,
    ratio,
    seconds,
)
from benchmarks.picture import Point, Series, curves, duration

_OURS = "deltaproto"


class Growth(NamedTuple):
    """One curve for each side."""

    file: str
    """of the picture"""
    title: str
    told: str
    across: str
    """what grows, in the plural"""
    short: str
    """the same in a word"""
    up: str
    sides: Callable[[Path, int], Mapping[str, Side]]
    """what runs at a size, on what was made for it; the first one is `deltaproto`"""
    make: Callable[[Path, int], None]
    at_most: Mapping[tuple[str, str], float] = {}
    """bounds at the largest size, by peer and measure"""


def grown(folder: Path, growth: Growth, sizes: Sequence[int], rounds: int, slow: int) -> Section:
    """Measure it; Spark runs in `slow` rounds."""
    found: dict[int, dict[str, list[Cost]]] = {}
    for size in sizes:
        print(f"{growth.title}: {size:,}", flush=True)
        root = folder / f"{growth.file.partition('.')[0]}-{size}"
        growth.make(root, size)
        sides = growth.sides(root, size)
        fewer = {name: slow for name in sides if name.startswith("Spark")}
        found[size] = in_turns(sides, rounds, fewer)
    rows = _rows(growth, sizes[-1], found[sizes[-1]])
    picture = curves(growth.title, growth.across, growth.up, _series(found))
    more = f"![{growth.title}](pictures/{growth.file})\n\n{_table(growth.across, found)}"
    return Section(growth.title, growth.told, rows, (), more, {growth.file: picture})


def _rows(growth: Growth, size: int, costs: Mapping[str, Sequence[Cost]]) -> list[Row]:
    """Each side at this size, in every measure that it knows."""
    rows = []
    for peer, theirs in costs.items():
        for of in _measures(theirs) if peer != _OURS else ():
            name = f"deltaproto / {peer}, {size:,} {growth.short}"
            rows.append(row(name, costs[_OURS], theirs, of, growth.at_most.get((peer, of))))
    return rows


def _measures(theirs: Sequence[Cost]) -> Iterator[str]:
    """What is known of a peer: its memory only where it is more than the measuring process has."""
    yield "time"
    if processor(theirs):
        yield "processor"
    if any(peak > own_peak() for peak in mebibytes(theirs)):
        yield "peak memory"


def _series(found: Mapping[int, Mapping[str, Sequence[Cost]]]) -> list[Series]:
    names = dict.fromkeys(name for costs in found.values() for name in costs)
    return [
        Series(name, [_point(size, costs[name]) for size, costs in found.items() if name in costs])
        for name in names
    ]


def _point(size: int, costs: Sequence[Cost]) -> Point:
    each = seconds(costs)
    return Point(size, min(each), statistics.median(each), max(each))


def _table(across: str, found: Mapping[int, Mapping[str, Sequence[Cost]]]) -> str:
    """Median times, and below them deltaproto's ratio to each."""
    names = list(dict.fromkeys(name for costs in found.values() for name in costs))
    rows = []
    for size, costs in found.items():
        cells = [f"{size:,}"]
        for name in names:
            if name not in costs:
                cells.append("")
                continue
            told = duration(statistics.median(seconds(costs[name])))
            if name != _OURS:
                told += f"<br>{spread(ratio(seconds(costs[_OURS]), seconds(costs[name])))}"
            cells.append(told)
        rows.append(cells)
    return table((across, *names), rows)
