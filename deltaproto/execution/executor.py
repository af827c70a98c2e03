"""The steps of one plan, one after the other: check, execute, verify, record."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence

from deltaproto.errors import ExitCode, TableError
from deltaproto.execution.audit import Audit
from deltaproto.execution.journal import Journal, Sent
from deltaproto.execution.preflight import StopReason, another_run, changed, closed, describe_commit
from deltaproto.execution.prepare import PreparedPlan
from deltaproto.execution.progress import Progress, is_finished, progress_from_commits
from deltaproto.execution.recorder import Ledger
from deltaproto.execution.result import Observer, StepRecord, StepStatus
from deltaproto.execution.runner import StatementRunner
from deltaproto.execution.verify import (
    StatementResult,
    StepVerdict,
    VerifiedStep,
    denied,
    second_opinion,
    verify_step,
)
from deltaproto.execution.waits import HOUR, Waiting, WaitLimits, wait_ends_at, wait_not_needed
from deltaproto.identity import current_actor
from deltaproto.planning.plan import Step
from deltaproto.tables.log.commit_tag import Mark, mark_of
from deltaproto.tables.log.commits import Commit

# Delta rounds the times by which it deletes history: after a refusal we come back so much later.
_AGAIN = 1 * HOUR
_BACKOFF = 1.0
_ROOM = "make room for it, and run the same command again: it completes the audit log"
_GOOD = (StepVerdict.AS_PREDICTED, StepVerdict.EARLY, StepVerdict.NOT_NEEDED)


class Stepping:
    """Carries out what is left of a plan.

    Args:
        audit: gets a line for each statement.
        storage_options: for the second reader.
        redact: takes credentials out of what the engine says.
    """

    def __init__(
        self,
        prepared: PreparedPlan,
        runner: StatementRunner,
        journal: Journal,
        audit: Audit,
        observer: Observer,
        limits: WaitLimits,
        storage_options: Mapping[str, str],
        redact: Callable[[str], str],
    ) -> None:
        self._prepared, self._runner = prepared, runner
        self._planned, self._plan = prepared.planned, prepared.planned.plan
        self._observer, self._limits = observer, limits
        self._options, self._redact = storage_options, redact
        self._stands, self._since = prepared.stands, prepared.since
        self._run = uuid.uuid4().hex[:8]
        self._ledger = Ledger(prepared.planned, self._run, journal, audit, prepared.approvals)
        self._waiting = Waiting(prepared.planned, limits, observer, self._ledger)
        self._touched = prepared.stands.started
        self.records: list[StepRecord] = []
        self.executed = False
        """whether a statement was sent"""

    @property
    def stands(self) -> Progress:
        """How far it has come."""
        return self._stands

    @property
    def remarks(self) -> list[str]:
        """What went wrong beside the steps."""
        return self._ledger.remarks

    def go(self, unaudited: Sequence[Sent] = ()) -> StopReason | None:
        """Execute step after step; None when all are done.

        Args:
            unaudited: statements of earlier runs, which get their lines in the audit log first.

        Raises:
            JournalError: when the journal cannot be written.
            TableError: when the table cannot be read.
        """
        self._ledger.complete(unaudited, self._prepared.watched, self._limits.now())
        if self._ledger.unaudited is not None:
            return StopReason(
                ExitCode.FAILED, f"{self._ledger.unaudited}: no statement is sent", _ROOM
            )
        steps = self._plan.steps
        self.records = [
            StepRecord(step.id, StepStatus.EARLIER) for step in steps[: self._stands.done]
        ]
        # Where the next step was cut off, its commits must lie after what the journal says is done.
        if self.records and not self._stands.partial:
            self._ledger.done(self._stands, None, self._since or self._limits.now())
        while self._stands.done < len(steps):
            step = steps[self._stands.done]
            stop = self._wait(step) if step.sql is None else self._step(step)
            if stop is not None:
                return stop
        return None

    def _wait(self, step: Step) -> StopReason | None:
        if wait_not_needed(self._plan, self._stands):
            return self._record(
                StepRecord(step.id, StepStatus.SKIPPED, message="nothing has to wait")
            )
        until = wait_ends_at(self._planned, self._stands, self._since)
        if self._limits.now() < until:
            stop = StopReason(
                ExitCode.CHANGES,
                "the next step has to wait until history is old enough",
                "run the same command again then, or give --wait",
                until,
            )
            if self._waiting.ends(step, stop):
                self.records.append(StepRecord(step.id, StepStatus.WAITING))
                return stop
        # The wait is over since then, so that the next one counts from there.
        return self._record(StepRecord(step.id, StepStatus.DONE))

    def _step(self, step: Step) -> StopReason | None:
        if step.optional and step.feature in self._stands.early:
            message = f"{step.feature} went in the first call"
            return self._record(StepRecord(step.id, StepStatus.SKIPPED, message=message))
        attempt, began = 0, self._limits.now()
        while True:
            attempt += 1
            stop = self._unready(step)
            if stop is not None:
                return stop
            before = self._stands.point.version
            self._ledger.sent(step, before, self._limits.now())
            self._touched = self.executed = True
            try:
                answer = self._execute(step)
                judged, own = self._look_after(step, answer)
            except BaseException as error:
                said = self._redact(f"{type(error).__name__}: {error}")
                self._ledger.unseen(step, said, before, self._limits.now())
                self.records.append(
                    StepRecord(step.id, StepStatus.FAILED, (), (), attempt, message=said)
                )
                raise
            now = self._limits.now()
            self._ledger.answered(step, answer, judged, before, own, self._stands, now - began, now)
            record = StepRecord(
                step.id,
                StepStatus.DONE,
                tuple(commit.version for commit in own),
                tuple(commit.operation for commit in own),
                attempt,
                now - began,
                judged.message,
                judged.remarks,
            )
            if judged.verdict in _GOOD:
                return self._verified(step, record, judged) or self._unaudited(step)
            if judged.verdict is StepVerdict.WAIT:
                hint = "run the same command again then, or give --wait"
                said = f"{step.id} has to wait: more history must grow old"
                stop = StopReason(ExitCode.CHANGES, said, hint, now + _AGAIN)
                if (unaudited := self._unaudited(step)) is not None:
                    self._tell(record._replace(done=StepStatus.WAITING))
                    return unaudited
                if self._waiting.ends(step, stop):
                    self._tell(record._replace(done=StepStatus.WAITING))
                    return stop
            elif (
                judged.verdict is StepVerdict.CONFLICT
                and attempt <= self._limits.retries
                and self._ledger.unaudited is None
            ):
                pause = _BACKOFF * 2 ** (attempt - 1)
                self._observer.retries(self._planned, step, self._winner(own), pause)
                self._limits.sleep(pause)
            else:
                return self._failed(step, record, judged, own)

    def _unready(self, step: Step) -> StopReason | None:
        """Why the step is not executed now."""
        if self._limits.halted():
            code = ExitCode.FAILED if self._touched else ExitCode.STALE
            return StopReason(
                code, "it was interrupted", "the same command again goes on from there"
            )
        while (shut := closed(self._prepared.windows, self._limits.now())) is not None:
            if self._waiting.ends(step, shut):
                self.records.append(StepRecord(step.id, StepStatus.WAITING))
                return shut
        point, stands = self._stands.point, self._stands
        sight = self._prepared.watched.look(point.version)
        found = progress_from_commits(
            self._planned.id, self._plan, stands.done, stands.early, sight, point
        )
        self._stands = found._replace(
            done=stands.done, early=stands.early, partial=found.partial or stands.partial
        )
        code = ExitCode.FAILED if self._touched else ExitCode.STALE
        stop = changed(self._plan, step, self._stands, code) or another_run(
            found.own.values(), self._run, self._prepared.sight.now.version, code
        )
        if stop is not None:
            self.records.append(StepRecord(step.id, StepStatus.FAILED, message=stop.message))
        return stop

    def _execute(self, step: Step) -> StatementResult:
        assert step.sql is not None
        mark = Mark(self._planned.id, step.id, self._run, current_actor().actor)

        def progress(done: int, known: int) -> None:
            self._observer.progress(self._planned, step, done, known)

        self._observer.began(self._planned, step)
        answer = self._runner.run(step.sql, mark.text(), progress)
        return answer._replace(message=self._redact(answer.message))

    def _look_after(
        self, step: Step, answer: StatementResult
    ) -> tuple[VerifiedStep, tuple[Commit, ...]]:
        stands = self._stands
        point, done, early = stands.point, stands.done, stands.early
        sight = self._prepared.watched.look(point.version)
        after = progress_from_commits(self._planned.id, self._plan, done, early, sight, point)
        own = tuple(
            commit
            for commit in after.own.get(step.id, ())
            if (mark := mark_of(commit)) is not None and mark.run == self._run
        )
        operations = [commit.operation for commit in own]
        judged = verify_step(
            step, answer, operations, sight.now.protocol, early, resumed=stands.partial
        )
        if after.foreign is not None:
            who = describe_commit(after.foreign.commit)
            said = f"{after.foreign.what} was changed meanwhile: {who}"
            judged = VerifiedStep(StepVerdict.UNEXPECTED, said)
        elif judged.verdict is StepVerdict.LOST and is_finished(
            step, own, early, sight.now.protocol
        ):
            judged = VerifiedStep(
                StepVerdict.AS_PREDICTED, remarks=(f"Spark went away: {answer.message}",)
            )
        partial = stands.partial or bool(own)
        self._stands = after._replace(done=done, early=early, own={}, partial=partial)
        return judged, own

    def _verified(self, step: Step, record: StepRecord, judged: VerifiedStep) -> StopReason | None:
        protocol = self._stands.point.protocol
        agrees, said = second_opinion(self._prepared.watched.uri, self._options, protocol)
        record = record._replace(delta_rs=said)
        if not agrees:
            wrong = VerifiedStep(
                StepVerdict.UNEXPECTED, f"the log says {protocol.in_words}, and {said}"
            )
            return self._failed(step, record, wrong, ())
        if judged.verdict is StepVerdict.EARLY:
            early = self._stands.early | {step.feature or ""}
            self._stands = self._stands._replace(early=early)
        if judged.verdict is StepVerdict.NOT_NEEDED:
            record = record._replace(done=StepStatus.SKIPPED)
        return self._record(record)

    def _record(self, record: StepRecord) -> StopReason | None:
        """A step more is done, and nothing stops the next."""
        self._stands = self._stands._replace(done=self._stands.done + 1, partial=False)
        self._tell(record)
        self._since = self._limits.now()
        self._ledger.done(self._stands, record, self._since)
        return None

    def _tell(self, record: StepRecord) -> None:
        self.records.append(record)
        self._observer.finished(self._planned, record)

    def _failed(
        self, step: Step, record: StepRecord, judged: VerifiedStep, own: Sequence[Commit]
    ) -> StopReason:
        if judged.verdict is StepVerdict.CONFLICT:
            said = f"{step.id} lost {record.attempts} times; the last winner is {self._winner(own)}"
        else:
            said = f"{step.id} {_SAID[judged.verdict]}: {judged.message}"
        hint = _HINTS[judged.verdict]
        if judged.verdict is StepVerdict.REFUSED and denied(judged.message):
            hint = _NO_PERMISSION
        if own:
            made = ", ".join(f"{commit.version} ({commit.operation})" for commit in own)
            said += f"; its commits {made} are in the table"
            if judged.verdict not in (StepVerdict.UNEXPECTED, StepVerdict.LOST):
                hint = f"fix the cause and run the same command again: it resumes {step.id}"
        self._tell(record._replace(done=StepStatus.FAILED, message=judged.message))
        self._ledger.failed(step, judged.message, self._limits.now())
        return StopReason(ExitCode.FAILED, said, hint)

    def _unaudited(self, step: Step) -> StopReason | None:
        """Stop before another statement if the last one has no line in the audit log."""
        problem = self._ledger.unaudited
        if problem is None:
            return None
        said = f"{step.id} was sent, and {problem}: no other statement is sent"
        return StopReason(ExitCode.FAILED, said, _ROOM)

    def _winner(self, own: Sequence[Commit]) -> str:
        """The newest commit of somebody else."""
        mine = {commit.version for commit in own}
        try:
            sight = self._prepared.watched.look(self._prepared.sight.now.version)
        except TableError as error:
            return f"not known ({error.message})"
        others = [each for each in sight.commits if each.version not in mine]
        others = [each for each in others if mark_of(each) is None]
        return describe_commit(others[-1]) if others else "not to be seen in the log"


_SAID = {
    StepVerdict.LOST: "was cut off, as Spark is gone",
    StepVerdict.REFUSED: "was refused",
    StepVerdict.UNEXPECTED: "did not do what was predicted",
}
_PLAN_AGAIN = "plan again: the rest follows from the table as it is now"
_NO_PERMISSION = (
    "let whoever runs Spark write to the table's folder, and run the same command again"
)
_HINTS = {
    StepVerdict.LOST: "start Spark, and run the same command again: it finds out what is done",
    StepVerdict.CONFLICT: "run the same command again at a quieter time, or stop the other writer",
    StepVerdict.REFUSED: _PLAN_AGAIN,
    StepVerdict.UNEXPECTED: _PLAN_AGAIN,
}
