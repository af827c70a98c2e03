"""Write a whole runbook in each format."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from deltaproto import __version__
from deltaproto.render.document import Document, Section
from deltaproto.render.document.render import document_text
from deltaproto.render.runbook.after import burn_in, restart, sign_off, undo, verification
from deltaproto.render.runbook.before import before
from deltaproto.render.runbook.book import Book
from deltaproto.render.runbook.commands import commands
from deltaproto.render.runbook.overview import clients, summary
from deltaproto.render.runbook.phrases import Phrases
from deltaproto.render.runbook.times import when


class RunbookFormat(StrEnum):
    """Values of `--format` of `runbook`."""

    MARKDOWN = "markdown"
    HTML = "html"


def runbook(book: Book, say: Phrases) -> Document:
    """Return every chapter, in the order in which readers need them."""
    names = list(dict.fromkeys(entry.plan.table for entry in book.entries))
    engines = dict.fromkeys(str(entry.plan.engine) for entry in book.entries)
    title = (
        say.text("title.one", table=names[0])
        if len(names) == 1
        else say.text("title.many", count=len(names))
    )
    return Document(
        title,
        say.line(
            "subtitle",
            plans=say.count("plans", len(book.entries)),
            engine=", ".join(engines),
            written=when(book.written),
            version=__version__,
            start=when(book.start),
        ),
        list(_chapters(book, say)),
        say.language,
    )


def _chapters(book: Book, say: Phrases) -> Iterator[Section]:
    yield summary(book, say)
    yield clients(book, say)
    if not book.changing:
        yield commands(book, say)
        return
    yield before(book, say)
    yield commands(book, say)
    yield undo(book, say)
    yield burn_in(book, say)
    yield restart(book, say)
    yield verification(book, say)
    yield sign_off(say)


def rendered(book: Book, say: Phrases, format: RunbookFormat) -> str:
    """Return the runbook as text."""
    document = runbook(book, say)
    return document_text(document, html=format is RunbookFormat.HTML, words=say.words)
