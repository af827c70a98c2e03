"""The results of `history`: documents and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from deltaproto.counts import counted
from deltaproto.inspection.history import ProtocolHistory
from deltaproto.inspection.history_events import Event
from deltaproto.protocol.protocol import Protocol
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Code,
    Document,
    Line,
    Paragraph,
    TableBlock,
    Tone,
)
from deltaproto.render.document.render import write_document
from deltaproto.render.inspection_json import protocol_fields
from deltaproto.render.interface import PageFormat, error_fields, format_timestamp, json_text

_HEADINGS = ("Version", "Time", "Operation", "Protocol", "Changes", "Cause", "By")
_LEAD = 3


def write_history(
    table: str, history: ProtocolHistory, format_: PageFormat, file: IO[str], *, color: bool
) -> None:
    """Write the events, newest first, and the remarks."""
    if format_ in (PageFormat.JSON, PageFormat.JSONL):
        line, complete = format_ is PageFormat.JSONL, history.complete
        file.write(
            json_text("history", history_fields(table, history), line=line, complete=complete)
        )
        return
    write_document(history_document(table, history), format_, file, color=color)


def history_document(table: str, history: ProtocolHistory) -> Document:
    """Return the events of a table's history as a document, newest first."""
    count = len(history.events)
    summary = f"{counted(count, 'commit')} that changed protocol or use"
    return Document(table, (summary,), list(_blocks(history)))


def _blocks(history: ProtocolHistory) -> Iterator[Block]:
    if history.events:
        yield TableBlock(
            _HEADINGS,
            [_row(event) for event in history.events],
            [_tone(event) for event in history.events],
            lead=_LEAD,
        )
    else:
        yield Paragraph(("No commit that was read changed protocol, features or isolation.",))
    if history.problems:
        yield Callout(Tone.DANGER, ("Not every commit could be read.",))
    lines: list[Line] = [(text,) for text in _remarks(history)]
    if lines:
        yield Bullets(lines)


def _tone(event: Event) -> Tone | None:
    if event.features_added:
        return Tone.WARNING
    return Tone.GOOD if event.features_removed else None


def _row(event: Event) -> list[Line]:
    return [
        (str(event.version),),
        (format_timestamp(event.timestamp) or "time unknown",),
        (Code(event.operation),),
        (_protocols(event),),
        (", ".join(_changes(event)),),
        (event.cause,),
        (_origin(event),),
    ]


def _origin(event: Event) -> str:
    """Return the user, engine, job, and the plan whose step made the commit."""
    parts = [part for part in (event.user, event.engine, event.job) if part]
    if event.mark is not None:
        by = f" by {event.mark.actor}" if event.mark.actor else ""
        parts.append(f"plan {event.mark.plan}, step {event.mark.step}, run {event.mark.run}{by}")
    return ", ".join(parts)


def _protocols(event: Event) -> str:
    """Return the protocol before and after the event; only one if it did not change."""
    before, after = event.protocol_before, event.protocol_after
    if before is None:
        return str(after)
    return str(after) if before == after else f"{before} -> {after}"


def _changes(event: Event) -> list[str]:
    """Return the changes of an event, each with a mark: + supported, - dropped, on, off."""
    changes = [f"+{name}" for name in event.features_added]
    changes += [f"-{name}" for name in event.features_removed]
    on = [name for name in event.enabled if name not in event.features_added]
    off = [name for name in event.disabled if name not in event.features_removed]
    changes += [f"{name} on" for name in on] + [f"{name} off" for name in off]
    changes += [f"+constraint {name}" for name in event.constraints_added]
    changes += [f"-constraint {name}" for name in event.constraints_removed]
    if event.isolation_before != event.isolation_after:
        levels = (event.isolation_before or "not set", event.isolation_after or "not set")
        changes.append(f"isolation {levels[0]} -> {levels[1]}")
    return changes


def _remarks(history: ProtocolHistory) -> list[str]:
    """Return how far back the history goes, commits without a change, and unreadable commits."""
    lines = []
    if not history.has_newest:
        lines.append(
            "a catalog manages this table: newer commits may not be in its log; read it by its "
            "catalog name"
        )
    if history.oldest_version_seen is not None and not history.whole:
        why = "were not read" if history.stopped else "are unknown"
        lines.append(f"commits before version {history.oldest_version_seen} {why}")
    for idle in history.idle:
        count = len(idle.versions)
        lines.append(
            f"{counted(count, 'commit')} {idle.operation} by {idle.engine} "
            f"stored the same metadata again (last: version {idle.versions[0]}); each "
            "needlessly aborts concurrent writes by Delta Spark before 4.1, Databricks and delta-rs"
        )
    lines += [f"version {v} cannot be read: {error.message}" for v, error in history.problems]
    return lines


def event_fields(event: Event) -> dict[str, Any]:
    """Return one event as JSON; `protocol_before` is null if no older commit is known."""
    return {
        "version": event.version,
        "timestamp": format_timestamp(event.timestamp),
        "operation": event.operation,
        "parameters": dict(event.parameters),
        "engine": event.engine,
        "user": event.user,
        "job": event.job,
        "applied": None if event.mark is None else event.mark._asdict(),
        "features_added": list(event.features_added),
        "features_removed": list(event.features_removed),
        "enabled": list(event.enabled),
        "disabled": list(event.disabled),
        "constraints_added": list(event.constraints_added),
        "constraints_removed": list(event.constraints_removed),
        "protocol_before": _protocol(event.protocol_before),
        "protocol_after": protocol_fields(event.protocol_after),
        "isolation": {"before": event.isolation_before, "after": event.isolation_after},
        "cause": event.cause,
    }


def history_fields(table: str, history: ProtocolHistory) -> dict[str, Any]:
    """Return the history as JSON."""
    return {
        "table": table,
        "events": [event_fields(event) for event in history.events],
        "oldest_version_seen": history.oldest_version_seen,
        "whole": history.whole,
        "idle_commits": [
            {
                "engine": idle.engine,
                "operation": idle.operation,
                "count": len(idle.versions),
                "last_version": idle.versions[0],
            }
            for idle in history.idle
        ],
        "problems": [
            {"version": version, **error_fields(error)} for version, error in history.problems
        ],
    }


def _protocol(protocol: Protocol | None) -> dict[str, Any] | None:
    return None if protocol is None else protocol_fields(protocol)
