"""Write a whole runbook in each format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from deltaproto import __version__
from deltaproto.errors import UsageError
from deltaproto.render.document.blocks import Code, Document, Paragraph, Section
from deltaproto.render.document.html import blocks_html
from deltaproto.render.document.markdown import blocks_markdown, escape
from deltaproto.render.document.page import page, text
from deltaproto.render.document.render import document_text
from deltaproto.render.document.text_table import plain
from deltaproto.render.interface import stamp
from deltaproto.render.plan_json import plan_fields
from deltaproto.render.runbook.after import burn_in, restart, sign_off, undo, verification
from deltaproto.render.runbook.before import before
from deltaproto.render.runbook.book import Book, RunbookEntry
from deltaproto.render.runbook.commands import commands
from deltaproto.render.runbook.overview import clients, summary
from deltaproto.render.runbook.phrases import Phrases, when
from deltaproto.render.runbook.waves import waves

if TYPE_CHECKING:
    from markupsafe import Markup


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
    if book.rollout is not None:
        yield waves(book, book.rollout, say)
    yield before(book, say)
    yield commands(book, say)
    yield undo(book, say)
    yield burn_in(book, say)
    yield restart(book, say)
    yield verification(book, say)
    yield sign_off(say)


def render_runbook(book: Book, say: Phrases, format: RunbookFormat) -> str:
    """Return the runbook as text."""
    document = runbook(book, say)
    return document_text(document, html=format is RunbookFormat.HTML, words=say.words)


_WHOLE = ("<!doctype", "<html")


def fill_template(path: str, book: Book, say: Phrases, format: RunbookFormat) -> str:
    """Render the template at `path` with a runbook; HTML without its own page is put into ours.

    Raises:
        UsageError: naming file and line, if the template cannot be read or fails.
    """
    html = format is RunbookFormat.HTML
    document = runbook(book, say)
    made = _rendered(path, _context(document, book, say, html=html), html=html)
    if not html or made.lstrip().lower().startswith(_WHOLE):
        return made
    return page(
        title=document.title,
        language=document.language,
        words=say.words,
        aside="",
        main=made,
        scripts=("document.js",),
    )


def _rendered(path: str, context: Mapping[str, Any], *, html: bool) -> str:
    from jinja2 import FileSystemLoader, StrictUndefined, TemplateError, TemplateNotFound
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from markupsafe import Markup

    def plain(value: Any) -> Any:
        return value if isinstance(value, Markup) else _mark_safe(escape(str(value)))

    def code(value: Any) -> Markup:
        if html:
            return _mark_safe(f"<code>{text(str(value))}</code>")
        return _mark_safe(blocks_markdown([Paragraph((Code(str(value)),))]).strip())

    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(os.path.dirname(os.path.abspath(path))),
        autoescape=html,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        **({} if html else {"finalize": plain}),
    )
    environment.filters["code"] = code
    try:
        return environment.get_template(os.path.basename(path)).render(context)
    except TemplateNotFound as error:
        raise UsageError(
            f"cannot read the template {error.name or path}", "check the path"
        ) from None
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f"{path} line {line}" if line else path
        raise UsageError(f"{where}: {error.message or type(error).__name__}", _HINT) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", "check the path") from None
    except Exception as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}", _HINT) from None


_HINT = "use only what the documentation of runbooks lists for templates"


def _context(document: Document, book: Book, say: Phrases, *, html: bool) -> dict[str, Any]:
    def markup(section: Section) -> Markup:
        return _mark_safe(blocks_html([section], say.words) if html else blocks_markdown([section]))

    return {
        "title": document.title,
        "subtitle": plain(document.subtitle),
        "chapters": {
            block.anchor: markup(block) for block in document.blocks if isinstance(block, Section)
        },
        "plans": [_plan(entry, book) for entry in book.entries],
        "written": stamp(book.written),
        "start": stamp(book.start),
        "version": __version__,
        "language": document.language,
    }


def _mark_safe(text: str) -> Markup:
    """Mark the output of our renderers as safe; they already escape all data."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


def _plan(entry: RunbookEntry, book: Book) -> dict[str, Any]:
    fields = plan_fields(entry.plan, book.start)
    steps = [
        {**step, "not_before": stamp(earliest), "history_lost_before": stamp(lost)}
        for step, (earliest, lost) in zip(fields["steps"], book.times(entry), strict=True)
    ]
    gates = [
        {"name": gate.name, "passed": gate.passed, "message": gate.message, "hint": gate.hint}
        for gate in entry.gates or ()
    ]
    return {**fields, "steps": steps, "gates": gates}
