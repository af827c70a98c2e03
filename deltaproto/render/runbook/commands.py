"""The chapter of commands: each plan's statements in order, with a check after each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.plan import Blocked, Plan, Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.predict.set_properties import is_protocol_property
from deltaproto.planning.statement import Action, SetProperties
from deltaproto.protocol.protocol import Protocol
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Code,
    CodeBlock,
    Details,
    FactList,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.plan_script import is_plain
from deltaproto.render.plan_words import size
from deltaproto.render.runbook.book import Book, RunbookEntry, is_leading_wait, reenabling_causes
from deltaproto.render.runbook.groups import Group
from deltaproto.render.runbook.overview import applying, concurrency, of_chapter, passed_gates
from deltaproto.render.runbook.phrases import Phrases, when
from deltaproto.render.runbook.shell import script
from deltaproto.render.terminal import duration, run_length, single_line, width_of


def commands(book: Book, say: Phrases) -> Section:
    """Return all plans, in the order of the command line."""
    return Section("commands", say.text("commands"), list(_commands(book, say)))


def _commands(book: Book, say: Phrases) -> Iterator[Block]:
    by_hand: dict[str, list[RunbookEntry]] = {}
    for entry in book.changing:
        if entry.refused is not None:
            by_hand.setdefault(entry.refused.message, []).append(entry)
    for why, entries in by_hand.items():
        line = say.line("commands.refused", table=book.names(entries, say), why=why)
        yield Callout(Tone.DANGER, line)
    if book.applicable:
        gated = [entry for entry in book.applicable if entry.gates and entry.blocking]
        if gated:
            tables, chapter = book.names(gated, say), say.text("summary")
            line = say.line(
                "commands.gated", command=applying(book), tables=tables, chapter=chapter
            )
            yield Callout(Tone.DANGER, line)
        yield Paragraph(say.line("commands.apply"))
        yield CodeBlock(book.apply(), "shell")
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
    for number, group in enumerate(book.groups, 1):
        title = chapter_title(group, say)
        yield Section(f"table-{number}", title, list(steps_of(book, group, number, say)))


def chapter_title(group: Group[RunbookEntry], say: Phrases) -> str:
    """Return the table of a chapter, or the number of tables and the goal."""
    count = len(group.entries)
    if count == 1:
        return group.plan.table
    return say.text("table.many", tables=say.count("tables", count), goal=group.plan.goal_text)


def steps_of(book: Book, group: Group[RunbookEntry], number: int, say: Phrases) -> Iterator[Block]:
    """Yield the goal of a group of similar plans, and each step with its check.

    Args:
        number: makes the anchors unique.
    """
    entry, plan = group.first, group.plan
    for blocked in plan.blocked:
        what = blocked.feature or say.text("table.goal")
        line = say.line("table.blocked", what=what, reason=blocked.reason)
        yield Callout(Tone.DANGER, _with_remedy(line, blocked, say))
    for unmet in plan.unmet:
        line = say.line("table.unmet", reason=unmet.reason)
        yield Callout(Tone.WARNING, _with_remedy(line, unmet, say))
    yield from of_chapter(book, group, say)
    many = len(group.entries) > 1
    if many:
        yield _tables(group, say)
        if plan != entry.plan:
            yield Paragraph(say.line("table.each"))
    one: list[tuple[str, Line]] = [
        (say.text("table.location"), (Code(plan.location),)),
        (say.text("table.plan"), (Code(entry.planned.id),)),
        (say.text("table.version"), (str(plan.fingerprint.version),)),
    ]
    gates = passed_gates(entry, say)
    facts: list[tuple[str, Line]] = [
        (say.text("table.goal"), (plan.goal_text,)),
        *([] if many else one),
        (say.text("table.before"), (plan.protocol_before.in_words,)),
        (say.text("table.after"), (plan.protocol_after.in_words,)),
        *concurrency(plan, say),
    ]
    if gates is not None:
        facts.append((say.text("gates.passed"), gates))
    yield FactList(facts)
    if not plan.complete:
        yield Callout(Tone.WARNING, say.line("summary.incomplete"))
    if not (plan.steps or plan.blocked or plan.unmet):
        yield Callout(Tone.GOOD, say.line("table.nothing"))
    texts = {text for name in plan.features_removed for text in reenabling_causes(name)}
    warnings = [text for text in plan.warnings if text not in texts]
    if warnings:
        yield Section(
            f"table-{number}-warnings",
            say.text("table.warnings"),
            [Bullets([(text,) for text in warnings])],
        )
    if plan.steps:
        yield Paragraph(say.line("commands.versions", engine=str(plan.engine)))
    times = book.times(entry)
    no_return = plan.point_of_no_return
    for step, (earliest, lost) in zip(plan.steps, times, strict=True):
        if step.id == no_return:
            yield Callout(Tone.DANGER, say.line("step.return"))
        title = say.text("step.title", id=step.id, why=step.why)
        yield Section(
            f"table-{number}-{step.id}", title, list(_step(group, step, earliest, lost, say))
        )
    if plan.steps:
        plans = [each.plan for each in group.entries]
        yield Details(say.text("pyspark"), [CodeBlock(script(plans, times, say), "python")])


def _tables(group: Group[RunbookEntry], say: Phrases) -> TableBlock:
    """Return the tables of a chapter and the facts that differ between them."""
    heads = ["table", "location", "plan", "version"]
    sizes = [_sizes(entry.plan, say) for entry in group.entries]
    if any(sizes):
        heads.append("rewrites")
    rows: list[list[Line]] = [
        [
            (entry.name,),
            (Code(entry.plan.location),),
            (Code(entry.planned.id),),
            (str(entry.plan.fingerprint.version),),
            *([(rewritten,)] if any(sizes) else []),
        ]
        for entry, rewritten in zip(group.entries, sizes, strict=True)
    ]
    return TableBlock([say.text(f"head.{head}") for head in heads], rows)


def _sizes(plan: Plan, say: Phrases) -> str:
    found = [
        f"{step.id}: " + say.text("rewrites.each", files=step.rewrites.files, bytes=size(total))
        for step in plan.steps
        if step.rewrites.files is not None and (total := step.rewrites.bytes) is not None
        if step.rewrites.which is not Rewrite.NONE
    ]
    return "; ".join(found)


def _with_remedy(line: Line, blocked: Blocked, say: Phrases) -> Line:
    if not blocked.remedy:
        return line
    return (*line, *say.line("table.remedy", remedy=blocked.remedy))


def _step(
    group: Group[RunbookEntry], step: Step, earliest: float | None, lost: float | None, say: Phrases
) -> Iterator[Block]:
    plan = group.plan
    if step.action is Action.WAIT:
        if is_leading_wait(step, plan.steps):
            yield Callout(Tone.NOTE, say.line("step.wait_on", time=when(earliest)))
            return
        hours, setting = duration(step.wait_hours), step.setting or ""
        line = say.line("step.wait", time=when(earliest), hours=hours, setting=setting)
        yield Callout(Tone.NOTE, (*line, " ", *say.line("step.wait_short")))
        return
    if step.sql is None:
        yield Callout(Tone.WARNING, say.line("step.by_hand"))
        yield from _cautions(step)
        return
    if step.optional:
        yield Paragraph(say.line("step.optional"))
    number = plan.steps.index(step)
    each = [(entry.plan, entry.plan.steps[number]) for entry in group.entries]
    copied = [is_plain(one_plan, one) for one_plan, one in each]
    statements = [
        (one.sql if plain else single_line(one.sql)) + ";"
        for (_, one), plain in zip(each, copied, strict=True)
        if one.sql is not None
    ]
    yield CodeBlock("\n".join(statements), "sql", say.text("step.run"))
    if not all(copied):
        yield Callout(Tone.WARNING, say.line("table.unshown"))
    if step.warnings:
        yield Bullets([(text,) for text in step.warnings])
    many = len(each) > 1
    yield FactList(list(_facts(step, lost, say, many=many)))
    undone = [one.undo for _, one in each if one.undo is not None]
    if many and undone:
        partly = "" if step.reversible else f" ({say.text('step.undo_partly')})"
        yield CodeBlock(
            "\n".join(f"{single_line(each)};" for each in undone),
            "sql",
            say.text("step.undo") + partly,
        )
    stored = _stored(step)
    if step.protocol_after == step.protocol_before and not stored:
        yield Paragraph(say.line("step.same"))
        return
    yield CodeBlock("\n".join(check(one) for one, _ in each), "sql", say.text("step.check"))
    yield CodeBlock(expected(step.protocol_after, stored), "text", say.text("step.expected"))


def _cautions(step: Step) -> Iterator[Block]:
    lines: list[Line] = [(loss,) for loss in step.losses]
    lines += [(text,) for text in step.warnings]
    if lines:
        yield Bullets(lines)


def _facts(
    step: Step, lost: float | None, say: Phrases, *, many: bool
) -> Iterator[tuple[str, Line]]:
    if step.operations:
        least, most = step.commits
        count = f"{most}" if least == most else f"{least} – {most}"
        yield say.text("step.commits"), (f"{count}: {run_length(step.operations)}",)
    if step.rewrites.which is not Rewrite.NONE:
        yield say.text("step.rewrites"), _rewrites(step, say, many=many)
    if lost is not None:
        yield say.text("step.history"), say.line("step.history_lost", time=when(lost))
    if step.expects is not None:
        yield say.text("step.answers"), say.line("step.answers_error", error=step.expects)
    for loss in step.losses:
        yield say.text("step.loses"), (loss,)
    if many and step.undo:
        return
    undo: Line = (Code(step.undo),) if step.undo else (say.text("step.no_undo"),)
    if step.undo and not step.reversible:
        partly = say.text("step.undo_partly")
        undo = (*undo, f" ({partly})")
    yield say.text("step.undo"), undo


def _rewrites(step: Step, say: Phrases, *, many: bool) -> Line:
    which = say.text(f"rewrites.{step.rewrites.which}")
    if many:
        return (which,)
    files, total = step.rewrites.files, step.rewrites.bytes
    if files is None or total is None:
        return say.line("step.rewrites_unknown", which=which)
    return say.line("step.rewrites_files", which=which, files=files, bytes=size(total))


def check(plan: Plan) -> str:
    """Return the statement that shows a table's protocol."""
    return f"SHOW TBLPROPERTIES {single_line(plan.sql_name)};"


def _stored(step: Step) -> Mapping[str, str]:
    """Return the properties that a step sets in the table, without the protocol's own."""
    if step.action is not Action.SET or step.sql is None:
        return {}
    return {
        key: value
        for statement in (parsed.statement for parsed in parse_script(step.sql))
        if isinstance(statement, SetProperties)
        for key, value in statement.properties.items()
        if not is_protocol_property(key)
    }


def expected(protocol: Protocol, properties: Mapping[str, str]) -> str:
    """Return part of the output of `check` on a table with that protocol and those properties."""
    rows = [
        ("delta.minReaderVersion", str(protocol.min_reader_version)),
        ("delta.minWriterVersion", str(protocol.min_writer_version)),
    ]
    listed = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    rows += [(f"delta.feature.{name}", "supported") for name in sorted(listed)]
    rows += sorted(properties.items())
    shown = [(single_line(key), single_line(value)) for key, value in rows]
    width = max(width_of(key) for key, _ in shown)
    return "\n".join(f"{key}{' ' * (width - width_of(key))}  {value}" for key, value in shown)
