"""Growth curves as SVG: both axes logarithmic, readable on light and on dark, no library needed.

The colors are those of the HTML reports; a series is told apart by its marker and its name at the
end of the line as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT = 860, 470
_LEFT, _RIGHT, _TOP, _BOTTOM = 86, 208, 52, 62
_LINE = 17
_STYLE = """
svg { --ink: #1c2330; --soft: #566173; --paper: #ffffff; --line: #d5dbe5;
  --s0: #2f6fb7; --s1: #c2571a; --s2: #2c8a57; --s3: #8a4bb0; --s4: #8f6f00; --s5: #b0355b; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e5e9f0; --soft: #a5afbf; --paper: #14181f; --line: #364052;
    --s0: #6aa8ee; --s1: #f0925a; --s2: #63c791; --s3: #c08ae6; --s4: #e0bd4a; --s5: #ec7fa2; } }
text { font: 13px system-ui, sans-serif; fill: var(--soft); }
.title { font-size: 16px; font-weight: 600; fill: var(--ink); }
.paper { fill: var(--paper); } .grid { stroke: var(--line); } .fine { stroke-opacity: .45; }
.leader { stroke: var(--soft); stroke-dasharray: 1 3; }
.curve, .spread { fill: none; stroke-width: 2; stroke-linejoin: round; }
.spread { stroke-width: 1.5; stroke-opacity: .7; } .name { font-weight: 600; }
""" + "".join(
    f".s{n}.curve, .s{n}.spread {{ stroke: var(--s{n}); }}"
    f" .s{n}.mark, .s{n}.name {{ fill: var(--s{n}); }}\n"
    for n in range(6)
)
_MARKS = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    "M-4 -4h8v8h-8z",
    "M0 -5.5L5 4H-5z",
    "M0 -5.5L5.5 0L0 5.5L-5.5 0z",
    "M0 5.5L5 -4H-5z",
    "M-5 -1.5h3.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5z",
)
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


class Point(NamedTuple):
    """A median and what it lies between, in seconds."""

    size: int
    low: float
    middle: float
    high: float


class Series(NamedTuple):
    """One way of doing it, at several sizes."""

    name: str
    points: Sequence[Point]


class _Axes(NamedTuple):
    """Decades of each axis: what they begin and end with, as logarithms."""

    left: float
    right: float
    bottom: float
    top: float

    def x(self, size: float) -> float:
        share = (math.log10(size) - self.left) / (self.right - self.left)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, seconds: float) -> float:
        share = (math.log10(seconds) - self.bottom) / (self.top - self.bottom)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def duration(seconds: float) -> str:
    """In the unit that fits, to three digits: 71.2 ms."""
    factor, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    value = seconds / factor
    return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f} {unit}"


def curves(title: str, across: str, up: str, series: Sequence[Series]) -> str:
    """A picture of at most six series.

    Args:
        title: what is seen.
        across: the horizontal axis, with its unit.
        up: the vertical axis, with its unit.
        series: each with a point at least.
    """
    points = [point for each in series for point in each.points]
    sizes = [math.log10(point.size) for point in points]
    axes = _Axes(
        min(sizes),
        max(max(sizes), min(sizes) + 1),
        math.floor(math.log10(min(point.low for point in points))),
        math.ceil(math.log10(max(point.high for point in points)) + 1e-9),
    )
    parts = [
        f"<text class='title' x='{_LEFT}' y='26'>{escape(title)}</text>",
        *_across(axes, across),
        *_up(axes, up),
    ]
    for number, each in enumerate(series):
        parts += _drawn(axes, number, each)
    parts += _names(axes, series)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label='{escape(title)}' "
        f"viewBox='0 0 {_WIDTH} {_HEIGHT}' width='{_WIDTH}' height='{_HEIGHT}'>\n"
        f"<style>{_STYLE}</style>\n"
        f"<rect class='paper' width='{_WIDTH}' height='{_HEIGHT}' rx='6'/>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _across(axes: _Axes, label: str) -> list[str]:
    bottom = _HEIGHT - _BOTTOM
    parts = []
    for power in range(math.ceil(axes.left - 1e-9), math.floor(axes.right + 1e-9) + 1):
        x = axes.x(10**power)
        parts.append(f"<path class='grid' d='M{x:.1f} {_TOP}V{bottom}'/>")
        parts.append(
            f"<text x='{x:.1f}' y='{bottom + 20}' text-anchor='middle'>{10**power:,}</text>"
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(
        f"<text x='{middle}' y='{_HEIGHT - 16}' text-anchor='middle'>{escape(label)}</text>"
    )
    return parts


def _up(axes: _Axes, label: str) -> list[str]:
    parts = []
    for power in range(int(axes.bottom), int(axes.top) + 1):
        for digit in (1, 2, 5) if power < axes.top else (1,):
            y = axes.y(digit * 10**power)
            fine = "" if digit == 1 else " fine"
            parts.append(f"<path class='grid{fine}' d='M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}'/>")
            if digit == 1:
                told = _tick(power)
                parts.append(
                    f"<text x='{_LEFT - 8}' y='{y + 4:.1f}' text-anchor='end'>{told}</text>"
                )
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts.append(
        f"<text transform='translate(20 {middle}) rotate(-90)' text-anchor='middle'>"
        f"{escape(label)}</text>"
    )
    return parts


def _tick(power: int) -> str:
    factor, unit = next((each for each in _UNITS if 10**power >= each[0] * 0.99), _UNITS[-1])
    return f"{10**power / factor:,.0f} {unit}"


def _drawn(axes: _Axes, number: int, series: Series) -> list[str]:
    """The line, a bar for each point's spread, and the points, which tell their value."""
    places = [(axes.x(point.size), axes.y(point.middle)) for point in series.points]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [f"<path class='s{number} curve' d='M{line}'/>"]
    for point, (x, y) in zip(series.points, places, strict=True):
        told = f"{series.name}, {point.size:,}: {duration(point.middle)}"
        between = f"{duration(point.low)} to {duration(point.high)}"
        parts += [
            f"<path class='s{number} spread' d='M{x:.1f} {axes.y(point.low):.1f}"
            f"V{axes.y(point.high):.1f}'/>",
            f"<path class='s{number} mark' d='{_MARKS[number]}' "
            f"transform='translate({x:.1f} {y:.1f})'><title>{escape(f'{told} ({between})')}"
            "</title></path>",
        ]
    return parts


def _names(axes: _Axes, series: Sequence[Series]) -> list[str]:
    """Each name right of its line's end, or as near below as the others leave room."""
    ends = sorted(
        (axes.y(each.points[-1].middle), number, each) for number, each in enumerate(series)
    )
    heights: list[float] = []
    for wanted, *_ in ends:
        heights.append(max(wanted, heights[-1] + _LINE) if heights else wanted)
    # What was pushed below the axis moves up again, and the others with it.
    lowest = float(_HEIGHT - _BOTTOM)
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], lowest)
        lowest = heights[place] - _LINE
    left = _WIDTH - _RIGHT + 16
    parts = []
    for (end, number, each), y in zip(ends, heights, strict=True):
        x = axes.x(each.points[-1].size)
        parts += [
            f"<path class='leader' d='M{x + 7:.1f} {end:.1f}L{left - 4} {y:.1f}'/>",
            f"<text class='s{number} name' x='{left}' y='{y + 4:.1f}'>{escape(each.name)}</text>",
        ]
    return parts
