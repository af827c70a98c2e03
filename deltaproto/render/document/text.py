"""Documents as text, for terminals, pipes and logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, assert_never

from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Checks,
    CodeBlock,
    Details,
    Diff,
    Document,
    FactList,
    Figure,
    FindingLine,
    FindingList,
    MatrixBlock,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.document.text_table import CODES, INDENT, LineWriter, emphasis, plain
from deltaproto.render.interface import escape_control_chars
from deltaproto.render.terminal import (
    BOLD,
    DIM,
    GREEN,
    RED,
    Painter,
    single_line,
)

_LABELS = {Tone.GOOD: "", Tone.NOTE: "note: ", Tone.WARNING: "warning: ", Tone.DANGER: "caution: "}
_APART = (Section, TableBlock, MatrixBlock, CodeBlock, Details, Figure)
_PIPED_WIDTH = 80
_DEEPEST_APART = 2
"""sections indented deeper than this are not separated by empty lines"""
_SEVERITY_WIDTH = 7


class TextWriter(LineWriter):
    """Writes documents, or consecutive blocks, to one file."""

    def __init__(self, file: IO[str], *, color: bool, piped_width: int = _PIPED_WIDTH) -> None:
        super().__init__(Painter(file, color=color, piped_width=piped_width))
        self._before: Block | None = None

    def document(self, document: Document) -> None:
        """Write a whole document."""
        self._painter.line(self._painter.paint(document.title, BOLD))
        if document.subtitle:
            self.fold(document.subtitle, 0)
        for block in document.blocks:
            self.block(block, apart=not _belongs(self._before, block))

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
                if emphasis(line) and not self._painter.folds:
                    self._painter.line(" " * indent + self._painter.paint(plain(line), BOLD))
                else:
                    self.fold(line, indent, *(DIM,) if muted else emphasis(line))
            case Bullets(lines):
                for line in lines:
                    self.fold(line, indent, mark="- ")
            case Checks(lines):
                for line in lines:
                    self.fold(line, indent, mark="[ ] ")
            case FactList(rows):
                self.facts(rows, indent)
            case TableBlock():
                self.table(block, indent)
            case MatrixBlock():
                self.matrix(block, indent)
            case FindingList(rows):
                for row in rows:
                    self._finding(row, indent)
            case Diff(removed, added, kept):
                for sign, lines, code in (("- ", removed, RED), ("+ ", added, GREEN)):
                    for line in lines:
                        self.fold(line, indent, code, mark=sign)
                if kept:
                    self.fold(kept, indent, DIM, mark="= ")
            case CodeBlock():
                if block.title:
                    self.fold((f"{block.title}:",), indent)
                for text in escape_control_chars(block.text).split("\n"):
                    self._painter.line(f"{' ' * indent}{text}".rstrip())
            case Figure(_, caption, table):
                self.fold((caption,), indent, BOLD)
                self.table(table, indent)
            case Callout(tone, line):
                self.fold((_LABELS[tone], *line), indent, CODES[tone])
            case Details(summary, blocks):
                self._titled(summary, blocks, indent)
            case Section(_, title, blocks, tone):
                self._titled(title, blocks, indent, tone)
            case _:
                assert_never(block)

    def _titled(
        self, title: str, blocks: Sequence[Block], indent: int, tone: Tone | None = None
    ) -> None:
        self.fold((title,), indent, BOLD if tone is None else CODES[tone])
        self._blocks(blocks, indent + INDENT)

    def _finding(self, row: FindingLine, indent: int) -> None:
        code = DIM if row.tone is None else CODES[row.tone]
        severity = self._painter.paint(row.severity.ljust(_SEVERITY_WIDTH), code)
        first = f"{' ' * indent}{severity} {single_line(row.rule)}  "
        rest = " " * (indent + INDENT)
        evidence = f" [{row.evidence}]" if row.evidence else ""
        texts = [(first, row.message + evidence), (f"{rest}hint: ", row.hint)]
        for start, text in texts if row.hint else texts[:1]:
            if self._painter.folds:
                # Do not count the rule as indentation of the other lines.
                drawn = f"{row.severity.ljust(_SEVERITY_WIDTH)} {single_line(row.rule)}  "
                lead = indent + len(drawn) if start is first else len(start)
                self._painter.folded(text, first=start, rest=rest, lead=lead)
            else:
                self._painter.line(start + single_line(text))


def _belongs(before: Block | None, block: Block) -> bool:
    """Return True if no empty line separates two blocks of a whole document."""
    if isinstance(block, Paragraph):
        return block.muted and not isinstance(before, Section)
    return isinstance(block, Callout) and isinstance(before, Callout)


def _stands_apart(before: Block, block: Block, indent: int) -> bool:
    """Return True if an empty line separates two blocks."""
    if isinstance(block, Paragraph) and block.muted:
        return False
    if isinstance(block, Section) or isinstance(before, Section):
        return indent <= _DEEPEST_APART
    return isinstance(block, _APART) or isinstance(before, _APART)
