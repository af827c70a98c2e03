"""The blocks of a document. All texts are data: renderers escape them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class Code(NamedTuple):
    """A name, value or command within a line."""

    text: str


class Strong(NamedTuple):
    """Important text within a line."""

    text: str


class Link(NamedTuple):
    """A link to another place on the same page; formats without links show only the text."""

    text: str
    target: str
    """the anchor, without `#`"""


Inline = str | Code | Strong | Link
Line = tuple[Inline, ...]


def listed(parts: Sequence[Inline], most: int, more: str) -> Line:
    """Join the parts with commas.

    If there are more than `most`, end with `more`, where `{}` is the number of the others.
    """
    found: list[Inline] = []
    for part in parts[:most]:
        found += [", ", part] if found else [part]
    if len(parts) > most:
        found.append(more.replace("{}", f"{len(parts) - most:,}"))
    return tuple(found)


class Tone(StrEnum):
    """The meaning of a callout or a table cell."""

    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    DANGER = "danger"


class Paragraph(NamedTuple):
    """One paragraph."""

    line: Line
    muted: bool = False
    """a legend or a remark: text shows it dim, directly below its block"""


class Bullets(NamedTuple):
    """A list."""

    lines: Sequence[Line]


class Checks(NamedTuple):
    """A list of checkboxes."""

    lines: Sequence[Line]


class FactList(NamedTuple):
    """Names and their values; a name may repeat.

    Text shows a value that consists only of code on one line, for copying, and a strong one
    in bold.
    """

    rows: Sequence[tuple[str, Line]]


class TableBlock(NamedTuple):
    """A table with headings."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Line]]
    tones: Sequence[Tone | None] = ()
    """one for each row; empty: no tones"""
    cells: Sequence[Sequence[Tone | None]] = ()
    """one for each cell of each row; empty: no tones"""
    lead: int = 1
    """number of cells that name a row, used if text shows the rows as a list"""
    short: Sequence[str] = ()
    """headings for text if the full headings do not fit; a legend explains them"""
    spare: frozenset[int] = frozenset()
    """columns that text omits if not all columns fit"""
    below: bool = False
    """whether text may show the last column below its row if not all columns fit"""
    whole: frozenset[int] = frozenset()
    """columns whose cells text does not fold; it prefers a smaller gap between columns"""


class MatrixCell(NamedTuple):
    """One cell of a matrix."""

    text: str
    symbol: str
    """one character, for text"""
    tone: Tone | None
    mark: str = ""
    """follows the text or the symbol"""


class MatrixBlock(NamedTuple):
    """A table of a few different values; text shows them as symbols."""

    corner: str
    headings: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell | None]]]
    marks: str = ""
    """what the mark of a cell means"""

    @staticmethod
    def symbol(cell: MatrixCell | None) -> str:
        """Return the text of a cell."""
        return "" if cell is None else f"{cell.symbol}{cell.mark}"

    def legend(self) -> str:
        """Return the meaning of each symbol and mark that occurs."""
        cells = {cell for _, row in self.rows for cell in row if cell is not None}
        symbols = sorted({(cell.symbol, cell.text) for cell in cells})
        parts = [f"{symbol} {text}" for symbol, text in symbols]
        parts += [self.marks] if any(cell.mark for cell in cells) else []
        return ", ".join(parts)


class FindingLine(NamedTuple):
    """One finding, or the reason why the result is incomplete."""

    tone: Tone | None
    severity: str
    rule: str
    """the rule id, or an error code"""
    message: str
    hint: str
    evidence: str = ""


class FindingList(NamedTuple):
    """Findings, the most severe first."""

    rows: Sequence[FindingLine]


class Diff(NamedTuple):
    """Removed, added and kept items."""

    removed: Sequence[Line]
    added: Sequence[Line]
    kept: Line
    """empty: nothing is kept"""


class CodeBlock(NamedTuple):
    """Code to copy, or its output; shown verbatim."""

    text: str
    language: str = ""
    """sql, python, shell or text"""
    title: str = ""


class Figure(NamedTuple):
    """A chart with its data table."""

    picture: str
    """SVG with all data already escaped"""
    caption: str
    table: TableBlock


class Callout(NamedTuple):
    """Highlighted text."""

    tone: Tone
    line: Line


class Details(NamedTuple):
    """Collapsed content; Markdown shows it expanded."""

    summary: str
    blocks: Sequence[Block]


class Section(NamedTuple):
    """A heading and its content; sections nest."""

    anchor: str
    title: str
    blocks: Sequence[Block]
    tone: Tone | None = None
    """text shows the title in its color"""


Block = (
    Paragraph
    | Bullets
    | Checks
    | FactList
    | TableBlock
    | MatrixBlock
    | FindingList
    | Diff
    | CodeBlock
    | Figure
    | Callout
    | Details
    | Section
)


class Document(NamedTuple):
    """A whole document."""

    title: str
    subtitle: Line
    blocks: Sequence[Block]
    language: str = "en"


def matrix_table(block: MatrixBlock) -> TableBlock:
    """Return a matrix as a table of words, for formats with enough width."""
    rows: list[list[Line]] = [
        [(Code(name),), *((f"{c.text}{c.mark}" if c else "",) for c in cells)]
        for name, cells in block.rows
    ]
    tones = [[None, *(c.tone if c else None for c in cells)] for _, cells in block.rows]
    return TableBlock((block.corner, *block.headings), rows, cells=tones)


def finding_table(block: FindingList) -> TableBlock:
    """Return findings as a table, for formats with enough width."""
    rows: list[tuple[Line, ...]] = []
    for each in block.rows:
        message = f"{each.message} [{each.evidence}]" if each.evidence else each.message
        rows.append(((each.severity,), (each.rule,), (message,), (each.hint,)))
    return TableBlock(
        ("Severity", "Rule", "Finding", "Hint"), rows, [each.tone for each in block.rows]
    )


def diff_lines(block: Diff) -> list[Line]:
    """Return the lines of a diff, each with a sign."""
    signs = (("- ", block.removed), ("+ ", block.added), ("= ", [block.kept] if block.kept else []))
    return [(sign, *line) for sign, lines in signs for line in lines]
