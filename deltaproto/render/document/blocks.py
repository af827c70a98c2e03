"""What a document is made of. Every text in it is data: a renderer escapes all of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class Code(NamedTuple):
    """A name, value or command within a line."""

    text: str


class Strong(NamedTuple):
    """What a reader must not miss, within a line."""

    text: str


class Link(NamedTuple):
    """A way to another place of the same page; elsewhere its text alone."""

    text: str
    target: str
    """what comes after the `#`"""


Inline = str | Code | Strong | Link
Line = tuple[Inline, ...]


def listed(parts: Sequence[Inline], most: int, more: str) -> Line:
    """The parts with commas; of many the first, then `more` with the number of others as `{}`."""
    found: list[Inline] = []
    for part in parts[:most]:
        found += [", ", part] if found else [part]
    if len(parts) > most:
        found.append(more.replace("{}", f"{len(parts) - most:,}"))
    return tuple(found)


class Tone(StrEnum):
    """How a callout or a table's cell is meant."""

    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    DANGER = "danger"


class Paragraph(NamedTuple):
    """One paragraph."""

    line: Line
    muted: bool = False
    """a legend or a remark: text shows it dim, right below the block it belongs to"""


class Bullets(NamedTuple):
    """A list."""

    lines: Sequence[Line]


class Checks(NamedTuple):
    """A list of boxes to tick."""

    lines: Sequence[Line]


class FactList(NamedTuple):
    """Names and what they stand for; a name may repeat.

    Text shows a value that is code alone on one line, to be copied, and a strong one in bold.
    """

    rows: Sequence[tuple[str, Line]]


class TableBlock(NamedTuple):
    """Rows under headings."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Line]]
    tones: Sequence[Tone | None] = ()
    """one for each row; empty: none"""
    cells: Sequence[Sequence[Tone | None]] = ()
    """one for each cell of each row; empty: none"""
    lead: int = 1
    """how many cells name a row, where text shows the rows as a list"""
    short: Sequence[str] = ()
    """headings for text where the full ones do not fit; a legend explains them"""
    spare: frozenset[int] = frozenset()
    """columns that text leaves out where not all of them fit"""
    below: bool = False
    """whether text may show the last column below its row where not all columns fit"""


class FindingLine(NamedTuple):
    """One finding, or why there is no whole answer."""

    tone: Tone | None
    severity: str
    rule: str
    """the id of the rule, or an error code"""
    message: str
    hint: str
    evidence: str = ""


class FindingList(NamedTuple):
    """Findings, the worst first."""

    rows: Sequence[FindingLine]


class Diff(NamedTuple):
    """What goes, what is new, and what stays."""

    removed: Sequence[Line]
    added: Sequence[Line]
    kept: Line
    """empty: nothing stays"""


class CodeBlock(NamedTuple):
    """Something to copy, or what it answers; shown as it stands."""

    text: str
    language: str = ""
    """sql, python, shell or text"""
    title: str = ""


class Figure(NamedTuple):
    """A picture, and the table that tells the same."""

    picture: str
    """SVG, in which what is data is escaped already"""
    caption: str
    table: TableBlock


class Callout(NamedTuple):
    """Set apart from what is around it."""

    tone: Tone
    line: Line


class Details(NamedTuple):
    """Folded away until it is wanted; Markdown shows it."""

    summary: str
    blocks: Sequence[Block]


class Section(NamedTuple):
    """A heading with what belongs to it; sections nest."""

    anchor: str
    title: str
    blocks: Sequence[Block]


Block = (
    Paragraph
    | Bullets
    | Checks
    | FactList
    | TableBlock
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


def finding_table(block: FindingList) -> TableBlock:
    """Return findings as a table, for formats with room for one."""
    rows: list[tuple[Line, ...]] = []
    for each in block.rows:
        message = f"{each.message} [{each.evidence}]" if each.evidence else each.message
        rows.append(((each.severity,), (each.rule,), (message,), (each.hint,)))
    return TableBlock(
        ("Severity", "Rule", "Finding", "Hint"), rows, [each.tone for each in block.rows]
    )


def diff_lines(block: Diff) -> list[Line]:
    """Return the lines of a difference, each with a sign."""
    signs = (("- ", block.removed), ("+ ", block.added), ("= ", [block.kept] if block.kept else []))
    return [(sign, *line) for sign, lines in signs for line in lines]
