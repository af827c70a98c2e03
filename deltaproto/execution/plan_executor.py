"""Common parts of every plan execution: its inputs, how it begins, and how it sends a statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from deltaproto.errors import ExitCode
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import StopReason
from deltaproto.execution.prepare import ApplyContext, PreparedPlan
from deltaproto.execution.progress import Progress
from deltaproto.execution.recorder import RunRecorder
from deltaproto.execution.result import ApplyResult, Observer, StepRecord, StepStatus
from deltaproto.execution.run_log import SentStatement
from deltaproto.execution.runner import StatementRunner
from deltaproto.execution.verify import StatementResult
from deltaproto.execution.waits import WaitLimits
from deltaproto.planning.plan import Step
from deltaproto.redaction import Redactor
from deltaproto.tables.log.commits import CommitTag

FREE_SPACE_HINT = "free some space, and run the same command again: it completes the audit log"


class ApplySession(NamedTuple):
    """Inputs of a call of `apply` or `rehearse`, shared by all plans."""

    context: ApplyContext
    runner: Callable[[], StatementRunner]
    """returns the shared runner; starts Spark on first use"""
    audit: Callable[[str], str]
    """returns the audit log's path for a plan file"""
    redact: Redactor
    observer: Observer
    limits: WaitLimits
    dry_run: bool = False
    parallel: int = 1
    around: Callable[[LoadedPlan, Callable[[], ApplyResult]], ApplyResult] = lambda _, run: run()
    """wraps the execution of one plan, which it may skip; called from several threads"""
    interrupted: Callable[[ApplyResult], None] = lambda _: None
    """receives results that are not yielded because of an interruption"""


class PlanExecutor(ABC):
    """Executes the remaining steps of a plan."""

    def __init__(
        self, prepared: PreparedPlan, session: ApplySession, recorder: RunRecorder
    ) -> None:
        runner = session.runner()
        self._runner = runner.apart() if session.parallel > 1 else runner
        self._prepared, self._recorder = prepared, recorder
        self._planned, self._plan = prepared.planned, prepared.planned.plan
        self._observer, self._limits = session.observer, session.limits
        self._options, self._redact = session.context.storage_options, session.redact
        self.records: list[StepRecord] = []
        self.executed = False
        """whether a statement was sent"""

    @property
    @abstractmethod
    def progress(self) -> Progress:
        """The progress of the plan."""

    @property
    def remarks(self) -> list[str]:
        """Problems that did not stop the steps."""
        return self._recorder.remarks

    def execute(self, unaudited: Sequence[SentStatement] = ()) -> StopReason | None:
        """Execute the remaining steps. Return None when all are finished.

        Args:
            unaudited: statements of earlier runs that are missing in the audit log; added first.

        Raises:
            JournalError: when the journal cannot be written.
            TableError: when a table cannot be read.
            EngineError: when Spark does not respond.
        """
        located = self._prepared.located
        self._recorder.complete(unaudited, located.watcher, self._limits.now())
        if self._recorder.unaudited is not None:
            message = f"{self._recorder.unaudited}: no statements are sent"
            return StopReason(ExitCode.FAILED, message, FREE_SPACE_HINT)
        done = self._plan.steps[: located.progress.done]
        self.records = [StepRecord(step.id, StepStatus.EARLIER) for step in done]
        return self._execute_remaining()

    @abstractmethod
    def _execute_remaining(self) -> StopReason | None:
        """Execute the remaining steps. Return None when all are finished."""

    def _send(self, step: Step, tag: CommitTag, *conf: Mapping[str, str]) -> StatementResult:
        """Send the statement of a step with these settings; its commits carry `tag`."""
        assert step.sql is not None

        def report(done: int, known: int) -> None:
            self._observer.progress(self._planned, step, done, known)

        self._observer.began(self._planned, step)
        result = self._runner.run(step.sql, tag.text(), report, *conf)
        return result._replace(message=self._redact(result.message))

    def _report(self, record: StepRecord) -> None:
        self.records.append(record)
        self._observer.finished(self._planned, record)
