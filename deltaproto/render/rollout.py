"""The progress of a rollout in each format."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain, groupby
from typing import IO, Any, NamedTuple

from deltaproto.counts import counted
from deltaproto.execution.rollout_state import (
    ENDED,
    RolloutProgress,
    RolloutStatus,
    TableProgress,
    WaveProgress,
)
from deltaproto.location import quote_for_shell
from deltaproto.planning.rollout import group_id
from deltaproto.render.document.blocks import (
    Block,
    Document,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.document.render import write_document
from deltaproto.render.interface import DEFAULT_LIMIT, json_text, stamp
from deltaproto.render.named_tables import NamedCount, SharedFolder, folder_note
from deltaproto.render.overview.metrics import gauge_lines
from deltaproto.render.plan import summarize_steps

_MAX_TABLES = 50
_HEADINGS = ("Wave", "Status", "Tables", "Next step")
_GROUP_HEADINGS = ("Wave", "Plan", "Tables", "Next step", "Names")
_REHEARSED = "Rehearsed"
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
    RolloutStatus.READY: "run deltaproto apply {}{}",
    RolloutStatus.WAITING: "run deltaproto apply {}{} then, or pass --wait",
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


class WaveGroup(NamedTuple):
    """The tables of a wave whose plans do the same."""

    wave: WaveProgress
    id: str
    """from `group_id`"""
    steps: str
    """what the plans do, in one line"""
    violated: int
    """tables that still violate the policy afterwards"""
    tables: tuple[TableProgress, ...]
    rehearsed: bool | None
    """whether one of the plans went as predicted on a clone; None: the rollout has no rehearsals"""

    @property
    def plan(self) -> str:
        """What the plans do and leave, in one line."""
        left = self.violated
        return f"{self.steps}; {counted(left, 'table')} still in violation" if left else self.steps

    @property
    def is_ready(self) -> bool:
        """Whether one of the tables may run now."""
        return any(each.status is RolloutStatus.READY for each in self.tables)

    @property
    def until(self) -> float | None:
        """When the next step may run, in seconds since the epoch; None: now, or unknown."""
        if self.is_ready or all(each.status in ENDED for each in self.tables):
            return None
        # While a whole wave has to wait, its tables are not read.
        times = [each.until for each in self.tables if each.until is not None]
        return min(times, default=self.wave.until)


def group_tables(progress: RolloutProgress) -> Iterator[WaveGroup]:
    """Yield the groups of each wave, the largest first."""
    for wave in progress.waves:
        found: dict[str, list[TableProgress]] = {}
        for each in wave.tables:
            plan = progress.plans[each.table.plan_id].plan
            found.setdefault(group_id(plan), []).append(each)
        plans = {
            key: [progress.plans[each.table.plan_id].plan for each in tables]
            for key, tables in found.items()
        }
        lines = {key: summarize_steps(of_group[0]) for key, of_group in plans.items()}
        uses = Counter(lines.values())
        for key, tables in sorted(found.items(), key=lambda group: -len(group[1])):
            line, plan = lines[key], plans[key][0]
            if uses[line] > 1:
                ends = dict.fromkeys((str(plan.protocol_before), str(plan.protocol_after)))
                line += f"; protocol {' to '.join(ends)}"
            rehearsed = key in progress.rehearsed if progress.rollout.rehearse else None
            violated = sum(bool(each.unmet) for each in plans[key])
            yield WaveGroup(wave, key, line, violated, tuple(tables), rehearsed)


def _merge_alike(groups: Iterable[WaveGroup]) -> list[WaveGroup]:
    """Merge groups of a wave that would read the same, and return them with the largest first."""
    found: dict[tuple[str, str, bool | None], list[WaveGroup]] = {}
    for group in groups:
        found.setdefault((group.wave.name, group.steps, group.rehearsed), []).append(group)
    merged = (
        alike[0]._replace(
            tables=tuple(chain.from_iterable(each.tables for each in alike)),
            violated=sum(each.violated for each in alike),
        )
        for alike in found.values()
    )
    return [
        group
        for _, of_wave in groupby(merged, key=lambda each: each.wave.name)
        for group in sorted(of_wave, key=lambda each: -len(each.tables))
    ]


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
        write_document(rollout_document(progress), format_, file, color=color)


def rollout_fields(progress: RolloutProgress) -> dict[str, Any]:
    """Return the progress as JSON."""
    return {
        "rollout_id": progress.rollout.id,
        "file": progress.rollout.path,
        "status": str(progress.status),
        "message": progress.message or None,
        "note": progress.note or None,
        "next_at": stamp(progress.next_at),
        "max_failures": progress.rollout.max_failures,
        "waves": [_wave_fields(wave) for wave in progress.waves],
        "groups": [_group_fields(group) for group in group_tables(progress)],
    }


def rollout_document(progress: RolloutProgress) -> Document:
    """Return the progress as a document."""
    return Document("Rollout", (progress.rollout.path,), [rollout_section(progress)])


def rollout_section(progress: RolloutProgress) -> Section:
    """Return the progress as a section: each wave, and the tables that need attention."""
    title = f"rollout {progress.status}"
    return Section("", title, list(_blocks(progress)), _TONES.get(progress.status))


def _blocks(progress: RolloutProgress) -> Iterator[Block]:
    if progress.message:
        yield Paragraph((progress.message,))
    if progress.note:
        yield Paragraph((f"note: {progress.note}",))
    blocked = progress.status not in (RolloutStatus.READY, RolloutStatus.WAITING)
    rows: list[list[Line]] = [
        [
            (wave.name,),
            (str(wave.status),),
            (_counts(wave.tables),),
            ("" if blocked else _next_step(wave),),
        ]
        for wave in progress.waves
    ]
    yield TableBlock(_HEADINGS, rows, [_TONES.get(wave.status) for wave in progress.waves])
    yield from _group_blocks(progress, blocked=blocked)
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
            yield Paragraph(
                (f"and {counted(len(notable) - _MAX_TABLES, 'more table')}; JSON has all",), True
            )
    if progress.next_at is not None:
        yield Paragraph((f"next step: {stamp(progress.next_at)}",))
    if progress.status in _HINTS:
        folder = quote_for_shell(os.path.dirname(progress.rollout.path))
        policy = " --policy FILE" if progress.rollout.windows else ""
        yield Paragraph((f"hint: {_HINTS[progress.status].format(folder, policy)}",))


def _group_blocks(progress: RolloutProgress, *, blocked: bool) -> Iterator[Block]:
    groups, folder = _merge_alike(group_tables(progress)), SharedFolder()
    for each in progress.rollout.tables:
        folder.add(each.table)
    rows: list[list[Line]] = []
    for group in groups[:DEFAULT_LIMIT]:
        named = NamedCount()
        for table in group.tables:
            named.add(table.table.table)
        next_step = "now" if group.is_ready else stamp(group.until) or ""
        cells = (
            *(group.wave.name, group.plan, _counts(group.tables)),
            *("" if blocked else next_step, named.shown(len(str(folder)))),
        )
        rehearsed = () if group.rehearsed is None else ("yes" if group.rehearsed else "no",)
        rows.append([(cell,) if cell else () for cell in (*cells, *rehearsed)])
    headings = (*_GROUP_HEADINGS, *((_REHEARSED,) if progress.rollout.rehearse else ()))
    yield TableBlock(headings, rows, below=True)
    yield from folder_note(folder)
    if len(groups) > DEFAULT_LIMIT:
        yield Paragraph(
            (f"and {counted(len(groups) - DEFAULT_LIMIT, 'more group')}; JSON has all",), True
        )


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


def _counts(tables: Iterable[TableProgress]) -> str:
    counts = _count_statuses(tables)
    return ", ".join(f"{count:,} {status}" for status, count in counts.items())


def _count_statuses(tables: Iterable[TableProgress]) -> dict[RolloutStatus, int]:
    counts = Counter(table.status for table in tables)
    return {status: counts[status] for status in RolloutStatus if counts[status]}


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
                "steps_left": each.steps_left,
                "next_at": stamp(each.until),
                "ended_at": stamp(each.since),
                "message": each.message or None,
            }
            for each in wave.tables
        ],
    }


def _group_fields(group: WaveGroup) -> dict[str, Any]:
    return {
        "wave": group.wave.name,
        "group_id": group.id,
        "plan": group.plan,
        "rehearsed": group.rehearsed,
        "statuses": {str(key): count for key, count in _count_statuses(group.tables).items()},
        "next_at": stamp(group.until),
        "plan_ids": [each.table.plan_id for each in group.tables],
    }


def _metric_lines(progress: RolloutProgress) -> Iterator[str]:
    yield from gauge_lines(
        "deltaproto_rollout_tables",
        "Tables of a rollout by wave and status.",
        (
            ({"wave": wave.name, "status": str(status)}, count)
            for wave in progress.waves
            for status, count in _count_statuses(wave.tables).items()
        ),
    )
    yield from gauge_lines(
        "deltaproto_rollout_steps_left",
        "Steps of the plans of a wave that are not done, waits among them.",
        (
            ({"wave": wave.name}, sum(each.steps_left for each in wave.tables))
            for wave in progress.waves
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
