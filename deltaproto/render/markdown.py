"""Markdown's tables and escapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deltaproto.render.interface import escape_control_chars


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells are escaped."""
    lines = [_row(headings), _row(["---"] * len(headings))]
    lines.extend(_row([escape(cell) for cell in row]) for row in rows)
    return "\n".join(lines)


def escape(text: str) -> str:
    """`text` on one line, with nothing in it that Markdown would read as markup."""
    flat = escape_control_chars(" ".join(text.split()))
    for character in "\\`*_[]<>|#~&":
        flat = flat.replace(character, f"\\{character}")
    return flat.replace("::", ":\\:")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
