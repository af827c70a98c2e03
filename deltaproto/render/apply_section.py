"""The execution of plans as blocks of a document: the warning, each step, and the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaproto.counts import counted
from deltaproto.errors import ExitCode
from deltaproto.execution.prepare import PreparedPlan
from deltaproto.execution.result import ApplyResult, ApplyStatus, StepRecord, StepStatus
from deltaproto.execution.warning import ApplyWarning, MaintenanceWindowStatus
from deltaproto.inspection.activity import Activity
from deltaproto.planning.plan import Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.render.document.blocks import (
    Block,
    Callout,
    Code,
    FactList,
    FindingLine,
    FindingList,
    Line,
    Paragraph,
    Section,
    Strong,
    Tone,
)
from deltaproto.render.inspection import activity_blocks
from deltaproto.render.interface import stamp
from deltaproto.render.plan_words import affected, losses_text, rewrites_text
from deltaproto.render.terminal import duration, run_length

_TONES = {
    ApplyStatus.DONE: Tone.GOOD,
    ApplyStatus.NOTHING: Tone.GOOD,
    ApplyStatus.READY: Tone.GOOD,
    ApplyStatus.WAITING: Tone.WARNING,
    ApplyStatus.REFUSED: Tone.DANGER,
    ApplyStatus.FAILED: Tone.DANGER,
    ApplyStatus.UNREADABLE: Tone.DANGER,
}
_STEPS = {
    StepStatus.EARLIER: "done earlier",
    StepStatus.DONE: "done",
    StepStatus.SKIPPED: "not needed",
    StepStatus.WAITING: "waiting",
    StepStatus.FAILED: "FAILED",
    StepStatus.PENDING: "not started",
}
_GOOD = (StepStatus.DONE, StepStatus.SKIPPED, StepStatus.EARLIER)


def warning_section(prepared: PreparedPlan) -> Section:
    """Return the effects of the remaining steps, who is affected, and the gates."""
    plan = prepared.planned.plan
    blocks: list[Block] = [
        FactList([("Goal", (plan.goal_text,)), ("Plan", (prepared.planned.id,))])
    ]
    if prepared.left:
        title = "WARNING: each step conflicts with concurrent writes"
        blocks.append(Section("", title, list(_warning(prepared.warning)), Tone.DANGER))
    gates = [
        FindingLine(
            Tone.GOOD if gate.passed else Tone.DANGER,
            "ok" if gate.passed else "failed",
            gate.name,
            gate.message,
            "",
        )
        for gate in prepared.gates
    ]
    blocks.append(Section("", "Gates", [FindingList(gates)]))
    return Section("", plan.table, blocks)


def finished_line(record: StepRecord, table: str) -> FindingList:
    """Return one finished step as a line.

    Args:
        table: may be empty.
    """
    parts = [run_length(record.operations)] if record.operations else []
    if record.versions:
        first, last = record.versions[0], record.versions[-1]
        parts.append(f"version {first}" if first == last else f"versions {first} to {last}")
    parts += [f"{record.seconds:.1f} s"] if record.seconds else []
    notes = [", ".join(parts), record.message, *record.remarks]
    notes += [f"delta-rs: {record.delta_rs}"] if record.delta_rs else []
    return FindingList([_step_line(record, f"{table} {record.id}".strip(), notes)])


def retry_line(step: Step, winner: str, seconds: float) -> FindingList:
    """Return a line that a step lost against another commit and will be retried."""
    message = f"lost against {winner}; next attempt in {seconds:.0f} s"
    return FindingList([FindingLine(Tone.WARNING, step.id, "retry", message, "")])


def result_section(applied: ApplyResult) -> Section:
    """Return the final status of a plan."""
    title = f"{applied.status}  {applied.planned.plan.table}"
    return Section("", title, list(_result(applied)), _TONES[applied.status])


def summary_line(results: Iterable[ApplyResult]) -> Paragraph:
    """Return the number of plans with each status."""
    statuses = [each.status for each in results]
    counts = {status: statuses.count(status) for status in ApplyStatus}
    text = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    return Paragraph((Strong(f"{counted(len(statuses), 'plan')}: {text}"),))


def _warning(warning: ApplyWarning) -> Iterator[Block]:
    for step in warning.steps:
        yield Section("", f"{step.id} {step.why}", [FactList(list(_step(step)))])
    for title, rows in affected(warning.steps, reasons=True):
        yield Section("", title, [FactList([(name, (text,)) for name, text in rows])])
    yield Section("", "Recent activity", list(_activity(warning.activity)))
    if warning.window is not None:
        yield Paragraph((_window(warning.window),))
    yield from (Callout(Tone.WARNING, (note,)) for note in (*warning.sources, *warning.notes))


def _step(step: Step) -> Iterator[tuple[str, Line]]:
    if step.sql is None:
        yield "Wait", (f"{duration(step.wait_hours)}, by {step.setting}",)
        return
    yield "Run", (Code(f"{step.sql};"),)
    if step.operations:
        yield "Commits", (run_length(step.operations),)
    if step.rewrites.which is not Rewrite.NONE:
        yield "Rewrites", (rewrites_text(step),)
    for loss in losses_text(step):
        yield "Loses", (Strong(loss),)


def _activity(activity: Activity | None) -> Iterator[Block]:
    if activity is None:
        yield Paragraph(("The recent commits cannot be read: the writers are unknown.",))
    else:
        yield from activity_blocks(activity, every=True)


def _window(window: MaintenanceWindowStatus) -> str:
    state = "open" if window.open else "closed"
    coming = f"; the next opens {window.next:%Y-%m-%d %H:%M} UTC" if window.next else ""
    return f"maintenance window: {state}{coming}"


def _result(applied: ApplyResult) -> Iterator[Block]:
    yield Paragraph((applied.message,))
    if applied.earliest is not None:
        yield Paragraph((f"not before {stamp(applied.earliest)}",))
    if applied.hint:
        yield Paragraph((f"hint: {applied.hint}",))
    if applied.code is ExitCode.FAILED:
        yield FindingList([_step_line(record, record.id, ()) for record in applied.steps])
    if applied.protocol is not None:
        protocol = f"{applied.protocol.in_words}, at version {applied.version}"
        yield FactList([("Protocol", (protocol,))])
    yield from (Callout(Tone.WARNING, (remark,)) for remark in applied.remarks)


def _step_line(record: StepRecord, name: str, notes: Iterable[str]) -> FindingLine:
    tone = Tone.GOOD if record.done in _GOOD else Tone.WARNING
    tone = Tone.DANGER if record.done is StepStatus.FAILED else tone
    return FindingLine(tone, name, _STEPS[record.done], "; ".join(filter(None, notes)), "")
