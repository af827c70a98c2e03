"""A document in one of the two forms that it can take."""

from __future__ import annotations

from deltaproto.report.document.blocks import Document
from deltaproto.report.document.page import Words


def document_text(document: Document, *, html: bool, words: Words | None = None) -> str:
    """The document as one HTML file, or as Markdown.

    Args:
        words: what the HTML page itself says; in English without them.
    """
    if html:
        from deltaproto.report.document.html import document_html

        return document_html(document, words or Words())
    from deltaproto.report.document.markdown import document_markdown

    return document_markdown(document)
