"""Plans as one document, for Markdown and HTML: tables with equal plans share a section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deltaproto.counts import counted
from deltaproto.errors import TableError
from deltaproto.planning.plan import Alternative, Plan, plan_id
from deltaproto.render.document.blocks import (
    Block,
    Code,
    CodeBlock,
    Details,
    Document,
    Line,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.named_tables import NamedCount
from deltaproto.render.plan_json import step_times
from deltaproto.render.plan_section import plan_blocks, summary_blocks, unplanned_section
from deltaproto.render.plan_words import Summary
from deltaproto.render.runbook.groups import Group, kind, without_names
from deltaproto.render.runbook.phrases import phrases, when
from deltaproto.render.runbook.shell import script

_TABLE = "<table>"


class _Entry(NamedTuple):
    plan: Plan


def plan_document(
    plans: Sequence[Plan],
    unplanned: Sequence[tuple[str, TableError]],
    summary: Summary,
    now: float,
) -> Document:
    """Return the effects of the plans, one section for all tables with equal plans.

    Args:
        unplanned: tables without a plan, with the error.
        now: seconds since the epoch, from which waits are counted.
    """
    engines = ", ".join(dict.fromkeys(str(plan.engine) for plan in plans)) or "no engine"
    count = counted(len(plans) + len(unplanned), "table")
    title = f"Plans for {count}" if unplanned or len(plans) != 1 else f"Plan for {plans[0].table}"
    return Document(
        title,
        (f"For {engines}; waits counted from {when(now)}.",),
        list(_blocks(plans, unplanned, summary, now)),
    )


def _blocks(
    plans: Sequence[Plan],
    unplanned: Sequence[tuple[str, TableError]],
    summary: Summary,
    now: float,
) -> Iterator[Block]:
    if summary.tables > 1:
        yield Section("summary", "Summary", list(summary_blocks(summary)))
    if len(unplanned) == 1:
        yield unplanned_section(*unplanned[0])
    elif unplanned:
        yield _unplanned_tables(unplanned)
    for number, group in enumerate(sorted(_groups(plans), key=_order), 1):
        count, plan = len(group.entries), _shared(group)
        title = f"{counted(count, 'table')}: {plan.goal_text}" if count > 1 else plan.table
        blocks = [_tables(group), *plan_blocks(plan, now)]
        if plan.steps:
            times = step_times(plan.steps, now)
            text = script([entry.plan for entry in group.entries], times, phrases("en"))
            blocks.append(Details("PySpark", [CodeBlock(text, "python")]))
        yield Section(f"table-{number}", title, blocks)


def _unplanned_tables(unplanned: Sequence[tuple[str, TableError]]) -> Section:
    """Return the tables without a plan: one row for each error, and all tables below."""
    groups: dict[str, NamedCount] = {}
    for table, error in unplanned:
        groups.setdefault(_error_text(error), NamedCount(error.hint or "")).add(table)
    ordered = sorted(groups.items(), key=lambda group: -group[1].tables)
    rows: list[list[Line]] = [
        [(f"{found.tables:,}",), (text,), (found.hint,), (found.shown(0),)]
        for text, found in ordered
    ]
    each: list[list[Line]] = [[(Code(table),), (_error_text(error),)] for table, error in unplanned]
    blocks: list[Block] = [
        TableBlock(("Tables", "Error", "Hint", "Names"), rows),
        Details("All of these tables", [TableBlock(("Table", "Error"), each)]),
    ]
    title = f"{counted(len(unplanned), 'table')} not planned"
    return Section("unplanned", title, blocks, Tone.DANGER)


def _error_text(error: TableError) -> str:
    return f"{error.code}: {error.message}"


def _order(group: Group[_Entry]) -> tuple[bool, int]:
    """Sort plans with steps before those without, and then the largest group first."""
    return not group.plan.steps, -len(group.entries)


def _groups(plans: Sequence[Plan]) -> Iterator[Group[_Entry]]:
    """Yield groups of plans that differ only in their tables."""
    found: dict[str, list[_Entry]] = {}
    for plan in plans:
        ways: list[Plan | Alternative] = [plan, *plan.alternatives]
        costs = [[list(way.cost), [list(step.rewrites) for step in way.steps]] for way in ways]
        found.setdefault(kind(plan, costs), []).append(_Entry(plan))
    return (Group(tuple(entries)) for entries in found.values())


def _shared(group: Group[_Entry]) -> Plan:
    """Return the plan of a group; the statements of several tables are on `<table>`."""
    plan = group.plan
    if len(group.entries) == 1:
        return plan

    def shared(text: str | None) -> str | None:
        return text and without_names(text, plan, lambda _: _TABLE)

    steps = (step._replace(sql=shared(step.sql), undo=shared(step.undo)) for step in plan.steps)
    return plan._replace(steps=tuple(steps))


def _tables(group: Group[_Entry]) -> TableBlock:
    rows: list[list[Line]] = [
        [
            (Code(plan.table),),
            (Code(plan.location),),
            (str(plan.fingerprint.version),),
            (Code(plan_id(plan)),),
        ]
        for (plan,) in group.entries
    ]
    return TableBlock(("Table", "Location", "Version", "Plan"), rows)
