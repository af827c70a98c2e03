"""Custom runbook templates: jinja2, in its sandbox.

A template sees `title`, `subtitle`, `chapters` (by anchor and in order, already rendered in the
format), `plans` (as in the JSON of the planning commands), `written`, `start`, `version` and
`language`. Inserted values are escaped for the format; the filter `code` marks a name as code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltaproto import __version__
from deltaproto.errors import UsageError
from deltaproto.render.document import Code, Document, Line, Paragraph, Section
from deltaproto.render.document.html import blocks_html
from deltaproto.render.document.markdown import blocks_markdown, escape
from deltaproto.render.document.page import page, text
from deltaproto.render.interface import stamp
from deltaproto.render.plan_json import plan_fields
from deltaproto.render.runbook.book import Book, RunbookEntry
from deltaproto.render.runbook.phrases import Phrases
from deltaproto.render.runbook.write import RunbookFormat, runbook

if TYPE_CHECKING:
    from markupsafe import Markup

_WHOLE = ("<!doctype", "<html")


def filled(path: str, book: Book, say: Phrases, format: RunbookFormat) -> str:
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
        return value if isinstance(value, Markup) else _markup(escape(str(value)))

    def code(value: Any) -> Markup:
        if html:
            return _markup(f"<code>{text(str(value))}</code>")
        return _markup(blocks_markdown([Paragraph((Code(str(value)),))]).strip())

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


_HINT = "the documentation of runbooks names everything that a template sees"


def _context(document: Document, book: Book, say: Phrases, *, html: bool) -> dict[str, Any]:
    def made(section: Section) -> Markup:
        return _markup(blocks_html([section], say.words) if html else blocks_markdown([section]))

    return {
        "title": document.title,
        "subtitle": _flat(document.subtitle),
        "chapters": {
            block.anchor: made(block) for block in document.blocks if isinstance(block, Section)
        },
        "plans": [_plan(entry, book) for entry in book.entries],
        "written": stamp(book.written),
        "start": stamp(book.start),
        "version": __version__,
        "language": document.language,
    }


def _markup(made: str) -> Markup:
    """Mark the output of our renderers as safe; they already escape all data."""
    from markupsafe import Markup

    return Markup(made)  # noqa: S704


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


def _flat(line: Line) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in line)
