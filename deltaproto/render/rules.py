"""The results of `explain`: documents and JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import IO, Any, assert_never

from deltaproto.policy.finding import Rule
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    Line,
    Paragraph,
    Section,
    TableBlock,
)
from deltaproto.render.document.render import write_document
from deltaproto.render.findings import SEVERITY_TONES
from deltaproto.render.interface import Format, json_text


def write_rules(rules: tuple[Rule, ...], format_: Format, file: IO[str], *, color: bool) -> None:
    """Write all rules, one per line."""
    match format_:
        case Format.JSON:
            payload = {"rules": [_fields(rule) for rule in rules]}
            file.write(json_text("explain", payload, line=False))
        case Format.JSONL:
            for rule in rules:
                file.write(json_text("explain", {"rules": [_fields(rule)]}, line=True))
        case Format.MARKDOWN | Format.TEXT:
            write_document(rules_document(rules), format_, file, color=color)
        case _:
            assert_never(format_)


def write_rule(rule: Rule, page: str, format_: Format, file: IO[str], *, color: bool) -> None:
    """Write one rule with its page."""
    match format_:
        case Format.JSON | Format.JSONL:
            payload = {"rules": [{**_fields(rule), "page": page}]}
            file.write(json_text("explain", payload, line=format_ is Format.JSONL))
        case Format.MARKDOWN | Format.TEXT:
            write_document(rule_document(rule, page), format_, file, color=color)
        case _:
            assert_never(format_)


def rules_document(rules: Sequence[Rule]) -> Document:
    """Return all rules, one per row."""
    rows: list[list[Line]] = [
        [(rule.id,), (rule.name,), (str(rule.severity),), (rule.since,)] for rule in rules
    ]
    cells = [[None, None, SEVERITY_TONES[rule.severity], None] for rule in rules]
    table = TableBlock(("Rule", "Name", "Severity", "Since"), rows, cells=cells)
    hint = Paragraph((Code("deltaproto explain RULE"), " shows the page of a rule."))
    return Document("Rules", ("What deltaproto checks in tables and policies.",), [table, hint])


def rule_document(rule: Rule, page: str) -> Document:
    """Return the page of one rule, which is Markdown with headings, lists and inline code."""
    summary, *rest = re.split(r"^## (.*)\n", page, flags=re.MULTILINE)
    first, *more = _page_blocks(summary)
    sections = [
        Section(title.lower().replace(" ", "-"), title, _page_blocks(text))
        for title, text in zip(rest[::2], rest[1::2], strict=True)
    ]
    subtitle = first.line if isinstance(first, Paragraph) else ()
    title = f"{rule.id} {rule.name} ({rule.severity})"
    return Document(title, subtitle, [*more, *sections])


def _page_blocks(text: str) -> list[Block]:
    """Return paragraphs and lists, which empty lines separate."""
    blocks: list[Block] = []
    for part in text.strip().split("\n\n"):
        items = re.split(r"^- ", part, flags=re.MULTILINE)
        lines = [_inline(item) for item in items if item.strip()]
        blocks.append(Bullets(lines) if len(items) > 1 else Paragraph(lines[0]))
    return blocks


def _inline(text: str) -> Line:
    """Return one line of text; `code` in backticks stays code."""
    parts = " ".join(text.split()).split("`")
    return tuple(Code(part) if place % 2 else part for place, part in enumerate(parts) if part)


def _fields(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "severity": str(rule.severity),
        "since": rule.since,
    }
