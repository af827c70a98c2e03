"""A document in each of the forms that it can take."""

from __future__ import annotations

from typing import IO

from deltaproto.render.document.blocks import Document
from deltaproto.render.document.page import PageTexts


def write_document(
    document: Document, format_: str, file: IO[str], *, color: bool, words: PageTexts | None = None
) -> None:
    """Write the document as text, Markdown (`markdown`) or one HTML file (`html`).

    Args:
        format_: anything else is text.
        words: what the HTML page itself says; in English without them.
    """
    if format_ in ("markdown", "html"):
        file.write(document_text(document, html=format_ == "html", words=words))
        return
    from deltaproto.render.document.text import TextWriter

    TextWriter(file, color=color).document(document)


def document_text(document: Document, *, html: bool, words: PageTexts | None = None) -> str:
    """Return the document as one HTML file, or as Markdown.

    Args:
        words: what the HTML page itself says; in English without them.
    """
    if html:
        from deltaproto.render.document.html import document_html

        return document_html(document, words or PageTexts())
    from deltaproto.render.document.markdown import document_markdown

    return document_markdown(document)
