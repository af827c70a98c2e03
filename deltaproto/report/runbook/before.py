"""The chapter on what has to be done before the first statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from deltaproto.errors import DeltaprotoError
from deltaproto.planning.plan import Stream
from deltaproto.policy.document.openings import is_open, next_opening
from deltaproto.report.activity import quietest, sentences, writer_rows
from deltaproto.report.document import (
    Block,
    Bullets,
    Callout,
    Checks,
    Inline,
    Line,
    Listing,
    Paragraph,
    Section,
    Table,
    Tone,
)
from deltaproto.report.runbook.backup import backup
from deltaproto.report.runbook.book import Book, Entry, Warned, codes, gone, some
from deltaproto.report.runbook.phrases import Phrases

_SOURCES = ("workspace", "catalog", "session", "code", "services")


def before(book: Book, say: Phrases) -> Section:
    """What has to be done before the first statement."""
    sections = [
        Section("source", say.text("source"), list(_source(book, say))),
        Section("backup", say.text("backup"), list(backup(book, say))),
        Section("stop", say.text("stop"), list(stop(book.warned, say))),
        Section("streams", say.text("streams"), list(streams(book.warned, say))),
        Section("activity", say.text("activity"), list(_activity(book, say))),
        Section("window", say.text("window"), list(_window(book, say))),
        Section("ready", say.text("ready"), list(_ready(book, say))),
    ]
    return Section("before", say.text("before"), sections)


def _source(book: Book, say: Phrases) -> Iterator[Block]:
    lost = {
        name
        for entry in book.changing
        for name in gone(entry.plan.protocol_before, entry.plan.protocol_after)
    }
    if not lost:
        yield Paragraph(say.line("source.upgrade"))
        return
    yield Paragraph(say.line("source.intro"))
    known = dict.fromkeys(note for _, each in book.warned for note in each.sources)
    yield Checks(
        [
            *(say.line("source.known", text=note) for note in known),
            *(say.line(f"source.{source}") for source in _SOURCES),
        ]
    )


def stop(warned: Warned, say: Phrases) -> Iterator[Block]:
    """Which transactions fail, with which exception; and what makes a step fail."""
    clashes = False
    for loser, title in (("writer", "stop.writers"), ("step", "stop.steps")):
        found: dict[tuple[str, str, tuple[str, ...]], list[Inline]] = {}
        for entry, each in warned:
            for hit in each.hits:
                if hit.loser == loser:
                    key = (hit.engine, hit.who, hit.exceptions)
                    found.setdefault(key, []).append(_where(entry.plan.table, hit.steps))
        if not found:
            continue
        if not clashes:
            yield Callout(Tone.DANGER, say.line("stop.intro"))
        clashes = True
        heads = ("engine", "who", "exception", "where")
        yield Section(
            f"stop-{loser}",
            say.text(title),
            [
                Table(
                    [say.text(f"head.{head}") for head in heads],
                    [
                        [
                            (engine,),
                            (who,),
                            some(codes(exceptions), say, len(exceptions)),
                            some(where, say, len(where)),
                        ]
                        for (engine, who, exceptions), where in found.items()
                    ],
                )
            ],
        )
    if not clashes:
        yield Paragraph(say.line("stop.none"))
    notes = dict.fromkeys(note for _, each in warned for note in each.notes)
    if notes:
        yield Bullets([(note,) for note in notes])


def streams(warned: Warned, say: Phrases) -> Iterator[Block]:
    """What becomes of streaming reads."""
    found: dict[Stream, dict[str, list[str]]] = {}
    for entry, each in warned:
        for step, stream in each.streams:
            found.setdefault(stream, {}).setdefault(entry.plan.table, []).append(step)
    if not found:
        yield Paragraph(say.line("streams.none"))
        return
    yield Table(
        [say.text(f"head.{head}") for head in ("stream", "effect", "why", "where")],
        [
            [
                (stream.reads,),
                say.line(f"effect.{stream.effect}"),
                (stream.why,),
                some([_where(*each) for each in where.items()], say, len(where)),
            ]
            for stream, where in found.items()
        ],
    )


def _where(table: str, steps: Sequence[str]) -> Inline:
    return f"{table} ({', '.join(steps)})"


def _activity(book: Book, say: Phrases) -> Iterator[Block]:
    looked = [entry for entry in book.changing if entry.activity is not None]
    if not looked:
        yield Paragraph(say.line("activity.not_looked"))
    for entry in looked:
        found = entry.activity
        if isinstance(found, DeltaprotoError):
            told = say.line("activity.none", table=entry.name, message=found.message)
            yield Callout(Tone.WARNING, told)
            continue
        assert found is not None
        heads = ("engine", "operation", "commits", "every", "last")
        rows: list[list[Line]] = [[(cell,) for cell in row] for row in writer_rows(found)]
        yield Paragraph((entry.name,))
        if not rows:
            yield Paragraph(say.line("activity.quiet"))
            continue
        yield Table([say.text(f"head.{head}") for head in heads], rows)
        yield Bullets([(text,) for text in sentences(found)])


def _window(book: Book, say: Phrases) -> Iterator[Block]:
    moment = datetime.fromtimestamp(book.start, UTC)
    lines: list[Line] = []
    for entry in book.changing:
        if entry.windows:
            coming = next_opening(entry.windows, moment)
            state = say.text("window.open" if is_open(entry.windows, moment) else "window.closed")
            then = say.text("nothing") if coming is None else f"{coming:%Y-%m-%d %H:%M} UTC"
            lines.append(say.line("window.next", table=entry.name, state=state, next=then))
    hours = [(entry.name, _hour(entry)) for entry in book.changing]
    known: list[Line] = [(name, f": {hour}") for name, hour in hours if hour is not None]
    if lines or known:
        yield Bullets([*lines, *known])
    if not known:
        yield Paragraph(say.line("window.unknown"))


def _hour(entry: Entry) -> str | None:
    found = entry.activity
    return None if found is None or isinstance(found, DeltaprotoError) else quietest(found)


def _ready(book: Book, say: Phrases) -> Iterator[Block]:
    if book.applicable:
        yield Paragraph(say.line("ready.rehearse"))
        yield Listing(book.command("rehearse"), "shell")
        yield Paragraph(say.line("ready.dry"))
        yield Listing(book.apply("--dry-run"), "shell")
    boxes = ("people", "stopped", "source", "backup", "window")
    yield Checks([say.line(f"ready.{box}") for box in boxes])
