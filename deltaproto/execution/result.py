"""Results of executing a plan, and progress callbacks."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple
from typing import Protocol as Interface

from deltaproto.errors import ExitCode
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import GateResult
from deltaproto.execution.warning import ApplyWarning
from deltaproto.planning.plan import Step
from deltaproto.protocol.protocol import Protocol


class ApplyStatus(StrEnum):
    """How execution of a plan ended."""

    DONE = "done"
    NOTHING = "nothing-to-do"
    READY = "ready"
    """a dry run passed every gate"""
    WAITING = "waiting"
    """steps remain that may be executed only later"""
    REFUSED = "refused"
    """a gate failed, or the run was not confirmed; this run changed nothing"""
    FAILED = "failed"
    """a step failed, or a concurrent writer won"""
    UNREADABLE = "unreadable"


class StepStatus(StrEnum):
    """The result of one step."""

    EARLIER = "done-earlier"
    DONE = "done"
    SKIPPED = "not-needed"
    WAITING = "waiting"
    FAILED = "failed"
    PENDING = "pending"


class StepRecord(NamedTuple):
    """One step in this run."""

    id: str
    done: StepStatus
    versions: tuple[int, ...] = ()
    """versions of its commits"""
    operations: tuple[str, ...] = ()
    attempts: int = 0
    seconds: float = 0.0
    message: str = ""
    remarks: tuple[str, ...] = ()
    delta_rs: str = ""
    """delta-rs's reading of the table afterwards: `agrees`, or why it has no result"""


class ApplyResult(NamedTuple):
    """The result of one plan after a run."""

    planned: LoadedPlan
    status: ApplyStatus
    code: ExitCode
    message: str
    hint: str = ""
    steps: tuple[StepRecord, ...] = ()
    gates: tuple[GateResult, ...] = ()
    warning: ApplyWarning | None = None
    version: int | None = None
    """protocol of the table at the end; None: not read"""
    protocol: Protocol | None = None
    earliest: float | None = None
    """when the next step may be executed, in seconds since the epoch"""
    journal: str | None = None
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


class NullObserver:
    """Ignores all events."""

    def began(self, planned: LoadedPlan, step: Step) -> None: ...

    def progress(self, planned: LoadedPlan, step: Step, done: int, known: int) -> None: ...

    def retries(self, planned: LoadedPlan, step: Step, winner: str, seconds: float) -> None: ...

    def waits(self, planned: LoadedPlan, step: Step, until: float) -> None: ...

    def finished(self, planned: LoadedPlan, record: StepRecord) -> None: ...

    def halts(self) -> None: ...
