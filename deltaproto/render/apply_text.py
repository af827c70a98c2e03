"""Print the execution of plans as text: first the warning, then each step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import IO

from deltaproto.errors import ExitCode
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.prepare import PreparedPlan
from deltaproto.execution.result import ApplyResult, ApplyStatus, StepRecord, StepStatus
from deltaproto.execution.warning import ApplyWarning, ConflictWarning
from deltaproto.planning.plan import Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.render.activity import sentences, writer_rows
from deltaproto.render.plan_json import stamp
from deltaproto.render.plan_words import size
from deltaproto.render.terminal import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    LOUD,
    RED,
    YELLOW,
    Painter,
    duration,
    run_length,
)

_COLOURS = {
    ApplyStatus.DONE: GREEN,
    ApplyStatus.NOTHING: GREEN,
    ApplyStatus.READY: GREEN,
    ApplyStatus.WAITING: YELLOW,
    ApplyStatus.REFUSED: RED,
    ApplyStatus.FAILED: LOUD,
    ApplyStatus.UNREADABLE: RED,
}
_EFFECTS = {
    "restart": "stops, and goes on after a restart",
    "ends": "ends for good",
    "loses-history": "may lack history",
}
_STEPS = {
    StepStatus.EARLIER: "done earlier",
    StepStatus.DONE: "done",
    StepStatus.SKIPPED: "not needed",
    StepStatus.WAITING: "has to wait",
    StepStatus.FAILED: "FAILED",
    StepStatus.PENDING: "not begun",
}


class ApplyText:
    """Prints warnings, gates, steps and results. Thread-safe.

    Args:
        redact: function that removes credentials from a text.
    """

    def __init__(self, file: IO[str], *, color: bool, redact: Callable[[str], str]) -> None:
        self._out = Painter(file, color=color)
        self._file, self._redact = file, redact
        self._lock = threading.Lock()
        self._results: list[ApplyResult] = []

    def warned(self, prepared: PreparedPlan) -> None:
        """Print what is about to happen, who is affected, and the gates."""
        plan = prepared.planned.plan
        with self._lock:
            out = self._out
            out.line(out.paint(self._redact(plan.table), BOLD))
            out.folded(plan.goal_text, first="  goal      ")
            out.line(f"  plan      {prepared.planned.id}")
            if prepared.left:
                self._warning(prepared.warning)
            out.line()
            out.line("  " + out.paint("gates", BOLD))
            for gate in prepared.gates:
                sign = out.paint("ok", GREEN) if gate.passed else out.paint("NO", LOUD)
                out.folded(
                    self._redact(f"{gate.name}: {gate.message}"),
                    first=f"    {sign}  ",
                    rest="        ",
                )
            out.line()
            self._file.flush()

    def finished(self, planned: LoadedPlan, record: StepRecord, *, many: bool) -> None:
        """Print that one step is finished."""
        with self._lock:
            out = self._out
            where = f"{self._redact(planned.plan.table)} " if many else ""
            good = record.done in (StepStatus.DONE, StepStatus.SKIPPED, StepStatus.EARLIER)
            state = out.paint(_STEPS[record.done], GREEN if good else LOUD)
            made = f": {run_length(record.operations)}" if record.operations else ""
            if record.versions:
                made += f" (version {_span(record.versions)})"
            lines = f"  {out.paint(where + record.id, CYAN)}  {state}{out.paint(made)}"
            lines += f", {record.seconds:.1f} s" if record.seconds else ""
            out.line(lines)
            for text in (record.message, *record.remarks):
                if text:
                    out.folded(self._redact(text), DIM, first="      ")
            if record.delta_rs:
                out.folded(f"delta-rs: {self._redact(record.delta_rs)}", DIM, first="      ")
            self._file.flush()

    def retries(self, planned: LoadedPlan, step: Step, winner: str, seconds: float) -> None:
        """Print that a step lost a commit race and will be retried."""
        with self._lock:
            self._out.folded(
                self._redact(f"lost against {winner}; again in {seconds:.0f} s"),
                YELLOW,
                first=f"  {step.id}  ",
            )
            self._file.flush()

    def result(self, applied: ApplyResult) -> None:
        """Print the final status of a plan."""
        with self._lock:
            self._results.append(applied)
            out = self._out
            table = self._redact(applied.planned.plan.table)
            out.line(
                f"{out.paint(str(applied.status), _COLOURS[applied.status])}  {out.paint(table)}"
            )
            out.folded(self._redact(applied.message), first="  ")
            if applied.earliest is not None:
                out.line(f"  not before {stamp(applied.earliest)}")
            if applied.hint:
                out.folded(self._redact(applied.hint), first="  hint: ")
            if applied.code is ExitCode.FAILED:
                for record in applied.steps:
                    out.line(f"    {record.id}  {_STEPS[record.done]}")
            if applied.protocol is not None:
                out.folded(
                    f"{applied.protocol.in_words}, at version {applied.version}",
                    first="  protocol  ",
                )
            for remark in applied.remarks:
                out.folded(self._redact(remark), YELLOW, first="  ! ")
            out.line()
            self._file.flush()

    def close(self) -> None:
        """Print the summary if there were several plans."""
        if len(self._results) < 2:
            return
        counts = {
            status: sum(each.status is status for each in self._results) for status in ApplyStatus
        }
        told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        self._out.line(f"{len(self._results)} plans: {told}")

    def _warning(self, warning: ApplyWarning) -> None:
        out = self._out
        out.line()
        out.line("  " + out.paint("WARNING: each step conflicts with concurrent writes", LOUD))
        for step in warning.steps:
            self._step(step)
        for loser, title in (
            ("writer", "transactions that fail"),
            ("step", "what makes a step fail"),
        ):
            hits = [hit for hit in warning.hits if hit.loser == loser]
            if hits:
                out.line(f"    {title}")
            for hit in hits:
                out.folded(_hit(hit), first=f"      {hit.engine}  ", rest=" " * 8)
        if warning.streams:
            out.line("    streaming reads")
        streams: dict[tuple[str, str, str], list[str]] = {}
        for step_id, stream in warning.streams:
            key = (stream.reads, stream.effect.value, stream.why)
            streams.setdefault(key, []).append(step_id)
        for (reads, effect, why), ids in streams.items():
            said = f"{reads}: {_EFFECTS[effect]} in {', '.join(ids)} ({why})"
            out.folded(said, first="      ", rest=" " * 8)
        out.line("    recent activity")
        if warning.activity is not None:
            for engine, operation, count, every, last in writer_rows(warning.activity, None):
                out.folded(
                    self._redact(f"{engine}: {count} x {operation}, every {every}, last {last}"),
                    first="      ",
                )
        told = (
            ["the recent commits cannot be read: nothing is known of who writes"]
            if warning.activity is None
            else sentences(warning.activity, None)
        )
        for text in told:
            out.folded(self._redact(text), first="      ")
        if warning.window is not None:
            state = "open" if warning.window.open else "closed"
            coming = warning.window.next
            until = f"; the next opens {coming:%Y-%m-%d %H:%M} UTC" if coming else ""
            out.line(f"    maintenance window: {state}{until}")
        for note in (*warning.sources, *warning.notes):
            out.folded(note, YELLOW, first="    ! ")

    def _step(self, step: Step) -> None:
        out = self._out
        out.folded(step.why, first=f"    {out.paint(step.id, CYAN)} ", rest=" " * 8)
        if step.sql is None:
            out.line(f"        wait      {duration(step.wait_hours)}, by {step.setting}")
            return
        out.line("        " + out.paint(self._redact(step.sql) + ";", BOLD))
        if step.operations:
            out.folded(run_length(step.operations), first="        commits   ")
        if step.rewrites.which is not Rewrite.NONE and step.rewrites.files is not None:
            count, bytes_ = step.rewrites.files, step.rewrites.bytes or 0
            out.line(f"        rewrites  at most {count:,} files, {size(bytes_)}")
        for loss in step.losses:
            out.folded(f"for good: {loss}", RED, first="        ")


def _hit(hit: ConflictWarning) -> str:
    return f"{hit.who}: {' or '.join(hit.exceptions)} in {', '.join(hit.steps)}"


def _span(versions: tuple[int, ...]) -> str:
    return f"{versions[0]}" if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
