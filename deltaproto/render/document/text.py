"""Documents as text, for terminals, pipes and logs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import IO, TypeVar, assert_never

from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Checks,
    CodeBlock,
    Details,
    Document,
    FactList,
    Figure,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.interface import escape_control_chars
from deltaproto.render.terminal import BOLD, CYAN, DIM, GREEN, LOUD, YELLOW, Painter, single_line

_CODES = {Tone.GOOD: GREEN, Tone.NOTE: CYAN, Tone.WARNING: YELLOW, Tone.DANGER: LOUD}
_LABELS = {Tone.GOOD: "", Tone.NOTE: "note: ", Tone.WARNING: "warning: ", Tone.DANGER: "caution: "}
_APART = (Section, TableBlock, CodeBlock, Details, Figure)
_T = TypeVar("_T")
_GAP = 2
_INDENT = 2
_PIPED_WIDTH = 80
_TALLEST = 3


class TextWriter:
    """Writes documents, or their blocks one after the other, to one file.

    A table that is too wide becomes a list: each row a heading with its other cells below.
    """

    def __init__(self, file: IO[str], *, color: bool) -> None:
        self._painter = Painter(file, color=color, piped_width=_PIPED_WIDTH)
        self._before: Block | None = None

    def document(self, document: Document) -> None:
        """Write a whole document."""
        self._painter.line(self._painter.paint(document.title, BOLD))
        if document.subtitle:
            self._fold(document.subtitle, 0)
        for block in document.blocks:
            self.block(block, apart=True)

    def block(self, block: Block, *, apart: bool = False) -> None:
        """Write the next block; `apart`: after an empty line."""
        first = self._before is None
        if apart or (not first and isinstance(block, _APART)) or isinstance(self._before, _APART):
            self._painter.line()
        self._before = block
        self._block(block, 0)

    def _blocks(self, blocks: Sequence[Block], indent: int) -> None:
        for number, block in enumerate(blocks):
            if number and (isinstance(block, _APART) or isinstance(blocks[number - 1], _APART)):
                self._painter.line()
            self._block(block, indent)

    def _block(self, block: Block, indent: int) -> None:
        match block:
            case Paragraph(line):
                self._fold(line, indent)
            case Bullets(lines):
                for line in lines:
                    self._fold(line, indent, mark="- ")
            case Checks(lines):
                for line in lines:
                    self._fold(line, indent, mark="[ ] ")
            case FactList(rows):
                self._facts([(name, _plain(line)) for name, line in rows], indent)
            case TableBlock():
                self._table(block, indent)
            case CodeBlock():
                if block.title:
                    self._fold((f"{block.title}:",), indent)
                for text in escape_control_chars(block.text).split("\n"):
                    self._painter.line(f"{' ' * indent}{text}".rstrip())
            case Figure(_, caption, table):
                self._fold((caption,), indent, BOLD)
                self._table(table, indent)
            case Callout(tone, line):
                self._fold((_LABELS[tone], *line), indent, _CODES[tone])
            case Details(summary, blocks):
                self._titled(summary, blocks, indent)
            case Section(_, title, blocks):
                self._titled(title, blocks, indent)
            case _:
                assert_never(block)

    def _titled(self, title: str, blocks: Sequence[Block], indent: int) -> None:
        self._fold((title,), indent, BOLD)
        self._blocks(blocks, indent + _INDENT)

    def _fold(self, line: Line, indent: int, *codes: str, mark: str = "") -> None:
        left = " " * indent
        self._painter.folded(
            _plain(line), *codes, first=left + mark, rest=left + " " * len(mark), break_words=True
        )

    def _facts(self, rows: Sequence[tuple[str, str]], indent: int) -> None:
        width = max((_width(single_line(name)) for name, _ in rows), default=0)
        for name, text in rows:
            label = " " * indent + self._painter.paint(_padded(name, width), DIM)
            rest = " " * (indent + width + _GAP)
            self._painter.folded(text, first=f"{label}{' ' * _GAP}", rest=rest, break_words=True)

    def _table(self, table: TableBlock, indent: int) -> None:
        cells = [[single_line(_plain(cell)) for cell in row] for row in table.rows]
        for headings, omitted in _layouts(table):
            shown = _without([single_line(each) for each in headings], omitted)
            rows = [_without(row, omitted) for row in cells]
            gap = 1 if headings is table.short else _GAP
            room = self._painter.width - indent - gap * (len(shown) - 1)
            widths = _fitted(list(zip(shown, *rows, strict=True)), room)
            if widths is None or any(_height(row, widths) > _TALLEST for row in rows):
                continue
            self._row(shown, widths, indent, gap, [BOLD] * len(widths))
            for number, row in enumerate(rows):
                self._row(row, widths, indent, gap, _without(_row_codes(table, number), omitted))
            if headings is table.short:
                self._legend(table, indent)
            return
        self._records(table, cells, indent)

    def _legend(self, table: TableBlock, indent: int) -> None:
        named = zip(table.short, table.headings, strict=True)
        legend = ", ".join(f"{short} {name}" for short, name in named if short not in ("", name))
        self._fold((legend,), indent, DIM)

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
                text = _padded(part, width)
                shown.append(self._painter.paint(text, *([code] if code and part else [])))
            self._painter.line(f"{' ' * indent}{(' ' * gap).join(shown)}".rstrip())

    def _records(self, table: TableBlock, cells: Sequence[Sequence[str]], indent: int) -> None:
        lead = table.lead
        if not cells:
            self._fold((", ".join(table.headings),), indent, BOLD)
        for number, row in enumerate(cells):
            codes = [code for code in _row_codes(table, number)[:lead] if code] or [BOLD]
            number_of = f"{_label(table.headings[0])} " if row[0].isdecimal() else ""
            self._fold((number_of + "  ".join(filter(None, row[:lead])),), indent, codes[0])
            others = zip(table.headings[lead:], row[lead:], strict=True)
            facts = [(_label(name), text) for name, text in others if text]
            self._facts(facts, indent + _INDENT)


def _label(heading: str) -> str:
    return heading.lower() if heading[1:].islower() else heading


def _layouts(table: TableBlock) -> Iterator[tuple[Sequence[str], frozenset[int]]]:
    """The headings and the columns left out, the best layout first."""
    yield table.headings, frozenset()
    if table.spare:
        yield table.headings, table.spare
    if table.short:
        yield table.short, table.spare


def _without(row: Sequence[_T], omitted: frozenset[int]) -> list[_T]:
    return [each for number, each in enumerate(row) if number not in omitted]


def _row_codes(table: TableBlock, number: int) -> list[str | None]:
    tones = list(table.cells[number]) if table.cells else [None] * len(table.headings)
    row = table.tones[number] if table.tones else None
    return [None if tone is None else _CODES[tone] for tone in (each or row for each in tones)]


def _fitted(columns: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """The columns' widths, the roomiest narrowed; None where words would have to break."""
    widths = [max(map(_width, column)) for column in columns]
    if sum(widths) <= room:
        return widths
    least = [
        max((_width(word) for cell in column for word in cell.split()), default=0)
        for column in columns
    ]
    while (missing := sum(widths) - room) > 0:
        spare = [width - low for width, low in zip(widths, least, strict=True)]
        widest = spare.index(max(spare))
        if spare[widest] <= 0:
            return None
        widths[widest] -= min(spare[widest], missing)
    return widths


def _height(row: Sequence[str], widths: Sequence[int]) -> int:
    return max(len(_wrapped(cell, width)) for cell, width in zip(row, widths, strict=True))


def _wrapped(cell: str, width: int) -> list[str]:
    if _width(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_long_words=True, break_on_hyphens=False) or [""]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _plain(line: Line) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in line)
