"""Documents as one self-contained HTML file: no network, no build, can be opened from disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape as escaped
from itertools import groupby
from operator import itemgetter
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
from deltaproto.render.document.page import PageTexts, page, text
from deltaproto.render.interface import escape_control_chars, neutralize_lines

_OPTION_NAME = re.compile(r"(?:(?<= )|^)--[a-z][a-z-]*")
_DEEPEST = 6
_FRAGMENT_LEVEL = 5
# Colors that are legible on light and on dark pages; everything else is the notebook's own style.
_FRAGMENT_STYLE = """
.deltaproto .soft, .deltaproto dt { opacity: .7; }
.deltaproto dl > div { display: grid; grid-template-columns: 9rem minmax(0, 1fr); gap: 0 1rem; }
.deltaproto dd { margin: 0; }
.deltaproto .good { color: #1a7f4b; }
.deltaproto .note { color: #2f7bd0; }
.deltaproto .warning { color: #b87a00; }
.deltaproto .danger { color: #d9343f; font-weight: 600; }
.deltaproto .copy { display: none; }
.deltaproto th, .deltaproto td { text-align: left !important; vertical-align: top; }
.deltaproto pre { white-space: pre-wrap; }
"""


def document_html(
    document: Document,
    words: PageTexts | None = None,
    *,
    more: str = "",
    contents: Sequence[tuple[str, str]] = (),
    data: str = "",
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> str:
    """Return the document as a page with a table of contents at the side.

    Args:
        words: texts of the page itself (default: English).
        more: markup after the blocks.
        contents: anchors and titles of the sections in `more`.
        data, scripts, styles: see `page`.
    """
    words = words or PageTexts()
    body = [
        f"<header><h1>{text(document.title)}</h1>",
        f"<p class='subtitle'>{_inline(document.subtitle)}</p></header>",
        blocks_html(document.blocks, words),
        more,
    ]
    return page(
        title=document.title,
        language=document.language,
        words=words,
        aside=_contents(document.blocks, contents, words),
        main="\n".join(body),
        scripts=("document.js", *scripts),
        styles=(*(("chart.css",) if _has_figure(document.blocks) else ()), *styles),
        data=data,
    )


def _has_figure(blocks: Sequence[Block]) -> bool:
    return any(
        isinstance(each, Figure) or (isinstance(each, Section) and _has_figure(each.blocks))
        for each in blocks
    )


def fragment_html(document: Document) -> str:
    """Return the document as markup for a notebook's cell, with a style that affects only itself.

    It has no script, and all data is escaped.
    """
    texts = PageTexts()
    title = f"<h4>{text(document.title)}</h4>" if document.title else ""
    return (
        f"<style>{_FRAGMENT_STYLE}</style><div class='deltaproto'>"
        f"{title}<p class='soft'>{_inline(document.subtitle)}</p>"
        f"{blocks_html(document.blocks, texts, _FRAGMENT_LEVEL)}</div>"
    )


def blocks_html(blocks: Sequence[Block], words: PageTexts, level: int = 2) -> str:
    """Return the blocks as HTML; top-level sections get headings of `level`."""
    return "\n".join(part for block in blocks for part in _block(block, words, level))


def _block(block: Block, words: PageTexts, level: int) -> Iterator[str]:
    match block:
        case Paragraph(line):
            yield f"<p>{_inline(line)}</p>"
        case Bullets(lines):
            yield f"<ul>{''.join(f'<li>{_inline(line)}</li>' for line in lines)}</ul>"
        case Checks(lines):
            boxes = (
                f"<li><label><input type='checkbox'> <span>{_inline(line)}</span></label></li>"
                for line in lines
            )
            yield f"<ul class='checks'>{''.join(boxes)}</ul>"
        case FactList(rows):
            yield f"<dl>{''.join(_facts(rows))}</dl>"
        case TableBlock():
            yield _table(block, words)
        case MatrixBlock():
            yield _table(matrix_table(block), words)
        case FindingList():
            yield _table(finding_table(block), words)
        case Diff():
            yield f"<ul>{''.join(f'<li>{_inline(line)}</li>' for line in diff_lines(block))}</ul>"
        case CodeBlock():
            yield _listing(block, words)
        case Figure(picture, caption, table):
            yield (
                f"<figure class='chart'><figcaption>{text(caption)}</figcaption>"
                f"<div class='scroll' tabindex='0' role='group' aria-label='{text(caption)}'>"
                f"{picture}</div>"
                f"<details><summary>{text(words.figures)}</summary>{_table(table, words)}"
                "</details></figure>"
            )
        case Callout(tone, line):
            yield (
                f"<div class='callout {tone}' role='note'>"
                f"<strong>{text(words.tones[tone])}</strong> <span>{_inline(line)}</span></div>"
            )
        case Details(summary, blocks):
            yield f"<details><summary>{text(summary)}</summary>"
            yield blocks_html(blocks, words, level)
            yield "</details>"
        case Section(anchor, title, blocks, _):
            rank = min(level, _DEEPEST)
            yield f"<section id='{text(anchor)}'><h{rank}>{text(title)}</h{rank}>"
            yield blocks_html(blocks, words, level + 1)
            yield "</section>"
        case _:
            assert_never(block)


def _facts(rows: Sequence[tuple[str, Line]]) -> Iterator[str]:
    """Yield each name once, with all values that follow one another."""
    for name, values in groupby(rows, itemgetter(0)):
        lines = "".join(f"<dd>{_inline(line)}</dd>" for _, line in values)
        yield f"<div><dt>{text(name)}</dt>{lines}</div>"


def _table(table: TableBlock, words: PageTexts) -> str:
    heads = "".join(f"<th scope='col'>{text(each)}</th>" for each in table.headings)
    rows = []
    for number, cells in enumerate(table.rows):
        tones = table.cells[number] if table.cells else [None] * len(cells)
        mark = _class(table.tones[number] if table.tones else None)
        inner = (
            f"<td{_class(tone)}>{_inline(cell)}</td>"
            for cell, tone in zip(cells, tones, strict=True)
        )
        rows.append(f"<tr{mark}>{''.join(inner)}</tr>")
    label = text(words.table.replace("{}", ", ".join(table.headings)))
    return (
        f"<div class='scroll' tabindex='0' role='group' aria-label='{label}'><table>"
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _class(tone: Tone | None) -> str:
    return f" class='{tone}'" if tone else ""


def _listing(listing: CodeBlock, words: PageTexts) -> str:
    # Line feeds are kept here, and only here.
    code = escaped(neutralize_lines(escape_control_chars(listing.text)), quote=True)
    caption = f"<figcaption>{text(listing.title)}</figcaption>" if listing.title else ""
    label = text(listing.title or listing.language or "text")
    copy = (
        f"<button type='button' class='copy'>{text(words.copy)}</button>"
        if listing.language not in ("", "text")
        else ""
    )
    return (
        f"<figure class='listing {text(listing.language)}'>{caption}{copy}"
        f"<pre tabindex='0' role='group' aria-label='{label}'><code>{code}</code></pre></figure>"
    )


def _contents(blocks: Sequence[Block], more: Sequence[tuple[str, str]], words: PageTexts) -> str:
    found = [(each.anchor, each.title) for each in blocks if isinstance(each, Section)]
    entries = "".join(
        f"<li><a href='#{text(anchor)}'>{text(title)}</a></li>" for anchor, title in (*found, *more)
    )
    if not entries:
        return ""
    return f"<nav aria-label='{text(words.contents)}'><ol>{entries}</ol></nav>"


def _inline(line: Line) -> str:
    return "".join(_part(part) for part in line)


def _part(part: Inline) -> str:
    match part:
        case Code(data):
            # A browser would break a line within the two dashes.
            marked = _OPTION_NAME.sub(r"<span class='option'>\g<0></span>", text(data))
            return f"<code>{marked}</code>"
        case Strong(data):
            return f"<strong>{text(data)}</strong>"
        case Link(data, target):
            return f"<a href='#{text(target)}'>{text(data)}</a>"
        case _:
            return escaped(escape_control_chars(part.replace("\n", " ")), quote=True)
