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
    Code,
    CodeBlock,
    Details,
    Diff,
    Document,
    FactList,
    Figure,
    FindingLine,
    FindingList,
    Line,
    Paragraph,
    Section,
    Strong,
    TableBlock,
    Tone,
)
from deltaproto.render.interface import escape_control_chars
from deltaproto.render.terminal import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    LOUD,
    RED,
    YELLOW,
    Painter,
    single_line,
)

_CODES = {Tone.GOOD: GREEN, Tone.NOTE: CYAN, Tone.WARNING: YELLOW, Tone.DANGER: LOUD}
_LABELS = {Tone.GOOD: "", Tone.NOTE: "note: ", Tone.WARNING: "warning: ", Tone.DANGER: "caution: "}
_APART = (Section, TableBlock, CodeBlock, Details, Figure)
_T = TypeVar("_T")
_GAP = 2
_INDENT = 2
_PIPED_WIDTH = 80
_TALLEST = 3
_DEEPEST_APART = 2
"""sections indented deeper than this are not separated by empty lines"""
_SEVERITY_WIDTH = 7
_REMEMBERED = 256


class TextWriter:
    """Writes documents, or consecutive blocks, to one file.

    A table that is too wide becomes a list: each row is a heading with its other cells below.
    """

    def __init__(self, file: IO[str], *, color: bool, piped_width: int = _PIPED_WIDTH) -> None:
        self._painter = Painter(file, color=color, piped_width=piped_width)
        self._before: Block | None = None
        self._tables: dict[tuple[int, int], tuple[TableBlock, str]] = {}

    def document(self, document: Document) -> None:
        """Write a whole document."""
        self._painter.line(self._painter.paint(document.title, BOLD))
        if document.subtitle:
            self._fold(document.subtitle, 0)
        for block in document.blocks:
            self.block(block, apart=True)

    def block(self, block: Block, *, apart: bool = False) -> None:
        """Write the next block; `apart`: after an empty line."""
        if apart or (self._before is not None and _stands_apart(self._before, block, 0)):
            self._painter.line()
        self._before = block
        self._block(block, 0)

    def _blocks(self, blocks: Sequence[Block], indent: int) -> None:
        for number, block in enumerate(blocks):
            if number and _stands_apart(blocks[number - 1], block, indent):
                self._painter.line()
            self._block(block, indent)

    def _block(self, block: Block, indent: int) -> None:
        match block:
            case Paragraph(line, muted):
                if _emphasis(line) and not self._painter.folds:
                    self._painter.line(" " * indent + self._painter.paint(_plain(line), BOLD))
                else:
                    self._fold(line, indent, *(DIM,) if muted else _emphasis(line))
            case Bullets(lines):
                for line in lines:
                    self._fold(line, indent, mark="- ")
            case Checks(lines):
                for line in lines:
                    self._fold(line, indent, mark="[ ] ")
            case FactList(rows):
                self._facts(rows, indent)
            case TableBlock():
                self._table_again(block, indent)
            case FindingList(rows):
                for row in rows:
                    self._finding(row, indent)
            case Diff(removed, added, kept):
                for sign, lines, code in (("- ", removed, RED), ("+ ", added, GREEN)):
                    for line in lines:
                        self._fold(line, indent, code, mark=sign)
                if kept:
                    self._fold(kept, indent, DIM, mark="= ")
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

    def _facts(self, rows: Sequence[tuple[str, Line]], indent: int) -> None:
        names = [single_line(_label(name)) for name, _ in rows]
        width = max(map(_width, names), default=0)
        rest = " " * (indent + width + _GAP)
        before = ""
        for name, (_, line) in zip(names, rows, strict=True):
            shown = self._painter.paint(_padded("" if name == before else name, width), DIM)
            first, text = f"{' ' * indent}{shown}{' ' * _GAP}", _plain(line)
            before = name
            if len(line) == 1 and isinstance(line[0], Code):
                self._painter.line(f"{first}{single_line(text)}".rstrip())
                continue
            self._painter.folded(text, *_emphasis(line), first=first, rest=rest, break_words=True)

    def _finding(self, row: FindingLine, indent: int) -> None:
        code = DIM if row.tone is None else _CODES[row.tone]
        severity = self._painter.paint(row.severity.ljust(_SEVERITY_WIDTH), code)
        first = f"{' ' * indent}{severity} {single_line(row.rule)}  "
        rest = " " * (indent + _INDENT)
        evidence = f" [{row.evidence}]" if row.evidence else ""
        texts = [(first, row.message + evidence), (f"{rest}hint: ", row.hint)]
        for start, text in texts if row.hint else texts[:1]:
            if self._painter.folds:
                # Do not count the rule as indentation of the other lines.
                drawn = f"{row.severity.ljust(_SEVERITY_WIDTH)} {single_line(row.rule)}  "
                lead = indent + len(drawn) if start is first else len(start)
                self._painter.folded(text, first=start, rest=rest, lead=lead, break_words=True)
            else:
                self._painter.line(start + single_line(text))

    def _table_again(self, table: TableBlock, indent: int) -> None:
        """Write a table; reuse the layout of a table that was written before."""
        key = id(table), indent
        found = self._tables.get(key)
        if found is not None and found[0] is table:
            self._painter.again(found[1])
            return
        if len(self._tables) >= _REMEMBERED:
            self._tables.clear()
        self._tables[key] = table, self._painter.recorded(lambda: self._table(table, indent))

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
        if not (table.below and self._with_last_below(table, cells, indent)):
            self._records(table, cells, indent)

    def _with_last_below(
        self, table: TableBlock, cells: Sequence[Sequence[str]], indent: int
    ) -> bool:
        """Write the rows with their last cells below; return False if even that is too wide."""
        last = len(table.headings) - 1
        for spare in dict.fromkeys((frozenset[int](), table.spare)):
            omitted = spare | {last}
            shown = _without([single_line(each) for each in table.headings], omitted)
            rows = [_without(row, omitted) for row in cells]
            widths = [max(map(_width, column)) for column in zip(shown, *rows, strict=True)]
            if indent + sum(widths) + _GAP * (len(widths) - 1) <= self._painter.width:
                break
        else:
            return False
        self._row(shown, widths, indent, _GAP, [BOLD] * len(widths))
        for number, (row, every) in enumerate(zip(rows, cells, strict=True)):
            self._row(row, widths, indent, _GAP, _without(_row_codes(table, number), omitted))
            if every[last]:
                label = (f"{_label(table.headings[last])}: {every[last]}",)
                self._fold(label, indent + _INDENT, DIM)
        return True

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
                painted = self._painter.paint(part, code) if code and part else part
                shown.append(painted + " " * (width - _width(part)))
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
            facts = [(name, (text,)) for name, text in others if text]
            self._facts(facts, indent + _INDENT)


def _emphasis(line: Line) -> tuple[str, ...]:
    return (BOLD,) if len(line) == 1 and isinstance(line[0], Strong) else ()


def _stands_apart(before: Block, block: Block, indent: int) -> bool:
    """Return True if an empty line separates two blocks."""
    if isinstance(block, Paragraph) and block.muted:
        return False
    if isinstance(block, Section) or isinstance(before, Section):
        return indent <= _DEEPEST_APART
    return isinstance(block, _APART) or isinstance(before, _APART)


def _label(heading: str) -> str:
    return heading.lower() if heading[1:].islower() else heading


def _layouts(table: TableBlock) -> Iterator[tuple[Sequence[str], frozenset[int]]]:
    """Yield headings and omitted columns, the best layout first."""
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
    """Return widths that fit, shrinking columns with spare room; None if words would break."""
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
    """Return the number of terminal columns that a text occupies."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _plain(line: Line) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in line)
