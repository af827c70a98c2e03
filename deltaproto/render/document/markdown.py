"""Documents as Markdown (CommonMark with GitHub's tables and task lists)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

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
    FindingList,
    Inline,
    Line,
    Link,
    MatrixBlock,
    Paragraph,
    Section,
    Strong,
    TableBlock,
    Tone,
    diff_lines,
    finding_table,
    matrix_table,
)
from deltaproto.render.interface import escape_control_chars, neutralize_lines
from deltaproto.render.terminal import single_line

_ALERTS = {
    Tone.GOOD: "TIP",
    Tone.NOTE: "NOTE",
    Tone.WARNING: "WARNING",
    Tone.DANGER: "CAUTION",
}
_DEEPEST = 6


def document_markdown(document: Document) -> str:
    """Return the document as Markdown."""
    head = f"# {escape(document.title)}\n\n{_begun(document.subtitle)}\n\n"
    return head + blocks_markdown(document.blocks)


def blocks_markdown(blocks: Sequence[Block], level: int = 2) -> str:
    """Return the blocks as Markdown; top-level sections get headings of `level`."""
    return "".join(f"{part}\n\n" for block in blocks for part in _block(block, level))


def _block(block: Block, level: int) -> Iterator[str]:
    match block:
        case Paragraph(line):
            yield _begun(line)
        case Bullets(lines):
            yield "\n".join(f"- {_begun(line)}" for line in lines)
        case Checks(lines):
            yield "\n".join(f"- [ ] {_begun(line)}" for line in lines)
        case FactList(rows):
            yield "\n".join(f"- **{escape(name)}**: {_inline(line)}" for name, line in rows)
        case TableBlock():
            yield _table(block)
        case MatrixBlock():
            yield _table(matrix_table(block))
        case FindingList():
            yield _table(finding_table(block))
        case Diff():
            yield "\n".join(f"- {_begun(line)}" for line in diff_lines(block))
        case CodeBlock():
            if block.title:
                yield f"{_begun((block.title,))}:"
            yield _listing(block)
        case Figure(_, caption, table):
            yield f"**{escape(caption)}**"
            yield _table(table)
        case Callout(tone, line):
            yield f"> [!{_ALERTS[tone]}]\n> {_begun(line)}"
        case Details(summary, blocks):
            yield f"**{escape(summary)}**"
            yield blocks_markdown(blocks, level).rstrip("\n")
        case Section(_, title, blocks, _):
            yield f"{'#' * min(level, _DEEPEST)} {escape(title)}"
            yield blocks_markdown(blocks, level + 1).rstrip("\n")
        case _:
            assert_never(block)


def escape(text: str) -> str:
    """Return `text` on one line, with all Markdown syntax escaped."""
    flat = escape_control_chars(" ".join(text.split()))
    for character in "\\`*_[]<>|#~&":
        flat = flat.replace(character, f"\\{character}")
    return flat.replace("::", ":\\:")


def _table(table: TableBlock) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    lines = [row([escape(each) for each in table.headings]), row(["---"] * len(table.headings))]
    lines += [row([_cell(each) for each in cells]) for cells in table.rows]
    return "\n".join(lines)


def _cell(line: Line) -> str:
    # A bar ends a cell, even inside code.
    return re.sub(r"(?<!\\)\|", r"\\|", _inline(line))


def _listing(listing: CodeBlock) -> str:
    text = neutralize_lines(escape_control_chars(listing.text))
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{listing.language}\n{text}\n{fence}"


def _begun(line: Line) -> str:
    """Escape a line whose first characters would start a list, a heading or a CI command."""
    text = re.sub(r"^([-+=]|::)", r"\\\1", _inline(line).lstrip())
    return re.sub(r"^(\d{1,9})([.)])", r"\1\\\2", text)


def _inline(line: Line) -> str:
    text = ""
    for part in filter(None, map(_part, line)):
        # Two adjacent runs of the same marks would be read as one.
        text += " " if text[-1:] == part[0] and part[0] in "`*" else ""
        text += part
    return text


def _part(part: Inline) -> str:
    match part:
        case Link(text, _):
            return _part(text)
        case Code(text):
            return _code(single_line(text))
        case Strong(text):
            return f"**{escape(text)}**" if text.strip() else ""
        case _:
            before = " " if part[:1].isspace() else ""
            after = " " if part[-1:].isspace() and part.strip() else ""
            return before + escape(part) + after


def _code(text: str) -> str:
    if not text.strip():
        return ""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if "`" in (text[0], text[-1]) or text[0] == text[-1] == " " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"
