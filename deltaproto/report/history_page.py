"""A table's history as a document: the same in Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.history import Event, History
from deltaproto.report.document import (
    Block,
    Bullets,
    Callout,
    Code,
    Document,
    Line,
    Paragraph,
    Section,
    Table,
    Tone,
)
from deltaproto.report.history import changes, moment, protocols, remarks, who

_HEADINGS = ("Version", "Time", "Operation", "Protocol", "Changes", "By", "Cause")


def history_document(table: str, history: History) -> Document:
    """The timeline, the newest event first."""
    count = len(history.events)
    told = f"{count:,} {'commit' if count == 1 else 'commits'} that changed protocol or use"
    return Document(table, (told,), [section(table, history, "Timeline")])


def section(table: str, history: History, title: str = "") -> Section:
    """The events and what else was met on the way."""
    return Section("timeline", title or table, list(_blocks(history)))


def _blocks(history: History) -> Iterator[Block]:
    if history.events:
        yield Table(
            _HEADINGS,
            [_row(event) for event in history.events],
            [_tone(event) for event in history.events],
        )
    else:
        yield Paragraph(("No commit in the log changed protocol, features or isolation.",))
    if history.problems:
        yield Callout(Tone.DANGER, ("Not every commit could be read.",))
    lines: list[Line] = [(text,) for text in remarks(history)]
    if lines:
        yield Bullets(lines)


def _tone(event: Event) -> Tone | None:
    if event.features_added:
        return Tone.WARNING
    return Tone.GOOD if event.features_removed else None


def _row(event: Event) -> list[Line]:
    return [
        (str(event.version),),
        (moment(event.timestamp) or "?",),
        (Code(event.operation),),
        (protocols(event),),
        (", ".join(changes(event)),),
        (who(event),),
        (event.cause,),
    ]
