"""Writes the journal (used to resume) and the audit log (kept)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.progress import Progress, TableWatcher
from deltaproto.execution.result import StepRecord
from deltaproto.execution.run_log import AuditLog, Journal, JournalError, SentStatement
from deltaproto.execution.verify import StatementResult, VerifiedStep
from deltaproto.planning.plan import Step
from deltaproto.tables.log.commits import Commit, commit_tag_of


class RunRecorder:
    """Writes the journal and the audit log. Times are in seconds since the epoch.

    A journal failure stops the run (`JournalError`). An audit log failure (`unaudited`) stops it
    before the next statement. The next run completes the audit log: it adds a line for each
    statement that the journal has as sent but not as audited.
    """

    def __init__(
        self,
        planned: LoadedPlan,
        journal: Journal,
        audit: AuditLog,
        approvals: Sequence[str] = (),
    ) -> None:
        self._planned, self._approvals = planned, approvals
        self._journal, self._audit = journal, audit
        self.run = uuid.uuid4().hex[:8]
        """id of this run, in its commits and in both files"""
        self.remarks: list[str] = []
        self.unaudited: str | None = None
        """why the audit log lacks the last statement, or None"""

    def sent(self, step: Step, before: int, now: float) -> None:
        """Record that a statement is about to be sent; `before` is the table's version."""
        self._journal.add("start", now, step=step.id, run=self.run, version=before)

    def complete(self, sent: Sequence[SentStatement], watcher: TableWatcher, now: float) -> None:
        """Write the audit lines missing from earlier runs, from the commits in the table."""
        steps = {step.id: step for step in self._planned.plan.steps}
        for each in sent:
            if each.step not in steps:
                continue
            own = [
                commit
                for commit in watcher.observe(each.version).commits
                if (tag := commit_tag_of(commit)) is not None
                and tag[:3] == (self._planned.id, each.step, each.run)
            ]
            done = self._add_audit_line(
                steps[each.step],
                each.version,
                each.at,
                run=each.run,
                version_after=own[-1].version if own else each.version,
                commits=[commit.version for commit in own],
                outcome="recovered",
                message="written by a later run, from the commits in the table",
            )
            if not done:
                return
            self._journal.add("audited", now, step=each.step, run=each.run)

    def done(self, progress: Progress, record: StepRecord | None, now: float) -> None:
        """Record the finished steps; `record` is the last one, None if read from the table."""
        baseline = progress.baseline
        self._journal.add(
            "done",
            now,
            step=None if record is None else record.id,
            steps_done=progress.done,
            early=sorted(progress.early),
            version=baseline.version,
            protocol=baseline.protocol.to_action(),
            metadata=baseline.metadata,
            commits=[] if record is None else list(record.versions),
        )

    def waits(self, step: Step, until: float, now: float, *, refused: bool = False) -> None:
        """Record that the next step waits, or that Delta refused it until then."""
        refusal = {"refused": True} if refused else {}
        self._journal.add("waiting", now, step=step.id, until=until, **refusal)

    def failed(self, step: Step, message: str, now: float) -> None:
        """Record a failed step."""
        try:
            self._journal.add("failed", now, step=step.id, message=message)
        except JournalError as error:
            self.remarks.append(error.message)

    def answered(
        self,
        step: Step,
        result: StatementResult,
        verified: VerifiedStep,
        before: int,
        own: Sequence[Commit],
        progress: Progress,
        seconds: float,
        now: float,
    ) -> None:
        """Record the result of one statement; `before` is the table's version before it."""
        done = self._add_audit_line(
            step,
            before,
            now,
            version_after=own[-1].version if own else before,
            commits=[commit.version for commit in own],
            outcome=str(verified.verdict),
            error=result.error,
            message=result.message,
            protocol=progress.baseline.protocol.to_action(),
            seconds=round(seconds, 3),
        )
        if done:
            self._journal.add("audited", now, step=step.id, run=self.run)

    def unseen(self, step: Step, message: str, before: int, now: float) -> None:
        """Record a statement whose effect could not be determined."""
        self._add_audit_line(
            step, before, now, version_after=None, outcome="unseen", message=message
        )

    def _add_audit_line(self, step: Step, before: int, now: float, **members: Any) -> bool:
        plan = self._planned.plan
        problem = self._audit.add(
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            plan=self._planned.id,
            run=members.pop("run", self.run),
            table=plan.table,
            location=plan.location,
            step=step.id,
            sql=step.sql,
            version_before=before,
            **({"approvals": list(self._approvals)} if self._approvals else {}),
            **members,
        )
        self.unaudited = problem
        if problem is not None:
            self.remarks.append(problem)
        return problem is None
