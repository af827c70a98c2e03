"""Common parts of every plan execution: how it begins, and how it sends a statement."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from deltaproto.errors import ExitCode
from deltaproto.execution.preflight import StopReason
from deltaproto.execution.prepare import PreparedPlan
from deltaproto.execution.progress import Progress
from deltaproto.execution.recorder import RunLog
from deltaproto.execution.result import Observer, StepRecord, StepStatus
from deltaproto.execution.run_log import AuditLog, Journal, SentStatement
from deltaproto.execution.runner import StatementRunner
from deltaproto.execution.verify import StatementResult
from deltaproto.execution.waits import WaitLimits
from deltaproto.planning.plan import Step
from deltaproto.tables.log.commits import CommitTag

FREE_SPACE_HINT = "free some space, and run the same command again: it completes the audit log"


class ExecutionTools(NamedTuple):
    """The tools for executing and recording a plan."""

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


class PlanExecutor(ABC):
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
    @abstractmethod
    def stands(self) -> Progress:
        """The progress of the plan."""

    @property
    def remarks(self) -> list[str]:
        """Problems that did not stop the steps."""
        return self._ledger.remarks

    def go(self, unaudited: Sequence[SentStatement] = ()) -> StopReason | None:
        """Execute the remaining steps. Return None when all are finished.

        Args:
            unaudited: statements of earlier runs that are missing in the audit log; added first.

        Raises:
            JournalError: when the journal cannot be written.
            TableError: when a table cannot be read.
            EngineError: when Spark does not respond.
        """
        located = self._prepared.located
        self._ledger.complete(unaudited, located.watched, self._limits.now())
        if self._ledger.unaudited is not None:
            message = f"{self._ledger.unaudited}: no statements are sent"
            return StopReason(ExitCode.FAILED, message, FREE_SPACE_HINT)
        done = self._plan.steps[: located.stands.done]
        self.records = [StepRecord(step.id, StepStatus.EARLIER) for step in done]
        return self._execute_left()

    @abstractmethod
    def _execute_left(self) -> StopReason | None:
        """Execute the remaining steps. Return None when all are finished."""

    def _send(self, step: Step, mark: CommitTag, *conf: Mapping[str, str]) -> StatementResult:
        """Send the statement of a step with these settings; its commits carry `mark`."""
        assert step.sql is not None

        def progress(done: int, known: int) -> None:
            self._observer.progress(self._planned, step, done, known)

        self._observer.began(self._planned, step)
        answer = self._runner.run(step.sql, mark.text(), progress, *conf)
        return answer._replace(message=self._redact(answer.message))

    def _tell(self, record: StepRecord) -> None:
        self.records.append(record)
        self._observer.finished(self._planned, record)
