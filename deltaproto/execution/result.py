"""What came of carrying out a plan."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from deltaproto.errors import ExitCode
from deltaproto.execution.gates import Gate
from deltaproto.execution.plan_file import Planned
from deltaproto.execution.warning import Warning
from deltaproto.protocol.protocol import Protocol


class Status(StrEnum):
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


class Done(StrEnum):
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
    done: Done
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

    planned: Planned
    status: Status
    code: ExitCode
    message: str
    hint: str = ""
    steps: tuple[StepRecord, ...] = ()
    gates: tuple[Gate, ...] = ()
    warning: Warning | None = None
    version: int | None = None
    """of the table in the end; None: not looked at"""
    protocol: Protocol | None = None
    earliest: float | None = None
    """when the next step may be executed, in seconds since the epoch"""
    journal: str | None = None
    remarks: tuple[str, ...] = ()
    """what went wrong beside the steps"""
