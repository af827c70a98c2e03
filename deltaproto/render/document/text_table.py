"""Tables, matrices and facts as lines of text that fit the width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

from deltaproto.caches import BoundedCache, IdentityKey
from deltaproto.render.document.blocks import (
    Code,
    Line,
    MatrixBlock,
    Strong,
    TableBlock,
    Tone,
)
from deltaproto.render.terminal import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    LOUD,
    YELLOW,
    Overlong,
    Painter,
    single_line,
    width_of,
    wrap,
)

CODES = {Tone.GOOD: GREEN, Tone.NOTE: CYAN, Tone.WARNING: YELLOW, Tone.DANGER: LOUD}
INDENT = 2
_T = TypeVar("_T")
_GAP = 2
_TALLEST = 3
_REMEMBERED = 256
_NUMBER = re.compile(r"[\d,]+|")
_CELL = 3
"""width of a matrix cell below an upright heading, with the space before it"""


class LineWriter:
    """Writes folded lines, facts and tables.

    A table that is too wide becomes a list: each row is a heading with its other cells below.
    """

    def __init__(self, painter: Painter) -> None:
        self._painter = painter
        self._tables = BoundedCache[tuple[IdentityKey[TableBlock], int], str](_REMEMBERED)

    def fold(self, line: Line, indent: int, *codes: str, mark: str = "") -> None:
        """Write one wrapped line; `mark`: the start of its first line."""
        left = " " * indent
        self._painter.folded(
            plain(line),
            *codes,
            first=left + mark,
            rest=left + " " * len(mark),
            whole_words=any(isinstance(part, Code) for part in line),
        )

    def facts(self, rows: Sequence[tuple[str, Line]], indent: int) -> None:
        """Write names and values in two columns."""
        names = [single_line(_label(name)) for name, _ in rows]
        width = max(map(width_of, names), default=0)
        rest = " " * (indent + width + _GAP)
        before = ""
        for name, (_, line) in zip(names, rows, strict=True):
            shown = self._painter.paint(_padded("" if name == before else name, width), DIM)
            first, text = f"{' ' * indent}{shown}{' ' * _GAP}", plain(line)
            before = name
            if len(line) == 1 and isinstance(line[0], Code):
                self._painter.line(f"{first}{single_line(text)}".rstrip())
                continue
            self._painter.folded(text, *emphasis(line), first=first, rest=rest)

    def table(self, table: TableBlock, indent: int) -> None:
        """Write a table; reuse the layout of a table that was written before."""
        key = IdentityKey(table), indent
        found = self._tables.get(key)
        if found is not None:
            self._painter.again(found)
            return
        self._tables[key] = self._painter.recorded(lambda: self._table(table, indent))

    def _table(self, table: TableBlock, indent: int) -> None:
        cells = [[single_line(plain(cell)) for cell in row] for row in table.rows]
        for headings, omitted, gap in _layouts(table):
            shown = _without([single_line(each) for each in headings], omitted)
            rows = [_without(row, omitted) for row in cells]
            whole = _without([n in table.whole for n in range(len(headings))], omitted)
            room = self._painter.width - indent - gap * (len(shown) - 1)
            widths = _fitted(list(zip(shown, *rows, strict=True)), room, whole)
            if widths is None or any(_height(row, widths) > _TALLEST for row in rows):
                continue
            self._row(_aligned(shown, rows, widths), widths, indent, gap, [BOLD] * len(widths))
            for number, row in enumerate(rows):
                codes = _without(_row_codes(table, number), omitted)
                self._row(_aligned(row, rows, widths), widths, indent, gap, codes)
            if headings is table.short:
                self._legend(table, indent)
            return
        if not (table.below and self._with_last_below(table, cells, indent)):
            self._records(table, cells, indent)

    def matrix(self, matrix: MatrixBlock, indent: int) -> None:
        """Write a matrix of symbols, with their meanings below.

        Headings are side by side if all fit, or else upright, in as many parts as needed.
        """
        names = [single_line(name) for name, _ in matrix.rows]
        heads = [single_line(each) for each in matrix.headings]
        left = max(map(width_of, (*names, matrix.corner)))
        widths = [max(width_of(each), _CELL - 1) for each in heads]
        room = self._painter.width - indent - left
        upright = sum(widths) + len(widths) > room
        most = max(room // _CELL, 1) if upright else max(len(heads), 1)
        for start in range(0, len(heads), most):
            if start:
                self._painter.line()
            part = slice(start, start + most)
            shown = [_CELL - 1] * len(heads[part]) if upright else widths[part]
            corner = _padded(single_line(matrix.corner), left)
            for line in _upright(heads[part]) if upright else [heads[part]]:
                texts = map(_padded, line, shown)
                self._cells(indent, self._painter.paint(corner, BOLD), texts, [DIM] * len(shown))
                corner = " " * left
            for name, (_, cells) in zip(names, matrix.rows, strict=True):
                symbols = [matrix.symbol(cell) for cell in cells[part]]
                codes = [
                    None if c is None or c.tone is None else CODES[c.tone] for c in cells[part]
                ]
                self._cells(indent, _padded(name, left), map(_padded, symbols, shown), codes)
        self.fold((matrix.legend(),), indent, DIM)

    def _cells(
        self, indent: int, name: str, cells: Iterable[str], codes: Sequence[str | None]
    ) -> None:
        painted = [
            self._painter.paint(cell, code) if code and cell.strip() else cell
            for cell, code in zip(cells, codes, strict=True)
        ]
        self._painter.line(f"{' ' * indent}{name} {' '.join(painted)}".rstrip())

    def _with_last_below(
        self, table: TableBlock, cells: Sequence[Sequence[str]], indent: int
    ) -> bool:
        """Write the rows with their last cells below; return False if even that is too wide."""
        last = len(table.headings) - 1
        for spare in dict.fromkeys((frozenset[int](), table.spare)):
            omitted = spare | {last}
            shown = _without([single_line(each) for each in table.headings], omitted)
            rows = [_without(row, omitted) for row in cells]
            widths = [max(map(width_of, column)) for column in zip(shown, *rows, strict=True)]
            if indent + sum(widths) + _GAP * (len(widths) - 1) <= self._painter.width:
                break
        else:
            return False
        self._row(shown, widths, indent, _GAP, [BOLD] * len(widths))
        for number, (row, every) in enumerate(zip(rows, cells, strict=True)):
            self._row(row, widths, indent, _GAP, _without(_row_codes(table, number), omitted))
            if every[last]:
                label = (f"{_label(table.headings[last])}: {every[last]}",)
                self.fold(label, indent + INDENT, DIM)
        return True

    def _legend(self, table: TableBlock, indent: int) -> None:
        named = zip(table.short, table.headings, strict=True)
        legend = ", ".join(f"{short} {name}" for short, name in named if short not in ("", name))
        self.fold((legend,), indent, DIM)

    def _row(
        self,
        row: Sequence[str],
        widths: Sequence[int],
        indent: int,
        gap: int,
        codes: Sequence[str | None],
    ) -> None:
        folded = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*folded, fillvalue=""):
            shown = []
            for part, width, code in zip(parts, widths, codes, strict=True):
                painted = self._painter.paint(part, code) if code and part else part
                shown.append(painted + " " * (width - width_of(part)))
            self._painter.line(f"{' ' * indent}{(' ' * gap).join(shown)}".rstrip())

    def _records(self, table: TableBlock, cells: Sequence[Sequence[str]], indent: int) -> None:
        lead = table.lead
        if not cells:
            self.fold((", ".join(table.headings),), indent, BOLD)
        for number, row in enumerate(cells):
            codes = [code for code in _row_codes(table, number)[:lead] if code] or [BOLD]
            counts = row[0] and _NUMBER.fullmatch(row[0])
            number_of = f"{_label(table.headings[0])} " if counts else ""
            self.fold((number_of + "  ".join(filter(None, row[:lead])),), indent, codes[0])
            others = zip(table.headings[lead:], table.rows[number][lead:], strict=True)
            self.facts([(name, line) for name, line in others if plain(line)], indent + INDENT)


def emphasis(line: Line) -> tuple[str, ...]:
    return (BOLD,) if len(line) == 1 and isinstance(line[0], Strong) else ()


def _label(heading: str) -> str:
    return heading.lower() if heading[1:].islower() else heading


def _layouts(table: TableBlock) -> Iterator[tuple[Sequence[str], frozenset[int], int]]:
    """Yield headings, omitted columns and the gap between columns, the best layout first."""
    yield table.headings, frozenset(), _GAP
    if table.spare:
        yield table.headings, table.spare, _GAP
    if table.whole:
        yield table.headings, table.spare, 1
    if table.short:
        yield table.short, table.spare, 1


def _without(row: Sequence[_T], omitted: frozenset[int]) -> list[_T]:
    return [each for number, each in enumerate(row) if number not in omitted]


def _aligned(row: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the row with cells of columns of numbers aligned at the right."""
    numeric = [all(map(_NUMBER.fullmatch, column)) for column in zip(*rows, strict=True)]
    return [
        cell.rjust(width) if right else cell
        for cell, width, right in zip(row, widths, numeric or [False] * len(row), strict=True)
    ]


