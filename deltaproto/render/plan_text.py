"""Plans as text for people: feature diff, steps, impact, warnings last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from deltaproto.clients.verdict import Verdict
from deltaproto.errors import TableError
from deltaproto.planning.impact import better, worse
from deltaproto.planning.plan import Blocked, ClientChange, Plan, Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol
from deltaproto.render.plan_concurrency import concurrency_lines
from deltaproto.render.plan_impact import hits
from deltaproto.render.plan_json import moments, stamp
from deltaproto.render.plan_summary import Summary, print_summary
from deltaproto.render.plan_words import cost_text, rewrites_text, wait_text
from deltaproto.render.terminal import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    LOUD,
    RED,
    YELLOW,
    Painter,
    run_length,
    truncate_list,
)

_SHOWN_SAME = 8
_SHOWN_BECAUSE = 4
_VERDICTS = {Verdict.OK: GREEN, Verdict.REFUSED: RED, Verdict.UNKNOWN: YELLOW, Verdict.WRONG: LOUD}


class PlanText:
    """Prints one plan after the other, and a summary of many."""

    def __init__(self, file: IO[str], now: float, *, color: bool) -> None:
        self._out = Painter(file, color=color)
        self._now = now

    def add(self, plan: Plan) -> None:
        """One plan."""
        out = self._out
        out.line(out.paint(plan.table, BOLD))
        out.folded(plan.goal_text, first="  goal      ")
        out.line(f"  engine    {plan.engine}")
        if not plan.complete:
            out.line("  " + out.paint("NOT COMPLETE: the answer may miss something", YELLOW))
        self._features(plan)
        if plan.blocked:
            self._blocks("blocked", plan.blocked, LOUD)
        elif not plan.steps:
            out.line()
            out.line("  " + out.paint("Nothing to do: the table is as asked for.", GREEN))
        if plan.steps:
            out.line()
            out.folded(cost_text(plan.cost, plan.steps), first="  cost      ")
            self._steps(plan)
        self._concurrency(plan)
        self._clients(plan.clients)
        self._alternatives(plan)
        if plan.kept:
            self._blocks("stays", plan.kept, DIM)
        if plan.warnings:
            out.line()
            out.line("  " + out.paint("warnings", BOLD))
            for warning in plan.warnings:
                out.folded(warning, YELLOW, first="    ! ")
        out.line()

    def add_error(self, table: str, error: TableError) -> None:
        """A table that could not be planned."""
        out = self._out
        out.line(out.paint(table, BOLD))
        out.folded(f"{error.code}: {error.message}", LOUD, first="  ")
        if error.hint:
            out.folded(error.hint, first="  hint: ")
        out.line()

    def close(self, summary: Summary) -> None:
        """The summary, when there were several tables."""
        if summary.tables > 1:
            print_summary(summary, self._out)

    def _features(self, plan: Plan) -> None:
        out = self._out
        before, after = plan.protocol_before, plan.protocol_after
        gone = sorted(before.supported - after.supported)
        new = sorted(after.supported - before.supported)
        same = sorted(before.supported & after.supported)
        out.line()
        out.line("  " + out.paint("features", BOLD))
        for sign, names, code in (("-", gone, RED), ("+", new, GREEN)):
            for name in names:
                out.line("    " + out.paint(f"{sign} {name}", code) + f"  {_kind(name)}")
        if same:
            more = f" and {len(same) - _SHOWN_SAME} more" if len(same) > _SHOWN_SAME else ""
            out.folded(", ".join(same[:_SHOWN_SAME]) + more, DIM, first="      ")
        arrow = f"{before} -> {after}" if before != after else f"{before}, unchanged"
        out.line(f"    versions {arrow}")

    def _steps(self, plan: Plan) -> None:
        out = self._out
        out.line()
        out.line("  " + out.paint("steps", BOLD))
        for step, (earliest, lost) in zip(plan.steps, moments(plan.steps, self._now), strict=True):
            if step.id == plan.point_of_no_return:
                out.line("    " + out.paint("--- point of no return ---", LOUD))
            self._step(step, earliest, lost)
        out.line()
        out.line("  " + out.paint("impact", BOLD))
        for title, rows in hits(plan):
            out.line(f"    {title}")
            width = max(len(label) for label, _ in rows)
            for label, text in rows:
                out.folded(text, first=f"      {label.ljust(width)}  ")

    def _step(self, step: Step, earliest: float | None, lost: float | None) -> None:
        out = self._out
        maybe = " (if the earlier call did not succeed)" if step.optional else ""
        out.folded(step.why + maybe, first=f"    {out.paint(step.id, CYAN)} ", rest=" " * 8)
        if step.sql is not None:
            out.line("        " + out.paint(step.sql + ";", BOLD))
        for label, text in _details(step, earliest, lost):
            out.folded(text, first=f"        {label:<10}")
        if step.undo is not None:
            # To be copied, and so on one line.
            kept = "" if lost is None else "  -- what was deleted stays deleted"
            out.line("        undo      " + out.paint(step.undo + kept, DIM))
        for loss in step.losses:
            out.folded(f"for good: {loss}", RED, first="        ")

    def _concurrency(self, plan: Plan) -> None:
        if plan.concurrency is None:
            return
        self._out.line()
        self._out.line("  " + self._out.paint("concurrency", BOLD))
        for label, text in concurrency_lines(plan.concurrency):
            self._out.folded(text, first=f"    {label:<11}  ")

    def _clients(self, changes: tuple[ClientChange, ...]) -> None:
        shown = [c for c in changes if worse(c) or better(c) or c.after is not Verdict.OK]
        if not changes:
            return
        out = self._out
        out.line()
        out.line("  " + out.paint("clients", BOLD))
        width = max((len(change.client) for change in shown), default=0)
        for change in shown:
            arrow = out.paint(str(change.after), _VERDICTS[change.after])
            if change.before is not change.after:
                arrow = f"{change.before} -> {arrow}"
            because = f"  {truncate_list(change.because, _SHOWN_BECAUSE)}" if change.because else ""
            label = f" ({change.label})" if change.label else ""
            out.line(
                f"    {out.paint(change.client.ljust(width))}{out.paint(label)}  "
                f"{change.access:<8} {arrow}{out.paint(because)}"
            )
        fine = len(changes) - len(shown)
        if fine:
            out.line(f"    {fine} unchanged and ok")

    def _alternatives(self, plan: Plan) -> None:
        if not plan.alternatives:
            return
        out = self._out
        out.line()
        out.line("  " + out.paint("alternatives", BOLD))
        for each in plan.alternatives:
            out.folded(f"{each.name}: {each.text}", first="    ")
            text = f"{cost_text(each.cost, each.steps)}; ends with {each.protocol_after.in_words}"
            out.folded(text, DIM, first="      ")
            if not each.reaches_goal:
                for step in each.steps:
                    out.line("      " + out.paint(f"{step.sql or 'wait'}", DIM))

    def _blocks(self, title: str, entries: Iterable[Blocked], code: str) -> None:
        out = self._out
        out.line()
        out.line("  " + out.paint(title, BOLD))
        alike: dict[tuple[str, str], list[str]] = {}
        for each in entries:
            alike.setdefault((each.reason, each.remedy), []).append(each.feature or "")
        for (reason, remedy), features in alike.items():
            names = ", ".join(filter(None, features))
            out.folded(f"{names}: {reason}" if names else reason, code, first="    ")
            if remedy:
                out.folded(remedy, first="      remedy: ")


def _details(step: Step, earliest: float | None, lost: float | None) -> Iterable[tuple[str, str]]:
    if step.wait_hours:
        yield "wait", wait_text(step, stamp(earliest))
        return
    least, most = step.commits
    count = f"{most}" if least == most else f"{least} to {most}"
    if step.operations:
        yield "commits", f"{count}: {run_length(step.operations)}"
    if step.protocol_after != step.protocol_before:
        yield "protocol", _difference(step.protocol_before, step.protocol_after)
    if step.rewrites.which is not Rewrite.NONE:
        yield "rewrites", rewrites_text(step)
    if earliest is not None:
        yield "earliest", str(stamp(earliest))
    if lost is not None:
        yield "history", f"older than {stamp(lost)} is deleted"
    if step.expects is not None:
        yield "answers", f"{step.expects}, as it should"


def _difference(before: Protocol, after: Protocol) -> str:
    signs = [f"-{name}" for name in sorted(before.supported - after.supported)]
    signs += [f"+{name}" for name in sorted(after.supported - before.supported)]
    versions = f"{before} -> {after}" if str(before) != str(after) else f"still {after}"
    return f"{' '.join(signs) or 'the same features'}  {versions}"


def _kind(name: str) -> str:
    return str(feature_catalog.record(name).kind)
