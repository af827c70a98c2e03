"""What came of executing a plan, and who is told meanwhile."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple
from typing import Protocol as Interface

from deltaproto.errors import ExitCode
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import GateResult
from deltaproto.execution.warning import Warning
from deltaproto.planning.plan import Step
from deltaproto.protocol.protocol import Protocol


class ApplyStatus(StrEnum):
    """How it ended."""

    DONE = "done"
    NOTHING = "nothing-to-do"
    READY = "ready"
    """a dry run passed every gate"""
    WAITING = "waiting"
    """steps are left that may be executed only later"""
    REFUSED = "refused"
    """a gate was not passed, or nobody confirmed; this run changed nothing"""
    FAILED = "failed"
    """a step failed, or a concurrent writer won"""
    UNREADABLE = "unreadable"


class StepStatus(StrEnum):
    """What became of one step."""

    EARLIER = "done-earlier"
    DONE = "done"
    SKIPPED = "not-needed"
    WAITING = "waiting"
    FAILED = "failed"
    PENDING = "pending"


class StepRecord(NamedTuple):
    """One step, in this run."""

    id: str
    done: StepStatus
    versions: tuple[int, ...] = ()
    """that its commits made"""
    operations: tuple[str, ...] = ()
    attempts: int = 0
    seconds: float = 0.0
    message: str = ""
    remarks: tuple[str, ...] = ()
    delta_rs: str = ""
    """what delta-rs says of the table afterwards: `agrees`, or why it does not answer"""


class Applied(NamedTuple):
    """One plan, after a run."""

    planned: LoadedPlan
    status: ApplyStatus
    code: ExitCode
    message: str
    hint: str = ""
    steps: tuple[StepRecord, ...] = ()
    gates: tuple[GateResult, ...] = ()
    warning: Warning | None = None
    version: int | None = None
    """of the table in the end; None: not looked at"""
    protocol: Protocol | None = None
    earliest: float | None = None
    """when the next step may be executed, in seconds since the epoch"""
    journal: str | None = None
    remarks: tuple[str, ...] = ()
    """what went wrong beside the steps"""


class Observer(Interface):
    """Is told of every event; its calls may come from several threads."""

    def began(self, planned: LoadedPlan, step: Step) -> None:
        """A step's statement is sent."""
        ...

    def progress(self, planned: LoadedPlan, step: Step, done: int, known: int) -> None:
        """Of the engine's tasks for the step, so many are done."""
        ...

    def retries(self, planned: LoadedPlan, step: Step, winner: str, seconds: float) -> None:
        """A concurrent transaction won; the step is tried again after some seconds."""
        ...

    def waits(self, planned: LoadedPlan, step: Step, until: float) -> None:
        """The next step comes at `until`, in seconds since the epoch."""
        ...

    def finished(self, planned: LoadedPlan, record: StepRecord) -> None:
        """A step is over."""
        ...

    def halts(self) -> None:
        """The run was interrupted: statements that were sent are waited for, no other is sent."""
        ...


class NullObserver:
    """Tells nobody."""

    def began(self, planned: LoadedPlan, step: Step) -> None: ...

    def progress(self, planned: LoadedPlan, step: Step, done: int, known: int) -> None: ...

    def retries(self, planned: LoadedPlan, step: Step, winner: str, seconds: float) -> None: ...

    def waits(self, planned: LoadedPlan, step: Step, until: float) -> None: ...

    def finished(self, planned: LoadedPlan, record: StepRecord) -> None: ...

    def halts(self) -> None: ...
