"""`RESULTS.md`: two parts, each written by one make target and left alone by the other."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.pairs import Cost, Ratio, mebibytes, processor, ratio, seconds
from benchmarks.picture import duration

_HEAD = """# Benchmarks

Written by `make bench` and `make bench-fleet`; do not edit. Seconds are of the machine below and of
little use elsewhere. Ratios are the result: deltaproto divided by its peer, so that below 1 is less
than the peer takes.

How it is measured: what is compared runs in turns, every other round in reverse order, after one
uncounted run of each, so that nobody's caches are colder. A ratio is the median of the rounds' own
ratios; between brackets is what its 95 % bootstrap interval spans (with three rounds, that is their
lowest and highest). No side uses a network. Memory is an upper limit: Linux counts a process from
what the one that started it had, some 20 MiB; a peer that takes less is not compared by memory. A
bound that is missed is marked, and fails the target.
"""
_PARTS = {"bench": "One table, and saved fleets", "bench-fleet": "Fleets"}
_MEASURES = {
    "time": (seconds, duration),
    "processor": (processor, duration),
    "peak memory": (mebibytes, lambda value: f"{value:.0f} MiB"),
}


class Row(NamedTuple):
    """What is compared, both medians, their ratio, and what it must not exceed."""

    name: str
    of: str
    ours: str
    theirs: str
    ratio: Ratio
    at_most: float | None = None

    @property
    def kept(self) -> bool:
        return self.at_most is None or self.ratio.median <= self.at_most


class Figure(NamedTuple):
    """A number that has no peer."""

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None

    @property
    def kept(self) -> bool:
        return self.at_most is None or self.value <= self.at_most


class Section(NamedTuple):
    """One comparison: what is counted, its ratios and figures, and Markdown after these."""

    title: str
    told: str
    rows: Sequence[Row] = ()
    figures: Sequence[Figure] = ()
    more: str = ""
    pictures: Mapping[str, str] = {}
    """SVG by file name"""

    @property
    def missed(self) -> list[str]:
        each: list[Row | Figure] = [*self.rows, *self.figures]
        return [one.name for one in each if not one.kept]


def row(
    name: str,
    ours: Sequence[Cost],
    theirs: Sequence[Cost],
    of: str = "time",
    at_most: float | None = None,
) -> Row:
    """One side against another, of two that ran in turns."""
    values, shown = _MEASURES[of]
    one, other = values(ours), values(theirs)
    told = [f"{shown(statistics.median(each))}, least {shown(min(each))}" for each in (one, other)]
    return Row(name, of, told[0], told[1], ratio(one, other), at_most)


def write(
    folder: Path,
    part: str,
    where: Sequence[tuple[str, str]],
    sections: Sequence[Section],
    *,
    quick: bool = False,
) -> Path:
    """Put a part on the page in `folder`, and its pictures beside it.

    Args:
        folder: of the page.
        part: the make target.
        where: machine and versions.
        sections: what was measured.
        quick: whether it was a try-out, which the page then says.
    """
    page = folder / "RESULTS.md"
    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    for section in sections:
        for name, svg in section.pictures.items():
            (pictures / name).write_text(svg, encoding="utf-8")
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    texts = {name: _part(old, name) for name in _PARTS}
    texts[part] = _rendered(part, where, sections, quick=quick)
    whole = [_HEAD, *(f"<!-- {name} -->\n{text.strip()}\n" for name, text in texts.items())]
    page.write_text("\n".join(whole), encoding="utf-8")
    return page


def spread(found: Ratio) -> str:
    """0.21 (0.19 to 0.24)"""
    return f"{number(found.median)} ({number(found.low)} to {number(found.high)})"


def number(value: float) -> str:
    """To three digits, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 2 if value >= 0.1 else 3}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with numbers on the right."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "".join("| " + " | ".join(each) + " |\n" for each in (head, rule, *rows))


def _part(page: str, name: str) -> str:
    found = re.search(rf"^<!-- {name} -->\n(.*?)(?=^<!-- |\Z)", page, re.M | re.S)
    return found[1] if found else f"## {_PARTS[name]}\n\nNot measured yet: `make {name}`.\n"


def _rendered(
    part: str, where: Sequence[tuple[str, str]], sections: Sequence[Section], *, quick: bool
) -> str:
    warning = "**A try-out with `--quick`: too small to be quoted.**\n\n" if quick else ""
    head = f"## {_PARTS[part]}\n\n{warning}{table(('', f'`make {part}`'), where)}"
    blocks = [head, *map(section_text, sections)]
    return "\n".join(blocks)


def section_text(section: Section) -> str:
    """The section as Markdown, without its pictures."""
    blocks = [f"### {section.title}\n\n{section.told.strip()}\n"]
    if section.rows:
        head = ("compared", "of", "first", "second", "first / second", "rounds", "at most")
        blocks.append(table(head, [_cells(each) for each in section.rows]))
    if section.figures:
        figures = [
            (each.name, f"{number(each.value)} {each.unit}".strip(), _bound(each))
            for each in section.figures
        ]
        blocks.append(table(("on its own", "", "at most"), figures))
    return "\n".join([*blocks, *([section.more.strip() + "\n"] if section.more else [])])


def _cells(row: Row) -> tuple[str, ...]:
    found = row.ratio
    return (row.name, row.of, row.ours, row.theirs, spread(found), str(found.pairs), _bound(row))


def _bound(each: Row | Figure) -> str:
    if each.at_most is None:
        return ""
    return number(each.at_most) + ("" if each.kept else " **missed**")
