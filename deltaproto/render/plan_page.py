"""Plans as one document, for Markdown and HTML: tables with equal plans share a section."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

from deltaproto.errors import TableError
from deltaproto.planning.impact import is_better, is_worse
from deltaproto.planning.plan import Alternative, Plan, Step, plan_id
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.statement import Action
from deltaproto.render.document import (
    Block,
    Code,
    CodeBlock,
    Details,
    Document,
    Line,
    Section,
    TableBlock,
)
from deltaproto.render.interface import escape_control_chars
from deltaproto.render.plan_json import moments, stamp
from deltaproto.render.plan_section import plan_blocks, summary_blocks, unplanned_section
from deltaproto.render.plan_words import Summary, cost_text, rewrites_text, wait_text
from deltaproto.render.runbook.groups import Group, kind, without_names
from deltaproto.render.runbook.phrases import phrases, when
from deltaproto.render.runbook.shell import script
from deltaproto.render.terminal import counted, run_length, single_line
from deltaproto.sql.quoting import SUBSTITUTION, has_variable

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
    count = counted(len(plans), "table")
    title = f"Plan for {plans[0].table}" if len(plans) == 1 else f"Plans for {count}"
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
    for table, error in unplanned:
        yield unplanned_section(table, error)
    for number, group in enumerate(_groups(plans), 1):
        count, plan = len(group.entries), _shared(group)
        title = f"{count:,} tables: {plan.goal_text}" if count > 1 else plan.table
        blocks = [_tables(group), *plan_blocks(plan, now)]
        if plan.steps:
            times = moments(plan.steps, now)
            text = script([entry.plan for entry in group.entries], times, phrases("en"))
            blocks.append(Details("PySpark", [CodeBlock(text, "python")]))
        yield Section(f"table-{number}", title, blocks)


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


def write_script(plan: Plan, file: IO[str], now: float) -> None:
    """Write the statements of one plan; everything else is a comment."""

    def comment(text: str) -> None:
        # A line feed in a name must not end the comment.
        file.write(f"-- {single_line(text)}\n")

    comment(f"plan {plan_id(plan)} for {plan.table}")
    comment(f"goal: {plan.goal_text}")
    comment(f"before: {plan.protocol_before.in_words}")
    comment(f"after:  {plan.protocol_after.in_words}")
    for warning in plan.warnings:
        comment(f"warning: {warning}")
    for blocked in plan.blocked:
        comment(f"blocked: {blocked.feature or ''} {blocked.reason}; {blocked.remedy}")
    if plan.steps:
        comment(f"cost: {cost_text(plan.cost, plan.steps)}")
    for change in plan.clients:
        if is_better(change) or is_worse(change):
            because = f", because of {', '.join(change.because)}" if change.because else ""
            gains = f"{change.before} -> {change.after}"
            comment(f"client: {change.client} {change.access} {gains}{because}")
    if not plan.steps and not plan.blocked:
        comment("nothing to do")
    if any(step.sql is not None and has_variable(step.sql) for step in plan.steps):
        file.write(f"SET {SUBSTITUTION}=false;\n")
    times = moments(plan.steps, now)
    for step, (earliest, _) in zip(plan.steps, times, strict=True):
        file.write("\n")
        if step.id == plan.point_of_no_return:
            comment("point of no return")
        comment(f"{step.id}: {step.why}")
        if step.sql is None:
            comment(wait_text(step, stamp(earliest)))
            continue
        comment(f"commits: {run_length(step.operations)}")
        if step.rewrites.which is not Rewrite.NONE:
            comment(f"rewrites: {rewrites_text(step)}")
        comment(f"then: {step.protocol_after.in_words}")
        if step.expects is not None:
            comment(f"expected error: {step.expects}")
        if step.optional:
            comment("only if the previous call did not succeed")
        if not is_plain(plan, step):
            comment("omitted: the statement contains control characters; use deltaproto apply")
            continue
        file.write(f"{step.sql};\n")
        if step.undo is not None:
            comment(f"undo: {step.undo}")
    file.write("\n")


def is_complete(plan: Plan) -> bool:
    """Return True if the script contains every statement of the plan."""
    return all(is_plain(plan, step) for step in plan.steps)


def is_plain(plan: Plan, step: Step) -> bool:
    """Return True if a statement can be shown verbatim, for copying.

    Scripts are read by terminals and CI systems, which interpret what begins a line. Only a
    statement typed by the user may contain line feeds that do not come from a name.
    """
    if step.sql is None or single_line(step.sql) == step.sql:
        return True
    own = step.action is Action.SQL and "\n" not in plan.table
    return (
        own
        and escape_control_chars(step.sql) == step.sql
        and not re.search(r"(?m)^\s*::", step.sql)
    )
