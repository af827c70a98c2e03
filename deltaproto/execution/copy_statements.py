"""Sends the statements of a copy into a new table, and records them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

from deltaproto.errors import ErrorCode, ExitCode, TableError
from deltaproto.execution.copy_state import CopyStage
from deltaproto.execution.plan_executor import ApplySession, PlanExecutor
from deltaproto.execution.preflight import INTERRUPTED, RUN_AGAIN_HINT, StopReason
from deltaproto.execution.prepare import PreparedPlan
from deltaproto.execution.prepare_copy import progress_of
from deltaproto.execution.progress import Progress
from deltaproto.execution.recorder import RunRecorder
from deltaproto.execution.result import StepRecord, StepStatus
from deltaproto.execution.verify import StepVerdict, verify_step
from deltaproto.identity import current_actor
from deltaproto.planning.plan import Step
from deltaproto.tables.log.commits import CommitTag
from deltaproto.tables.storage import open_log

_NOTHING: Mapping[str, str] = MappingProxyType({})


class StoppedError(Exception):
    """Execution stops, for a reason."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.message)
        self.reason = reason


class CopyStatements(PlanExecutor):
    """Sends statements one at a time, and knows the tables."""

    def __init__(
        self, prepared: PreparedPlan, session: ApplySession, recorder: RunRecorder
    ) -> None:
        super().__init__(prepared, session, recorder)
        assert prepared.located.copy is not None
        self.state = prepared.located.copy
        self._owner = self.state.tables.owner
        self.copied = self.state.copied
        self._inserts = 0

    @property
    def progress(self) -> Progress:
        """The progress of the plan."""
        done = sum(r.done is not StepStatus.FAILED for r in self.records)
        return progress_of(self.state, done)

    def send(
        self,
        step: Step,
        sql: str | None = None,
        *,
        copied: int | None = None,
        conf: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Send one statement, and record it."""
        statement = step._replace(sql=sql or step.sql)
        tag = CommitTag(self._owner, step.id, self._recorder.run, current_actor().actor, copied)
        for attempt in itertools.count():
            if self._limits.halted() and self.state.stage is not CopyStage.BETWEEN:
                self.stop(step, INTERRUPTED, RUN_AGAIN_HINT)
            before, began = self.state.old.version, self._limits.now()
            self._recorder.sent(step, before, began)
            self.executed = True
            result = self._send(statement, tag, conf)
            # The tables show what it did.
            unchanged = statement.protocol_after
            verified = verify_step(statement, result, (), unchanged, frozenset(), resumed=True)
            now = self._limits.now()
            self._recorder.answered(
                statement, result, verified, before, (), self.progress, now - began, now
            )
            if result.error is None:
                break
            if verified.verdict is not StepVerdict.CONFLICT or attempt >= self._limits.retries:
                self.stop(step, result.message, RUN_AGAIN_HINT)
            self._limits.sleep(2**attempt)
        if self._recorder.unaudited is not None:
            self.stop(step, self._recorder.unaudited, RUN_AGAIN_HINT)

    def reread(self, step: Step, stage: CopyStage) -> None:
        """Read the tables again after a statement, and require that they are at `stage`."""
        before = self.state.old.opened.location
        self.state = self.state.tables.read()
        if self.state.stage is not stage:
            message = f"the copy is {self.state.stage.name.lower()}, not {stage.name.lower()}"
            self.stop(step, message, RUN_AGAIN_HINT)
        if self.state.old.opened.location.uri != before.uri:
            try:
                left = any(open_log(before, self._options).list())
            except TableError as error:
                if error.code not in (ErrorCode.NOT_FOUND, ErrorCode.NOT_A_DELTA_TABLE):
                    raise
                left = False
            if left:
                self.stop(
                    step,
                    f"a writer committed to {before.uri} while the table was moved from there",
                    f"look for its rows there, and repeat its commit in {self.state.old_name}",
                )

    def run_step(self, step: Step, stage: CopyStage) -> None:
        """Send the statement of a step, require `stage` afterwards, and record it as finished."""
        self.send(step)
        self.reread(step, stage)
        self.finish(step)

    def finish(self, step: Step, delta_rs: str = "") -> None:
        """Record a finished step, once."""
        if any(record.id == step.id for record in self.records):
            return
        record = StepRecord(
            step.id, StepStatus.DONE, operations=step.operations, attempts=1, delta_rs=delta_rs
        )
        self._report(record)
        self._recorder.done(self.progress, record, self._limits.now())

    def stop(self, step: Step, message: str, hint: str) -> NoReturn:
        """Record a failed step, and stop.

        Raises:
            StoppedError: always.
        """
        self.records = [record for record in self.records if record.id != step.id]
        self._report(StepRecord(step.id, StepStatus.FAILED, message=message))
        self._recorder.failed(step, message, self._limits.now())
        raise StoppedError(StopReason(ExitCode.FAILED, f"{step.id}: {message}", hint))
