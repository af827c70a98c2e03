"""What a run puts on record: the journal that resumes, and the audit log that stays."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from deltaproto.execution.answer import Answer
from deltaproto.execution.audit import Audit
from deltaproto.execution.journal import Journal, JournalError
from deltaproto.execution.judge import Judged
from deltaproto.execution.plan_file import Planned
from deltaproto.execution.result import StepRecord
from deltaproto.execution.resume import Standing
from deltaproto.planning.plan import Step
from deltaproto.tables.log.commits import Commit


class Ledger:
    """Writes both; times are in seconds since the epoch.

    A journal that fails stops the run (`JournalError`). An audit log that fails does not: the
    statement is done by then, and the result tells of it (`remarks`).
    """

    def __init__(
        self,
        planned: Planned,
        run: str,
        journal: Journal,
        audit: Audit,
        approvals: Sequence[str] = (),
    ) -> None:
        self._planned, self._run, self._approvals = planned, run, approvals
        self._journal, self._audit = journal, audit
        self.remarks: list[str] = []

    def sent(self, step: Step, now: float) -> None:
        """A statement is about to be sent."""
        self._journal.add("start", now, step=step.id, run=self._run)

    def done(self, stands: Standing, record: StepRecord | None, now: float) -> None:
        """So many steps are done; `record` is the last, None where the table told."""
        point = stands.point
        self._journal.add(
            "done",
            now,
            step=None if record is None else record.id,
            steps_done=stands.done,
            early=sorted(stands.early),
            version=point.version,
            protocol=point.protocol.to_action(),
            metadata=point.metadata,
            commits=[] if record is None else list(record.versions),
        )

    def waits(self, step: Step, until: float, now: float) -> None:
        """The next step comes later."""
        self._journal.add("waiting", now, step=step.id, until=until)

    def failed(self, step: Step, message: str, now: float) -> None:
        """A step failed."""
        try:
            self._journal.add("failed", now, step=step.id, message=message)
        except JournalError as error:
            self.remarks.append(error.message)

    def answered(
        self,
        step: Step,
        answer: Answer,
        judged: Judged,
        before: int,
        own: Sequence[Commit],
        stands: Standing,
        seconds: float,
        now: float,
    ) -> None:
        """What came of one statement; `before` is the table's version before it."""
        self._audited(
            step,
            before,
            now,
            version_after=own[-1].version if own else before,
            commits=[commit.version for commit in own],
            outcome=str(judged.verdict),
            error=answer.error,
            message=answer.message,
            protocol=stands.point.protocol.to_action(),
            seconds=round(seconds, 3),
        )

    def unseen(self, step: Step, message: str, before: int, now: float) -> None:
        """A statement was sent, and nobody could see what came of it."""
        self._audited(step, before, now, version_after=None, outcome="unseen", message=message)

    def _audited(self, step: Step, before: int, now: float, **told: Any) -> None:
        plan = self._planned.plan
        problem = self._audit.add(
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            plan=self._planned.id,
            run=self._run,
            table=plan.table,
            location=plan.location,
            step=step.id,
            sql=step.sql,
            version_before=before,
            **({"approvals": list(self._approvals)} if self._approvals else {}),
            **told,
        )
        if problem is not None:
            self.remarks.append(problem)
