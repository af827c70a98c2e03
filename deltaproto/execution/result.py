"""Results of executing a plan, and progress callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple
from typing import Protocol as Interface

from deltaproto.errors import ExitCode
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import GateResult
from deltaproto.execution.warning import ApplyWarning
from deltaproto.planning.plan import Plan, Step
from deltaproto.protocol.protocol import Protocol


class ApplyStatus(StrEnum):
    """How execution of a plan ended."""

    DONE = "done"
    """every step is finished"""
    NOTHING = "nothing-to-do"
    """the table already meets the goal"""
    READY = "ready"
    """a dry run passed every gate"""
    WAITING = "waiting"
    """steps remain that may be executed only later"""
    REFUSED = "refused"
    """a gate failed, or the run was not confirmed; this run changed nothing"""
    FAILED = "failed"
    """a step failed, or a concurrent writer won"""
    UNREADABLE = "unreadable"
    """the table could not be read"""


class StepStatus(StrEnum):
    """The result of one step."""

    EARLIER = "done-earlier"
    """finished by an earlier run"""
    DONE = "done"
    """finished by this run"""
    SKIPPED = "not-needed"
    """not needed, as an earlier step succeeded"""
    WAITING = "waiting"
    """may be executed only later"""
    FAILED = "failed"
    """failed, or its result was not as predicted"""
    PENDING = "pending"
    """not started"""


class StepRecord(NamedTuple):
    """One step in this run."""

    id: str
    """the id of the step in the plan"""
    done: StepStatus
    """the result of the step"""
    versions: tuple[int, ...] = ()
    """versions of its commits"""
    operations: tuple[str, ...] = ()
    """operation names of its commits"""
    attempts: int = 0
    """how often it was sent"""
    seconds: float = 0.0
    """how long it took"""
    message: str = ""
    """why it failed or waits; may be empty"""
    remarks: tuple[str, ...] = ()
    """problems that did not stop it"""
    delta_rs: str = ""
    """delta-rs's reading of the table afterwards: `agrees`, or why it has no result"""

    def __repr__(self) -> str:
        return f"<StepRecord {self.id}: {self.done}>"


def with_pending(records: Sequence[StepRecord], plan: Plan) -> tuple[StepRecord, ...]:
    """Return the records, and one for each step of the plan that has none."""
    recorded = {record.id for record in records}
    left = (step.id for step in plan.steps if step.id not in recorded)
    return (*records, *(StepRecord(name, StepStatus.PENDING) for name in left))


class ApplyResult(NamedTuple):
    """The result of one plan after a run."""

    planned: LoadedPlan
    status: ApplyStatus
    """how the run ended"""
    code: ExitCode
    """the exit code of `apply` with this result"""
    message: str
    """the result in one sentence"""
    hint: str = ""
    """the next action; may be empty"""
    steps: tuple[StepRecord, ...] = ()
    """the steps in this run"""
    gates: tuple[GateResult, ...] = ()
    """the checks before the first step"""
    warning: ApplyWarning | None = None
    """who is affected by the remaining steps; None if unknown"""
    version: int | None = None
    """the version of the table at the end; None: not read"""
    protocol: Protocol | None = None
    """the protocol of the table at the end; None: not read"""
    earliest: float | None = None
    """when the next step may be executed, in seconds since the epoch"""
    journal: str | None = None
    """the file of the journal, if one was written"""
    remarks: tuple[str, ...] = ()
    """problems that did not stop the steps"""


class Observer(Interface):
    """Receives progress events; may be called from several threads."""

    def began(self, planned: LoadedPlan, step: Step) -> None:
        """Handle a statement being sent."""
        ...

    def progress(self, planned: LoadedPlan, step: Step, done: int, known: int) -> None:
        """Handle progress: how many of the step's engine tasks are finished."""
        ...

    def retries(self, planned: LoadedPlan, step: Step, winner: str, seconds: float) -> None:
        """Handle a lost conflict; the step is retried after `seconds`."""
        ...

    def waits(self, planned: LoadedPlan, step: Step, until: float) -> None:
        """Handle a wait until `until`, in seconds since the epoch."""
        ...

    def finished(self, planned: LoadedPlan, record: StepRecord) -> None:
        """Handle a finished step."""
        ...

    def halts(self) -> None:
        """Handle an interruption: running statements finish, no new ones are sent."""
        ...
