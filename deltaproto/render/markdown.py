"""Tables and escapes in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deltaproto.render.interface import escape_control_chars


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; cells are escaped."""
    lines = [_row(headings), _row(["---"] * len(headings))]
    lines.extend(_row([escape(cell) for cell in row]) for row in rows)
    return "\n".join(lines)


def escape(text: str) -> str:
    """Return `text` on one line, with all Markdown syntax escaped."""
    flat = escape_control_chars(" ".join(text.split()))
    for character in "\\`*_[]<>|#~&":
        flat = flat.replace(character, f"\\{character}")
    return flat.replace("::", ":\\:")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
