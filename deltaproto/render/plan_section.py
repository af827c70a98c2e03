"""One plan as a short section of a document: its changes, its steps, and who is affected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaproto.counts import counted, first_names
from deltaproto.errors import TableError
from deltaproto.planning.impact import is_better, is_worse
from deltaproto.planning.plan import Alternative, Blocked, ClientChange, Plan, Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol
from deltaproto.render.check_section import VERDICT_TONES
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Code,
    Diff,
    FactList,
    Line,
    Paragraph,
    Section,
    Strong,
    TableBlock,
    Tone,
    listed,
)
from deltaproto.render.findings import problem_block
from deltaproto.render.interface import stamp
from deltaproto.render.plan_json import step_times
from deltaproto.render.plan_words import (
    Summary,
    affected,
    concurrency_lines,
    cost_text,
    losses_text,
    rewrites_text,
    wait_text,
)
from deltaproto.render.terminal import duration, largest_first, run_length

_SHOWN_SAME = 8
_SHOWN_BECAUSE = 4
_SHOWN_REASONS = 10


def plan_section(plan: Plan, now: float) -> Section:
    """Return the effects of a plan on one table.

    Args:
        now: seconds since the epoch, from which waits are counted.
    """
    return Section("", plan.table, list(plan_blocks(plan, now)))


def unplanned_section(table: str, error: TableError) -> Section:
    """Return the reason why a table has no plan."""
    problem = problem_block(error, complete=False)
    return Section("", table, [] if problem is None else [problem])


def summary_blocks(summary: Summary) -> Iterator[Block]:
    """Yield the counts over many plans."""
    totals = (
        f"{counted(summary.tables, 'table')}: {summary.with_steps:,} with steps, "
        f"{summary.nothing_to_do:,} with nothing to do, "
        + (f"{summary.stay_violated:,} still in violation, " if summary.stay_violated else "")
        + f"{summary.blocked:,} blocked, {summary.unreadable:,} unreadable"
    )
    yield Paragraph((Strong(totals),))
    lines: list[Line] = []
    if summary.with_steps:
        waits = counted(summary.waits, "waits", "wait")
        if summary.waits:
            waits += f", the longest {duration(summary.longest_wait_hours)}"
        parts = (
            counted(summary.rewriting, "rewrites files", "rewrite files"),
            counted(summary.truncating, "deletes history", "delete history"),
            f"{summary.irreversible:,} cannot be reverted",
        )
        commits = counted(summary.commits, "commit")
        lines.append((f"at most {commits}; {', '.join(parts)}; {waits}",))
    if left := summary.leave_violations:
        lines.append((f"{left:,} with steps will still violate the policy afterwards",))
    if summary.saved:
        lines.append(
            (
                f"{summary.saved:,} planned from saved states, without schemas and files: "
                "plan again from the tables, or with --fresh, before you apply the plans",
            )
        )
    for (feature, reason), count in largest_first(summary.reasons, _SHOWN_REASONS):
        named = f"{feature}: " if feature else ""
        lines.append((f"{count:,} blocked: {named}{reason}",))
    more = len(summary.reasons) - _SHOWN_REASONS
    if more > 0:
        lines.append((f"and {counted(more, 'more reason')}; --format json lists all of them",))
    if lines:
        yield Bullets(lines)
    uses: list[list[Line]] = [
        [
            (f"{client} {access}: {counted(count, 'table')}",)
            for (client, access), count in sorted(found.items())
        ]
        for found in (summary.lost, summary.gained)
    ]
    if any(uses):
        yield Diff(uses[0], uses[1], ())
    if summary.wrong:
        wrong = [
            f"{client} {access} ({counted(count, 'table')})"
            for (client, access), count in sorted(summary.wrong.items())
        ]
        text = "After these plans, clients may silently read or write wrong rows"
        yield Callout(Tone.DANGER, (f"{text}: {', '.join(wrong)}.",))


def plan_blocks(plan: Plan, now: float) -> Iterator[Block]:
    """Yield the content of `plan_section`."""
    facts: list[tuple[str, Line]] = [
        ("Goal", (plan.goal_text,)),
        ("Engine", (str(plan.engine),)),
    ]
    if plan.steps:
        facts.append(("Cost", (cost_text(plan.cost, plan.steps),)))
    problem = problem_block(None, complete=plan.complete)
    if problem is not None:
        yield problem
    yield FactList(facts)
    if plan.fixes:
        yield Section("", "Fixes", [Bullets([(text,) for text in plan.fixes])])
    if plan.unmet:
        unnamed = [each._replace(feature=None) for each in plan.unmet]
        yield Section("", "Stays violated", list(_blocked(unnamed, Tone.DANGER)))
    yield Section("", "Features", list(_features(plan.protocol_before, plan.protocol_after)))
    if plan.blocked:
        yield Section("", "Blocked", list(_blocked(plan.blocked, Tone.DANGER)))
    elif not plan.steps:
        to = plan.goal.get("to", {}) if plan.goal.get("kind") == "upgrade" else {}
        reader, writer = plan.protocol_after.versions
        if plan.stays_violated:
            nothing = Callout(Tone.WARNING, ("No statement improves the table's compliance.",))
        elif to and (to["reader"] > reader or to["writer"] > writer):
            nothing = Callout(
                Tone.WARNING, ("No statement reaches these versions: see the warnings.",)
            )
        else:
            done = "Nothing to do: the table already has the requested state."
            nothing = Callout(Tone.GOOD, (done,))
        yield Section("", "Steps", [nothing])
    if plan.steps:
        yield Section("", "Steps", list(_steps(plan, now)))
        impact: list[Block] = [
            Section("", title, [FactList([(name, (text,)) for name, text in rows])])
            for title, rows in affected(plan.steps)
        ]
        if impact:
            yield Section("", "Impact", impact)
    if plan.concurrency is not None:
        lines = concurrency_lines(plan.concurrency)
        facts = [(name, (text,)) for name, text in lines]
        yield Section("", "Concurrency", [FactList(facts)])
    if plan.clients:
        yield Section("", "Clients", list(_clients(plan.clients)))
    if plan.alternatives:
        inner = [block for each in plan.alternatives for block in _alternative(each)]
        yield Section("", "Alternatives", inner)
    if plan.kept:
        yield Section("", "Stays", list(_blocked(plan.kept, None)))
    if plan.warnings:
        yield Section("", "Warnings", [Callout(Tone.WARNING, (text,)) for text in plan.warnings])


def _features(before: Protocol, after: Protocol) -> Iterator[Block]:
    same = sorted(before.supported & after.supported)
    yield Diff(
        [_named(name) for name in sorted(before.supported - after.supported)],
        [_named(name) for name in sorted(after.supported - before.supported)],
        listed(same, _SHOWN_SAME, " and {} more"),
    )
    versions = f"{before} -> {after}" if before != after else f"{before}, unchanged"
    yield FactList([("Versions", (versions,))])


def _named(name: str) -> Line:
    return (Code(name), f"  {feature_catalog.feature_record(name).kind}")


def _steps(plan: Plan, now: float) -> Iterator[Block]:
    from deltaproto.render.runbook.book import reversibility_phrase
    from deltaproto.render.runbook.phrases import phrases

    warning = reversibility_phrase(plan)
    if warning is not None:
        tone = Tone.GOOD if warning == "summary.reversible" else Tone.WARNING
        yield Callout(tone, phrases("en").line(warning))
    no_return = plan.point_of_no_return
    for step, (earliest, lost) in zip(plan.steps, step_times(plan.steps, now), strict=True):
        if step.id == no_return:
            yield Callout(Tone.DANGER, ("point of no return: the next step cannot be reverted",))
        maybe = " (only if the previous call did not succeed)" if step.optional else ""
        facts = FactList(list(_step(plan, step, earliest, lost)))
        yield Section("", f"{step.id} {step.why}{maybe}", [facts])


def _step(
    plan: Plan, step: Step, earliest: float | None, lost: float | None
) -> Iterator[tuple[str, Line]]:
    if step.sql is not None:
        yield "Run", (Code(f"{step.sql};"),)
    for name, text in _details(step, earliest, lost):
        yield name, (text,)
    for warning in step.warnings:
        if warning not in plan.warnings:
            yield "Warning", (warning,)
    if step.undo is not None:
        kept = "" if lost is None else "  -- deleted history is not restored"
        yield "Undo", (Code(f"{step.undo};{kept}"),)
    for loss in losses_text(step):
        yield "Loses", (Strong(loss),)


def _details(step: Step, earliest: float | None, lost: float | None) -> Iterator[tuple[str, str]]:
    if step.wait_hours:
        yield "Wait", wait_text(step, stamp(earliest))
        return
    least, most = step.commits
    count = f"{most}" if least == most else f"{least} to {most}"
    if step.operations:
        yield "Commits", f"{count}: {run_length(step.operations)}"
    if step.protocol_after != step.protocol_before:
        yield "Protocol", _difference(step.protocol_before, step.protocol_after)
    if step.rewrites.which is not Rewrite.NONE:
        yield "Rewrites", rewrites_text(step)
    if earliest is not None:
        yield "Earliest", str(stamp(earliest))
    if lost is not None:
        yield "History", f"older than {stamp(lost)} is deleted"
    if step.expects is not None:
        yield "Expected", f"the error {step.expects}"


def _difference(before: Protocol, after: Protocol) -> str:
    signs = [f"-{name}" for name in sorted(before.supported - after.supported)]
    signs += [f"+{name}" for name in sorted(after.supported - before.supported)]
    versions = f"{before} -> {after}" if str(before) != str(after) else f"still {after}"
    return f"{' '.join(signs) or 'the same features'}  {versions}"


def _clients(changes: tuple[ClientChange, ...]) -> Iterator[Block]:
    shown = [c for c in changes if is_worse(c) or is_better(c) or c.after != "ok"]
    rows: list[list[Line]] = []
    for change in shown:
        same = change.before is change.after
        label = f" ({change.label})" if change.label else ""
        rows.append(
            [
                (Code(change.client), label),
                (str(change.access),),
                (str(change.after) if same else f"{change.before} -> {change.after}",),
                (first_names(change.because, _SHOWN_BECAUSE) or change.reason,),
            ]
        )
    if rows:
        cells = [[None, None, VERDICT_TONES[change.after], None] for change in shown]
        headings = ("Client", "Access", "Verdict", "Because")
        yield TableBlock(headings, rows, cells=cells, lead=2, below=True)
    fine = len(changes) - len(shown)
    if fine:
        yield Paragraph((f"{fine} unchanged and ok",), muted=True)


def _alternative(each: Alternative) -> Iterator[Block]:
    facts: list[tuple[str, Line]] = [
        ("Cost", (cost_text(each.cost, each.steps),)),
        ("Ends with", (each.protocol_after.in_words,)),
    ]
    if not each.reaches_goal:
        facts += [("Run", (Code(f"{step.sql};" if step.sql else "wait"),)) for step in each.steps]
    yield Section("", f"{each.name}: {each.text}", [FactList(facts)])


def _blocked(entries: Iterable[Blocked], tone: Tone | None) -> Iterator[Block]:
    groups: dict[tuple[str, str], list[str]] = {}
    for each in entries:
        groups.setdefault((each.reason, each.remedy), []).append(each.feature or "")
    for (reason, remedy), features in groups.items():
        names = ", ".join(filter(None, features))
        names += " (each)" if len(features) > 1 else ""
        text = f"{names}: {reason}" if names else reason
        yield Paragraph((text,)) if tone is None else Callout(tone, (text,))
        if remedy:
            yield Bullets([(f"hint: {remedy}",)])
