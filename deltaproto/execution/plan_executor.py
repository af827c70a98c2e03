"""What every execution of a plan needs, and how it begins."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from deltaproto.errors import ExitCode
from deltaproto.execution.preflight import StopReason
from deltaproto.execution.prepare import PreparedPlan
from deltaproto.execution.recorder import RunLog
from deltaproto.execution.result import Observer, StepRecord
from deltaproto.execution.run_log import AuditLog, Journal, SentStatement
from deltaproto.execution.runner import StatementRunner
from deltaproto.execution.waits import WaitLimits

FREE_SPACE_HINT = "free some space, and run the same command again: it completes the audit log"


class ExecutionTools(NamedTuple):
    """What a plan is executed and recorded with."""

    runner: StatementRunner
    journal: Journal
    audit: AuditLog
    """receives a line for each statement"""
    observer: Observer
    limits: WaitLimits
    storage_options: Mapping[str, str]
    """for reading logs"""
    redact: Callable[[str], str]
    """removes credentials from engine messages"""


class PlanExecutor:
    """Executes the remaining steps of a plan."""

    def __init__(self, prepared: PreparedPlan, tools: ExecutionTools) -> None:
        self._prepared, self._runner = prepared, tools.runner
        self._planned, self._plan = prepared.planned, prepared.planned.plan
        self._observer, self._limits = tools.observer, tools.limits
        self._options, self._redact = tools.storage_options, tools.redact
        self._run = uuid.uuid4().hex[:8]
        self._ledger = RunLog(
            prepared.planned, self._run, tools.journal, tools.audit, prepared.approvals
        )
        self.records: list[StepRecord] = []
        self.executed = False
        """whether a statement was sent"""

    @property
    def remarks(self) -> list[str]:
        """Problems that did not stop the steps."""
        return self._ledger.remarks

    def _complete_audit(self, unaudited: Sequence[SentStatement]) -> StopReason | None:
        """Add statements of earlier runs to the audit log. Return why none may be sent, or None."""
        self._ledger.complete(unaudited, self._prepared.located.watched, self._limits.now())
        if self._ledger.unaudited is None:
            return None
        message = f"{self._ledger.unaudited}: no statement is sent"
        return StopReason(ExitCode.FAILED, message, FREE_SPACE_HINT)
