"""The progress of a rollout in each format."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import IO, Any

from deltaproto.execution.rollout_state import (
    RolloutProgress,
    RolloutStatus,
    TableProgress,
    WaveProgress,
)
from deltaproto.render.document import Block, Document, Line, Paragraph, Section, TableBlock, Tone
from deltaproto.render.document.render import write_document
from deltaproto.render.interface import json_text, stamp
from deltaproto.render.overview.metrics import gauge_lines

_MAX_TABLES = 50
_HEADINGS = ("Wave", "Status", "Tables", "Next step")
_TABLE_HEADINGS = ("Wave", "Table", "Status", "Until", "Reason")
_TONES = {
    RolloutStatus.DONE: Tone.GOOD,
    RolloutStatus.FAILED: Tone.DANGER,
    RolloutStatus.STOPPED: Tone.DANGER,
    RolloutStatus.ABORTED: Tone.DANGER,
    RolloutStatus.WAITING: Tone.WARNING,
    RolloutStatus.PAUSED: Tone.WARNING,
    RolloutStatus.SKIPPED: Tone.WARNING,
}
_HINTS = {
    RolloutStatus.READY: "run deltaproto apply {}",
    RolloutStatus.WAITING: "run deltaproto apply {} then, or pass --wait",
    RolloutStatus.STOPPED: (
        "fix the cause, then run deltaproto rollout resume {}; or exclude the table with "
        "deltaproto rollout skip"
    ),
    RolloutStatus.PAUSED: "to continue, run deltaproto rollout resume {}",
    RolloutStatus.ABORTED: "plan again into a new folder for the tables that are not done",
}


class StatusFormat(StrEnum):
    """Values of `--format` of `status`."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    OPENMETRICS = "openmetrics"


def write_status(
    progress: RolloutProgress,
    format_: StatusFormat,
    file: IO[str],
    *,
    complete: bool,
    color: bool,
) -> None:
    """Write the progress of a rollout; `complete`: every table was planned and read."""
    if format_ is StatusFormat.JSON:
        fields = {"rollout": rollout_fields(progress)}
        file.write(json_text("status", fields, line=False, complete=complete))
    elif format_ is StatusFormat.OPENMETRICS:
        file.write("".join(f"{line}\n" for line in _metric_lines(progress)) + "# EOF\n")
    else:
        section = rollout_section(progress)
        document = Document("Rollout", (progress.rollout.path,), [section])
        write_document(document, format_, file, color=color)


def rollout_fields(progress: RolloutProgress) -> dict[str, Any]:
    """Return the progress as JSON."""
    return {
        "rollout_id": progress.rollout.id,
        "file": progress.rollout.path,
        "status": str(progress.status),
        "message": progress.message or None,
        "next_at": stamp(progress.next_at),
        "max_failures": progress.rollout.max_failures,
        "waves": [_wave_fields(wave) for wave in progress.waves],
    }


def rollout_section(progress: RolloutProgress) -> Section:
    """Return the progress as a section: each wave, and the tables that need attention."""
    title = f"rollout {progress.status}"
    return Section("", title, list(_blocks(progress)), _TONES.get(progress.status))


def _blocks(progress: RolloutProgress) -> Iterator[Block]:
    if progress.message:
        yield Paragraph((progress.message,))
    blocked = progress.status not in (RolloutStatus.READY, RolloutStatus.WAITING)
    rows: list[list[Line]] = [
        [
            (wave.name,),
            (str(wave.status),),
            (_counts(wave),),
            ("" if blocked else _next_step(wave),),
        ]
        for wave in progress.waves
    ]
    yield TableBlock(_HEADINGS, rows, [_TONES.get(wave.status) for wave in progress.waves])
    notable = [
        (wave, table) for wave in progress.waves for table in wave.tables if _is_notable(table)
    ]
    if notable:
        shown = notable[:_MAX_TABLES]
        yield TableBlock(
            _TABLE_HEADINGS,
            [_table_row(wave, table) for wave, table in shown],
            [_TONES.get(table.status) for _, table in shown],
            lead=2,
            below=True,
        )
        if len(notable) > _MAX_TABLES:
            yield Paragraph((f"and {len(notable) - _MAX_TABLES} more tables; JSON has all",), True)
    if progress.next_at is not None:
        yield Paragraph((f"next step: {stamp(progress.next_at)}",))
    if progress.status in _HINTS:
        folder = shlex.quote(os.path.dirname(progress.rollout.path))
        yield Paragraph((f"hint: {_HINTS[progress.status].format(folder)}",))


def _is_notable(table: TableProgress) -> bool:
    return bool(table.message) or table.status in (RolloutStatus.FAILED, RolloutStatus.SKIPPED)


def _table_row(wave: WaveProgress, table: TableProgress) -> list[Line]:
    until = stamp(table.until) or ""
    return [
        (wave.name,),
        (table.table.table,),
        (str(table.status),),
        (until,),
        (table.message,),
    ]


def _counts(wave: WaveProgress) -> str:
    counts = Counter(table.status for table in wave.tables)
    return ", ".join(f"{counts[status]} {status}" for status in RolloutStatus if counts[status])


def _next_step(wave: WaveProgress) -> str:
    if wave.status is RolloutStatus.READY:
        return "now"
    return " ".join(filter(None, (stamp(wave.until), f"({wave.message})" if wave.message else "")))


def _wave_fields(wave: WaveProgress) -> dict[str, Any]:
    return {
        "name": wave.name,
        "status": str(wave.status),
        "next_at": stamp(wave.until),
        "message": wave.message or None,
        "tables": [
            {
                "plan_id": each.table.plan_id,
                "table": each.table.table,
                "location": each.table.location,
                "status": str(each.status),
                "next_at": stamp(each.until),
                "ended_at": stamp(each.since),
                "message": each.message or None,
            }
            for each in wave.tables
        ],
    }


def _metric_lines(progress: RolloutProgress) -> Iterator[str]:
    yield from gauge_lines(
        "deltaproto_rollout_tables",
        "Tables of a rollout by wave and status.",
        (
            ({"wave": wave.name, "status": str(status)}, count)
            for wave in progress.waves
            for status, count in sorted(Counter(each.status for each in wave.tables).items())
        ),
    )
    yield from gauge_lines(
        "deltaproto_rollout_status",
        "1 for the status of the rollout.",
        (({"status": str(each)}, int(each is progress.status)) for each in RolloutStatus),
    )
    if progress.next_at is not None:
        yield from gauge_lines(
            "deltaproto_rollout_next_step_seconds",
            "When the next step may run, in seconds since the epoch.",
            [({}, int(progress.next_at))],
        )
