"""The chapter on a rollout: its calendar, and who does what in each wave."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from deltaproto.execution.rollout_calendar import WaveTimes
from deltaproto.execution.rollout_file import Rollout
from deltaproto.policy.document.model import Window
from deltaproto.policy.document.windows import is_open, next_closing, next_opening
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Checks,
    Code,
    CodeBlock,
    Details,
    FactList,
    Figure,
    Line,
    Link,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.overview.chart import Period, timeline
from deltaproto.render.runbook.book import Book, RunbookEntry, as_code, join_names
from deltaproto.render.runbook.commands import chapter_title
from deltaproto.render.runbook.overview import change_line, client_changes
from deltaproto.render.runbook.phrases import Phrases, when
from deltaproto.render.runbook.shell import command
from deltaproto.render.terminal import duration

_MAX_OPENINGS = 60
"""maximum number of openings of maintenance windows that the calendar shows for a wave"""
_MAX_LINES = 10
"""longer commands are collapsed"""
_HEADS = ("wave", "tables", "starts", "ends", "soaked")
_STEPS, _SOAK, _WINDOW = 0, 4, 2
_LEGEND = {_STEPS: "rollout.steps", _SOAK: "rollout.soak", _WINDOW: "rollout.window"}
"""colors of the calendar, and what they mean"""


def waves(book: Book, rollout: Rollout, say: Phrases) -> Section:
    """Return the rollout: when each wave can run, and a section for each."""
    return Section("rollout", say.text("rollout"), list(_waves(book, rollout, say)))


def _decided(book: Book, say: Phrases) -> Iterator[Block]:
    """Yield the changes since the rollout was created."""
    decisions = book.decisions
    for key, reason in (("aborted", decisions.aborted), ("paused", decisions.paused)):
        if reason is not None:
            yield Callout(Tone.WARNING, say.line(f"rollout.{key}", reason=reason))
            break
    again = [entry for entry in book.entries if entry.replaces is not None]
    if again:
        yield Paragraph(say.line("rollout.replanned", tables=book.names(again, say)))
    ended = [e for e in book.entries if (e.replaces or e.planned.id) in book.ended]
    if ended:
        yield Paragraph(say.line("rollout.ended", tables=book.names(ended, say)))
    if book.skipped:
        yield Paragraph(say.line("rollout.skipped"))
        yield Bullets([(Code(table), f": {reason}") for table, reason in book.skipped.items()])


def _waves(book: Book, rollout: Rollout, say: Phrases) -> Iterator[Block]:
    yield from _decided(book, say)
    soak, parallel = duration(rollout.soak_hours), say.count("tables", rollout.parallel)
    yield Paragraph(say.line("rollout.intro", soak=soak, parallel=parallel))
    failures = say.count("tables", rollout.max_failures)
    stop = "rollout.stop" if rollout.max_failures else "rollout.stop_at_once"
    yield Paragraph(say.line(stop, failures=failures))
    if rollout.rehearse:
        yield Paragraph(say.line("rollout.rehearse"))
    rows = [_row(book, each, say) for each in book.waves]
    used = {period.series for _, row in rows for period in row}
    legend = {series: say.text(key) for series, key in _LEGEND.items() if series in used}
    yield Figure(
        timeline(say.text("rollout.calendar"), rows, legend),
        say.text("rollout.calendar"),
        TableBlock([say.text(f"head.{head}") for head in _HEADS], list(_rows(book, say))),
    )
    yield Paragraph(say.line("rollout.estimate"), muted=True)
    # An empty list of windows permits no change at any time.
    if never := [entry for entry in book.changing if entry.windows == ()]:
        yield Callout(Tone.WARNING, say.line("rollout.never", tables=book.names(never, say)))
    folder = os.path.dirname(rollout.path)
    yield Paragraph(say.line("rollout.control"))
    yield CodeBlock(
        "\n".join(
            (
                command("deltaproto", "status", folder),
                command("deltaproto", "rollout", "pause", folder, "--reason", "…"),
                command("deltaproto", "rollout", "resume", folder),
                command("deltaproto", "rollout", "skip", folder, "TABLE", "--reason", "…"),
                command("deltaproto", "rollout", "abort", folder, "--reason", "…"),
            )
        ),
        "shell",
    )
    for number, wave in enumerate(book.waves, 1):
        title = say.text(
            "rollout.wave", wave=wave.wave.name, tables=say.count("tables", len(wave.wave.tables))
        )
        last = number == len(book.waves)
        yield Section(f"wave-{number}", title, list(_wave(book, wave, folder, say, last=last)))


def _rows(book: Book, say: Phrases) -> Iterator[list[Line]]:
    for number, wave in enumerate(book.waves, 1):
        soaked = say.text("nothing") if number == len(book.waves) else when(wave.next_start)
        yield [
            (Link(wave.wave.name, f"wave-{number}"),),
            (str(len(wave.wave.tables)),),
            (when(wave.start),),
            (when(wave.end),),
            (soaked,),
        ]


def _row(book: Book, wave: WaveTimes, say: Phrases) -> tuple[str, Sequence[Period]]:
    def period(start: float, end: float, series: int, *, thin: bool = False) -> Period:
        caption = f"{say.text(_LEGEND[series])}: {when(start)} – {when(end)}"
        return Period(start, end, series, caption, thin)

    found = [period(wave.start, wave.end, _STEPS)]
    until = wave.end if wave is book.waves[-1] else wave.next_start
    if until > wave.end:
        found.append(period(wave.end, until, _SOAK))
    windows = dict.fromkeys(
        window for entry in _entries(book, wave) for window in entry.windows or ()
    )
    for start, end in _openings(list(windows), wave.start, until):
        found.append(period(start, end, _WINDOW, thin=True))
    return wave.wave.name, found


def _openings(windows: Sequence[Window], start: float, end: float) -> Iterator[tuple[float, float]]:
    """Yield when any of the windows is open between two times."""
    now: datetime | None = datetime.fromtimestamp(start, UTC)
    for _ in range(_MAX_OPENINGS if windows else 0):
        if now is not None and not is_open(windows, now):
            now = next_opening(windows, now)
        if now is None or now.timestamp() > end:
            return
        closing = next_closing(windows, now)
        yield now.timestamp(), min(closing.timestamp(), end)
        now = closing


def _wave(book: Book, wave: WaveTimes, folder: str, say: Phrases, *, last: bool) -> Iterator[Block]:
    entries = _entries(book, wave)
    losing = [change for change in client_changes(entries) if change.worse]
    clients = dict.fromkeys(each.client for entry in entries for each in entry.clients)
    announcements = (
        [say.line("rollout.tell", clients=join_names(as_code(clients), say))] if clients else []
    )
    yield FactList(
        [
            (say.text("head.starts"), (when(wave.start),)),
            (say.text("head.ends"), (when(wave.end),)),
        ]
    )
    if any(entry.plan.point_of_no_return for entry in entries):
        yield Callout(Tone.WARNING, say.line("summary.irreversible"))
    yield TableBlock(
        [say.text(f"head.{head}") for head in ("section", "tables", "return")],
        list(_groups(book, entries, say)),
    )
    yield Paragraph(say.line("rollout.before"))
    yield Checks(
        [
            *(change_line(book, change, say) for change in losing),
            *announcements,
            say.line("rollout.released", role=say.text("role.approved")),
        ]
    )
    yield Paragraph(say.line("rollout.after" if last else "rollout.before_next"))
    yield Checks(
        [
            say.line("rollout.done", command=Code(command("deltaproto", "status", folder))),
            say.line("rollout.jobs"),
            say.line("sign_off.box", role=say.text("role.verified")),
        ]
    )
    files = list(dict.fromkeys(entry.planned.path for entry in entries))
    undo = command("deltaproto", "apply", "--undo", *book.judging)
    lines = " \\\n  ".join([undo, *(command(file) for file in files)])
    listing = CodeBlock(lines, "shell")
    yield Paragraph(say.line("rollout.undo"))
    yield listing if len(files) <= _MAX_LINES else Details(say.text("rollout.command"), [listing])


def _groups(book: Book, entries: Sequence[RunbookEntry], say: Phrases) -> Iterator[list[Line]]:
    """Yield the chapter of each group that has plans of a wave."""
    ids = {entry.planned.id for entry in entries}
    for number, group in enumerate(book.groups, 1):
        inside = [entry for entry in group.entries if entry.planned.id in ids]
        if inside:
            yield [
                (Link(chapter_title(group, say), f"table-{number}"),),
                join_names(as_code(dict.fromkeys(entry.plan.table for entry in inside)), say),
                (group.plan.point_of_no_return or say.text("nothing"),),
            ]


def _entries(book: Book, wave: WaveTimes) -> list[RunbookEntry]:
    """Return the plans of a wave, in its order."""
    by_id = {entry.replaces or entry.planned.id: entry for entry in book.entries}
    return [by_id[table.plan_id] for table in wave.wave.tables]
