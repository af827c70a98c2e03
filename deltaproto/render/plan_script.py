"""Plans as SQL to copy, with comments."""

from __future__ import annotations

import re
from typing import IO

from deltaproto.planning.impact import is_better, is_worse
from deltaproto.planning.plan import Plan, Step, plan_id, stays_violated_line
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.statement import Action
from deltaproto.render.interface import escape_control_chars, stamp
from deltaproto.render.plan_json import step_times
from deltaproto.render.plan_words import cost_text, rewrites_text, wait_text
from deltaproto.render.terminal import run_length, single_line
from deltaproto.sql.quoting import SUBSTITUTION, has_variable


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
        feature = f"{blocked.feature}: " if blocked.feature else ""
        comment(f"blocked: {feature}{blocked.reason}; {blocked.remedy}")
    for unmet in plan.unmet:
        comment(stays_violated_line(unmet, remedy=True))
    if plan.steps:
        comment(f"cost: {cost_text(plan.cost, plan.steps)}")
    for change in plan.clients:
        if is_better(change) or is_worse(change):
            cause = f"because of {', '.join(change.because)}" if change.because else change.reason
            verdicts = f"{change.before} -> {change.after}"
            text = f"client: {change.client} {change.access} {verdicts}"
            comment(f"{text}, {cause}" if cause else text)
    if not (plan.steps or plan.blocked or plan.unmet):
        comment("nothing to do")
    if any(step.sql is not None and has_variable(step.sql) for step in plan.steps):
        file.write(f"SET {SUBSTITUTION}=false;\n")
    times = step_times(plan.steps, now)
    no_return = plan.point_of_no_return
    for step, (earliest, _) in zip(plan.steps, times, strict=True):
        file.write("\n")
        if step.id == no_return:
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

    Terminals and CI systems interpret the beginning of a line. Only a
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
