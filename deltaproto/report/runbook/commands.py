"""The chapter of commands: each plan's statements in order, with a check after each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltaproto.planning.change import about_protocol
from deltaproto.planning.ddl.parse import parse
from deltaproto.planning.outcome import Rewrite
from deltaproto.planning.plan import Blocked, Plan, Step
from deltaproto.planning.statement import Action, SetProperties
from deltaproto.protocol.protocol import Protocol
from deltaproto.report.document import (
    Block,
    Bullets,
    Callout,
    Code,
    Details,
    Facts,
    Line,
    Listing,
    Paragraph,
    Section,
    Tone,
)
from deltaproto.report.interface import visible
from deltaproto.report.paint import duration, runs
from deltaproto.report.plan_json import stamp
from deltaproto.report.plan_words import size
from deltaproto.report.runbook.book import Book, Entry, gone, known, leads
from deltaproto.report.runbook.phrases import Phrases
from deltaproto.report.runbook.pyspark import script


def commands(book: Book, say: Phrases) -> Section:
    """All plans, in the order in which they were given."""
    return Section("commands", say.text("commands"), list(_commands(book, say)))


def _commands(book: Book, say: Phrases) -> Iterator[Block]:
    by_hand = [entry for entry in book.changing if entry.refused is not None]
    for entry in by_hand:
        assert entry.refused is not None
        told = say.line("commands.refused", table=entry.name, why=entry.refused.message)
        yield Callout(Tone.DANGER, told)
    if book.applicable:
        yield Paragraph(say.line("commands.apply"))
        yield Listing(book.apply(), "shell")
        ends = [
            earliest
            for entry in book.applicable
            for step, (earliest, _) in zip(entry.plan.steps, book.times(entry), strict=True)
            if step.action is Action.WAIT and earliest is not None
        ]
        if ends:
            yield Paragraph(say.line("commands.again"))
            times = (say.text("commands.not_before", time=when(end)) for end in sorted(set(ends)))
            yield Bullets([(time,) for time in times])
    if book.changing:
        yield Paragraph(say.line("commands.sql"))
    for number, entry in enumerate(book.entries, 1):
        yield Section(f"table-{number}", entry.plan.table, list(steps_of(book, entry, number, say)))


def steps_of(book: Book, entry: Entry, number: int, say: Phrases) -> Iterator[Block]:
    """One plan: what it is for, and each step with its check. `number` makes anchors differ."""
    plan = entry.plan
    yield Facts(
        [
            (say.text("table.goal"), (plan.goal_text,)),
            (say.text("table.location"), (Code(plan.location),)),
            (say.text("table.plan"), (Code(entry.planned.id),)),
            (say.text("table.version"), (str(plan.fingerprint.version),)),
            (say.text("table.before"), (plan.protocol_before.in_words,)),
            (say.text("table.after"), (plan.protocol_after.in_words,)),
        ]
    )
    if not plan.complete:
        yield Callout(Tone.WARNING, say.line("summary.incomplete"))
    for blocked in plan.blocked:
        yield Callout(Tone.DANGER, _blocked(blocked, say))
    if not plan.steps and not plan.blocked:
        yield Callout(Tone.GOOD, say.line("table.nothing"))
    told = {
        text for name in gone(plan.protocol_before, plan.protocol_after) for text in known(name)
    }
    warnings = [text for text in plan.warnings if text not in told]
    if warnings:
        yield Section(
            f"table-{number}-warnings",
            say.text("table.warnings"),
            [Bullets([(text,) for text in warnings])],
        )
    if plan.steps:
        yield Paragraph(say.line("commands.versions", engine=str(plan.engine)))
    times = book.times(entry)
    for step, (earliest, lost) in zip(plan.steps, times, strict=True):
        if step.id == plan.point_of_no_return:
            yield Callout(Tone.DANGER, say.line("step.return"))
        title = say.text("step.title", id=step.id, why=step.why)
        yield Section(
            f"table-{number}-{step.id}", title, list(_step(plan, step, earliest, lost, say))
        )
    if plan.steps:
        yield Details(say.text("pyspark"), [Listing(script(plan, times, say), "python")])


def _blocked(blocked: Blocked, say: Phrases) -> Line:
    what = blocked.feature or say.text("table.goal")
    told = say.line("table.blocked", what=what, reason=blocked.reason)
    if not blocked.remedy:
        return told
    return (*told, *say.line("table.remedy", remedy=blocked.remedy))


def _step(
    plan: Plan, step: Step, earliest: float | None, lost: float | None, say: Phrases
) -> Iterator[Block]:
    if step.action is Action.WAIT:
        if leads(step, plan.steps):
            yield Callout(Tone.NOTE, say.line("step.wait_on", time=when(earliest)))
            return
        hours, setting = duration(step.wait_hours), step.setting or ""
        line = say.line("step.wait", time=when(earliest), hours=hours, setting=setting)
        yield Callout(Tone.NOTE, (*line, " ", *say.line("step.wait_short")))
        return
    if step.sql is None:
        yield Callout(Tone.WARNING, say.line("step.by_hand"))
        yield from _told(step)
        return
    if step.optional:
        yield Paragraph(say.line("step.optional"))
    yield Listing(f"{step.sql};", "sql", say.text("step.run"))
    if visible(step.sql) != step.sql or "\n" in step.sql:
        yield Callout(Tone.WARNING, say.line("table.unshown"))
    yield Facts(list(_facts(step, lost, say)))
    stored = _stored(step)
    if step.protocol_after == step.protocol_before and not stored:
        yield Paragraph(say.line("step.same"))
        return
    yield Listing(check(plan), "sql", say.text("step.check"))
    yield Listing(expected(step.protocol_after, stored), "text", say.text("step.expected"))


def _told(step: Step) -> Iterator[Block]:
    lines: list[Line] = [(loss,) for loss in step.losses]
    lines += [(text,) for text in step.warnings]
    if lines:
        yield Bullets(lines)


def _facts(step: Step, lost: float | None, say: Phrases) -> Iterator[tuple[str, Line]]:
    if step.operations:
        least, most = step.commits
        count = f"{most}" if least == most else f"{least} – {most}"
        yield say.text("step.commits"), (f"{count}: {runs(step.operations)}",)
    if step.rewrites.which is not Rewrite.NONE:
        yield say.text("step.rewrites"), _rewrites(step, say)
    if lost is not None:
        yield say.text("step.history"), say.line("step.history_lost", time=when(lost))
    if step.expects is not None:
        yield say.text("step.answers"), say.line("step.answers_error", error=step.expects)
    for loss in step.losses:
        yield say.text("step.loses"), (loss,)
    undo: Line = (Code(step.undo),) if step.undo else (say.text("step.no_undo"),)
    if step.undo and not step.reversible:
        partly = say.text("step.undo_partly")
        undo = (*undo, f" ({partly})")
    yield say.text("step.undo"), undo


def _rewrites(step: Step, say: Phrases) -> Line:
    which = say.text(f"rewrites.{step.rewrites.which}")
    files, total = step.rewrites.files, step.rewrites.bytes
    if files is None or total is None:
        return say.line("step.rewrites_unknown", which=which)
    return say.line("step.rewrites_files", which=which, files=files, bytes=size(total))


def check(plan: Plan) -> str:
    """The statement that shows a table's protocol."""
    return f"SHOW TBLPROPERTIES {plan.sql_name};"


def _stored(step: Step) -> Mapping[str, str]:
    """The properties that a step sets, and that the table then has; those of the protocol apart."""
    if step.action is not Action.SET or step.sql is None:
        return {}
    return {
        key: value
        for statement in (parsed.statement for parsed in parse(step.sql))
        if isinstance(statement, SetProperties)
        for key, value in statement.properties.items()
        if not about_protocol(key)
    }


def expected(protocol: Protocol, properties: Mapping[str, str]) -> str:
    """What `check` answers on a table of that protocol with those properties, among others."""
    rows = [
        ("delta.minReaderVersion", str(protocol.min_reader_version)),
        ("delta.minWriterVersion", str(protocol.min_writer_version)),
    ]
    listed = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    rows += [(f"delta.feature.{name}", "supported") for name in sorted(listed)]
    rows += sorted(properties.items())
    width = max(len(key) for key, _ in rows)
    return "\n".join(f"{key.ljust(width)}  {value}" for key, value in rows)


def when(seconds: float | None) -> str:
    """A time as people write it into a calendar."""
    return (stamp(seconds) or "").replace("T", " ").replace("Z", " UTC")
