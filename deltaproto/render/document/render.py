"""Render a document in each format."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from deltaproto.render.document.blocks import Block, Document
    from deltaproto.render.document.page import PageTexts

PIPED_WIDTH = 80
UNFOLDED = 1 << 20
"""a width at which nothing is wrapped: each statement is one searchable line"""


class BlockWriter:
    """Writes blocks as they arrive, as text or as Markdown (`markdown`).

    Args:
        piped_width: columns of text that is not written to a terminal, if COLUMNS is not set.
    """

    def __init__(
        self, format_: str, file: IO[str], *, color: bool, piped_width: int = PIPED_WIDTH
    ) -> None:
        self._file = file
        self._first = True
        self._text = None
        if format_ != "markdown":
            from deltaproto.render.document.text import TextWriter

            self._text = TextWriter(file, color=color, piped_width=piped_width)

    def write(self, block: Block) -> None:
        """Write the next block."""
        if self._text is not None:
            self._text.block(block)
            return
        from deltaproto.render.document.markdown import blocks_markdown

        start = "" if self._first else "\n"
        self._first = False
        self._file.write(f"{start}{blocks_markdown([block]).rstrip()}\n")


def write_document(
    document: Document,
    format_: str,
    file: IO[str],
    *,
    color: bool,
    piped_width: int = PIPED_WIDTH,
) -> None:
    """Write the document as text, Markdown (`markdown`) or one HTML file (`html`).

    Args:
        format_: every other value means text.
        piped_width: columns of text that is not written to a terminal, if COLUMNS is not set.
    """
    if format_ in ("markdown", "html"):
        file.write(document_text(document, html=format_ == "html"))
        return
    from deltaproto.render.document.text import TextWriter

    TextWriter(file, color=color, piped_width=piped_width).document(document)


def document_text(document: Document, *, html: bool, words: PageTexts | None = None) -> str:
    """Return the document as one HTML file, or as Markdown.

    Args:
        words: texts of the HTML page itself (default: English).
    """
    if html:
        from deltaproto.render.document.html import document_html

        return document_html(document, words)
    from deltaproto.render.document.markdown import document_markdown

    return document_markdown(document)
