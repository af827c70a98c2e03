"""Plans as a document, with the same content in Markdown and HTML and the chapters of a runbook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deltaproto.execution.plan_file import FailedPlan, LoadedPlan
from deltaproto.planning.checksum import plan_id
from deltaproto.planning.plan import Alternative, Blocked, Plan
from deltaproto.render.document import (
    Block,
    Bullets,
    Callout,
    Code,
    CodeBlock,
    Document,
    Line,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.runbook.before import stop, streams
from deltaproto.render.runbook.book import Book, RunbookEntry
from deltaproto.render.runbook.commands import chapter_title, steps_of
from deltaproto.render.runbook.groups import Group
from deltaproto.render.runbook.overview import clients, summary
from deltaproto.render.runbook.phrases import Phrases, phrases
from deltaproto.render.runbook.times import when
from deltaproto.render.terminal import single_line


def plan_document(
    plans: Sequence[Plan], unplanned: Sequence[tuple[str, str]], now: float
) -> Document:
    """Return the effects of the plans, who is affected, and the alternatives.

    Args:
        unplanned: tables without a plan, with the error.
        now: seconds since the epoch, from which waits are counted.
    """
    say = phrases("en")
    book = Book(
        tuple(RunbookEntry(LoadedPlan(plan_id(plan), plan, "", ())) for plan in plans),
        tuple(FailedPlan(table, "", message) for table, message in unplanned),
        (),
        now,
        now,
    )
    names = [entry.plan.table for entry in book.entries]
    title = f"Plan for {names[0]}" if len(names) == 1 else f"Plans for {len(names):,} tables"
    engines = ", ".join(dict.fromkeys(str(plan.engine) for plan in plans))
    sections = [summary(book, say), clients(book, say)]
    if book.changing:
        sections.append(Section("stop", "Whom it hits", list(stop(book.warned, say))))
        sections.append(Section("streams", "Streams", list(streams(book.warned, say))))
    for number, group in enumerate(book.groups, 1):
        title = chapter_title(group, say)
        sections.append(Section(f"table-{number}", title, list(_plan(book, group, number, say))))
    return Document(title, (f"For {engines}; waits counted from {when(now)}.",), sections)


def _plan(book: Book, group: Group[RunbookEntry], number: int, say: Phrases) -> Iterator[Block]:
    plan = group.plan
    if not plan.complete:
        yield Callout(Tone.DANGER, ("NOT COMPLETE: the answer may miss something.",))
    yield from steps_of(book, group, number, say)
    if plan.alternatives:
        blocks = list(_alternatives(plan))
        yield Section(f"table-{number}-alternatives", "Alternatives", blocks)
    if plan.kept:
        lines = [_kept(each) for each in plan.kept]
        yield Section(f"table-{number}-kept", "What stays", [Bullets(lines)])


def _alternatives(plan: Plan) -> Iterator[Block]:
    yield TableBlock(
        ("Name", "What", "Commits at most", "Waits", "History", "Ends with"),
        [_row(each) for each in plan.alternatives],
    )
    for each in plan.alternatives:
        if not each.reaches_goal:
            script = "\n".join(
                f"{single_line(step.sql)};" if step.sql else "-- wait" for step in each.steps
            )
            yield CodeBlock(script, "sql", each.name)


def _row(each: Alternative) -> list[Line]:
    return [
        (Code(each.name),),
        (each.text,),
        (str(each.cost.commits),),
        (str(each.cost.waits),),
        ("truncated" if each.cost.history else "kept",),
        (each.protocol_after.in_words,),
    ]


def _kept(each: Blocked) -> Line:
    remedy = f" Remedy: {each.remedy}" if each.remedy else ""
    name: Line = (Code(each.feature), ": ") if each.feature else ()
    return (*name, each.reason + "." * bool(remedy) + remedy)
