"""Charts as SVG, generated without a library, so that their size depends only on their data.

Colors are CSS classes: the page's light and dark styles define them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode

from deltaproto.render.interface import escape_control_chars
from deltaproto.render.terminal import single_line

COLOURS = 8
_ROW, _LABEL, _WIDTH = 26, 190, 720
_HEIGHT, _LEFT, _BOTTOM, _TOP = 220, 56, 34, 12


class Period(NamedTuple):
    """A bar of a timeline, in seconds since the epoch."""

    start: float
    end: float
    series: int
    """number of its color"""
    caption: str
    thin: bool = False


def bars(label: str, rows: Sequence[tuple[str, int]]) -> str:
    """Return horizontal bars, one for each row."""
    most = max((count for _, count in rows), default=0) or 1
    room = _WIDTH - _LABEL - 80
    parts = []
    for number, (name, count) in enumerate(rows):
        top = number * _ROW
        width = max(room * count / most, 1.0)
        parts.append(
            f"<text x='{_LABEL - 8}' y='{top + 17}' text-anchor='end'>{_text(name, 24)}</text>"
            f"<rect class='s0' x='{_LABEL}' y='{top + 4}' width='{width:.1f}' height='17' rx='2'>"
            f"<title>{_text(f'{name}: {count:,}')}</title></rect>"
            f"<text x='{_LABEL + width + 6:.1f}' y='{top + 17}'>{count:,}</text>"
        )
    return _svg(label, len(rows) * _ROW + 4, "".join(parts))


def columns(label: str, marks: Sequence[str], series: Sequence[tuple[str, Sequence[int]]]) -> str:
    """Return a stacked column for each mark, with a legend."""
    totals = [sum(values) for values in zip(*(each for _, each in series), strict=True)]
    most = max(totals, default=0) or 1
    room, step = _HEIGHT - _BOTTOM - _TOP, (_WIDTH - _LEFT) / max(len(marks), 1)
    wide = min(step * 0.7, 48)
    parts = [
        f"<line class='axis' x1='{_LEFT}' x2='{_WIDTH}' y1='{y}' y2='{y}'/>"
        f"<text x='{_LEFT - 6}' y='{y + 4}' text-anchor='end'>{value:,}</text>"
        for value, y in ((most, _TOP), (0, _TOP + room))
    ]
    every = max(1, -(-len(marks) // 8))
    for place, mark in enumerate(marks):
        left = _LEFT + step * place + (step - wide) / 2
        base = float(_TOP + room)
        for number, (name, values) in enumerate(series):
            height = room * values[place] / most
            base -= height
            if height:
                caption = _text(f"{mark}, {name}: {values[place]:,}")
                parts.append(
                    f"<rect class='s{number % COLOURS}' x='{left:.1f}' y='{base:.1f}' "
                    f"width='{wide:.1f}' height='{height:.1f}'><title>{caption}</title></rect>"
                )
        if place % every == 0:
            middle = left + wide / 2
            parts.append(
                f"<text x='{middle:.1f}' y='{_HEIGHT - 12}' text-anchor='middle'>"
                f"{_text(mark, 16)}</text>"
            )
    for number, (name, _) in enumerate(series):
        row, column = divmod(number, 4)
        x, y = _LEFT + column * 165, _HEIGHT + 14 + row * 22
        parts.append(_key(number, name, x, y))
    rows = -(-len(series) // 4)
    return _svg(label, _HEIGHT + rows * 22 + 6, "".join(parts))


def timeline(
    label: str, rows: Sequence[tuple[str, Sequence[Period]]], legend: Mapping[int, str]
) -> str:
    """Return a row of periods for each name, above an axis with dates in UTC and a legend.

    Args:
        legend: the meaning of each series.
    """
    periods = [period for _, row in rows for period in row]
    begin, end = min(each.start for each in periods), max(each.end for each in periods)
    span, room = max(end - begin, 1.0), _WIDTH - _LABEL - 16
    bottom = len(rows) * _ROW + 4
    parts = []
    for number, (name, row) in enumerate(rows):
        top = number * _ROW
        parts.append(
            f"<text x='{_LABEL - 8}' y='{top + 17}' text-anchor='end'>{_text(name, 24)}</text>"
        )
        for each in row:
            left = _LABEL + room * (each.start - begin) / span
            width = max(room * (each.end - each.start) / span, 3.0)
            # Thin periods lie below the others.
            y, height = (top + 21, 4) if each.thin else (top + 4, 15)
            parts.append(
                f"<rect class='s{each.series % COLOURS}' x='{left:.1f}' y='{y}' "
                f"width='{width:.1f}' height='{height}' rx='1'>"
                f"<title>{_text(each.caption)}</title></rect>"
            )
    parts.append(
        f"<line class='axis' x1='{_LABEL}' x2='{_LABEL + room}' y1='{bottom}' y2='{bottom}'/>"
    )
    for mark in range(5):
        x = _LABEL + room * mark / 4
        anchor = ("start", "middle", "middle", "middle", "end")[mark]
        shown = datetime.fromtimestamp(begin + span * mark / 4, UTC)
        parts.append(
            f"<text x='{x:.1f}' y='{bottom + 18}' text-anchor='{anchor}'>{shown:%m-%d %H:%M}</text>"
        )
    for number, (series, name) in enumerate(legend.items()):
        parts.append(_key(series, name, _LABEL + number * 175, bottom + 46))
    return _svg(label, bottom + 56, "".join(parts))


def _key(series: int, name: str, x: int, y: int) -> str:
    """Return an entry of a legend."""
    return (
        f"<rect class='s{series % COLOURS}' x='{x}' y='{y - 10}' width='12' height='12'/>"
        f"<text x='{x + 18}' y='{y}'>{_text(name, 20)}</text>"
    )


def _svg(label: str, height: int, inner: str) -> str:
    return (
        f"<svg role='img' aria-label='{_text(label)}' viewBox='0 0 {_WIDTH} {height}' "
        f"width='{_WIDTH}' height='{height}'>{inner}</svg>"
    )


def _text(data: str, most: int = 0) -> str:
    shown = single_line(data)
    if most and len(shown) > most:
        shown = shown[: most - 1] + "…"
    return escape(shown, quote=True)


EXPLORER = """
<section id='tables'><h2>All tables</h2>
<noscript><p>The list of all tables needs JavaScript.</p></noscript>
<form id='filters' role='search' aria-label='Tables'>
<label>Search <input type='search' id='q' autocomplete='off' placeholder='name or location'></label>
<label>Protocol <select id='protocol'><option value=''>any</option></select></label>
<label>Feature <select id='feature'><option value=''>any</option></select></label>
<label>Not usable by <select id='client'><option value=''>any client</option></select></label>
<label>Access <select id='access'><option value=''>any</option></select></label>
<label>Folder <select id='group'><option value=''>any</option></select></label>
<label>Finding <select id='rule'><option value=''>any</option></select></label>
<button type='reset'>Show all</button>
</form>
<p id='count' role='status'></p>
<div class='scroll' tabindex='0' role='group' aria-label='Tables'>
<table id='list'><thead><tr>
<th scope='col' data-sort='table'><button type='button'>Table</button></th>
<th scope='col' data-sort='protocol'><button type='button'>Protocol</button></th>
<th scope='col'>Features</th>
<th scope='col' data-sort='clients'><button type='button'>Not usable by</button></th>
<th scope='col' data-sort='findings'><button type='button'>Findings</button></th>
<th scope='col' data-sort='commit'><button type='button'>Last commit</button></th>
</tr></thead><tbody></tbody></table></div>
<p class='pages'><button type='button' id='before'>Earlier</button>
<span id='page'></span>
<button type='button' id='after'>Later</button></p>
</section>
"""


def versions(pair: tuple[int, int]) -> str:
    """Return a protocol version as text."""
    return f"({pair[0]},{pair[1]})"


def query(**values: str) -> str:
    """Return a link to the list of tables, filtered by these values."""
    return "tables?" + urlencode(
        {name: escape_control_chars(value) for name, value in values.items()}
    )