def _upright(headings: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of headings written top to bottom."""
    height = max(map(len, headings))
    for line in range(height):
        yield [heading.rjust(height)[line] for heading in headings]


def _row_codes(table: TableBlock, number: int) -> list[str | None]:
    tones = list(table.cells[number]) if table.cells else [None] * len(table.headings)
    row = table.tones[number] if table.tones else None
    return [None if tone is None else CODES[tone] for tone in (each or row for each in tones)]


def _fitted(columns: Sequence[Sequence[str]], room: int, whole: Sequence[bool]) -> list[int] | None:
    """Return widths that fit, shrinking columns with spare room; None if words would break.

    Args:
        whole: whether a column must not shrink.
    """
    widths = [max(map(width_of, column)) for column in columns]
    if sum(widths) <= room:
        return widths
    least = [
        width
        if fixed
        else max((width_of(word) for cell in column for word in cell.split()), default=0)
        for column, width, fixed in zip(columns, widths, whole, strict=True)
    ]
    while (missing := sum(widths) - room) > 0:
        spare = [width - low for width, low in zip(widths, least, strict=True)]
        widest = spare.index(max(spare))
        if spare[widest] <= 0:
            return None
        second = max((each for place, each in enumerate(spare) if place != widest), default=0)
        widths[widest] -= min(max(spare[widest] - second, 1), missing)
    return widths


def _height(row: Sequence[str], widths: Sequence[int]) -> int:
    return max(len(_wrapped(cell, width)) for cell, width in zip(row, widths, strict=True))


def _wrapped(cell: str, width: int) -> list[str]:
    return [cell] if width_of(cell) <= width else wrap(cell, width, Overlong.FILL)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def plain(line: Line) -> str:
    """Return a line as text without any markup."""
    return "".join(part if isinstance(part, str) else part.text for part in line)
