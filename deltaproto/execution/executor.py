"""Runs the steps of one plan in order: check, execute, verify, record."""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.errors import ExitCode, TableError
from deltaproto.execution.plan_executor import FREE_SPACE_HINT, ApplySession, PlanExecutor
from deltaproto.execution.preflight import (
    INTERRUPTED,
    REPLAN_HINT,
    RUN_AGAIN_HINT,
    StopReason,
    check_no_other_run,
    check_unchanged,
    check_window_open,
)
from deltaproto.execution.prepare import PreparedPlan
from deltaproto.execution.progress import Progress, is_finished, progress_from_commits
from deltaproto.execution.recorder import RunRecorder
from deltaproto.execution.result import StepRecord, StepStatus
from deltaproto.execution.verify import (
    StatementResult,
    StepVerdict,
    VerifiedStep,
    cross_check_with_delta_rs,
    find_left_vectors,
    is_permission_denied,
    is_storage_full,
    verify_step,
)
from deltaproto.execution.waits import (
    SECONDS_PER_HOUR,
    WaitHandler,
    wait_ends_at,
    wait_not_needed,
)
from deltaproto.identity import current_actor
from deltaproto.planning.plan import Step
from deltaproto.tables.log.commits import Commit, CommitTag, commit_tag_of

# Delta rounds the times that decide which history it deletes: after a refusal, retry this late.
_RETENTION_RETRY_SECONDS = 1 * SECONDS_PER_HOUR
_BACKOFF_SECONDS = 1.0
_SUCCESS_VERDICTS = (StepVerdict.AS_PREDICTED, StepVerdict.EARLY, StepVerdict.NOT_NEEDED)


class StepExecutor(PlanExecutor):
    """Executes the remaining steps of a plan that changes one table."""

    def __init__(
        self, prepared: PreparedPlan, session: ApplySession, recorder: RunRecorder
    ) -> None:
        super().__init__(prepared, session, recorder)
        located = prepared.located
        self._watcher, self._observed = located.watcher, located.observed
        self._progress = located.progress
        self._since, self._held = located.since, located.held
        self._waiting = WaitHandler(prepared.planned, session.limits, session.observer, recorder)
        self._touched = self._progress.started
        self._other_run: StopReason | None = None

    @property
    def progress(self) -> Progress:
        """The progress of the plan."""
        return self._progress

    def _execute_remaining(self) -> StopReason | None:
        steps = self._plan.steps
        # If the next step was interrupted, its commits follow those of the finished steps.
        if self.records and not self._progress.partial:
            self._recorder.done(self._progress, None, self._since or self._limits.now())
        while self._progress.done < len(steps):
            step = steps[self._progress.done]
            stop = self._wait(step) if step.sql is None else self._step(step)
            if stop is not None:
                return stop
        return None

    def _wait(self, step: Step) -> StopReason | None:
        if wait_not_needed(self._plan, self._progress):
            return self._record(
                StepRecord(step.id, StepStatus.SKIPPED, message="no wait is needed")
            )
        until = wait_ends_at(self._planned, self._progress, self._since)
        if self._limits.now() < until:
            stop = StopReason(
                ExitCode.CHANGES,
                "the next step has to wait until history is old enough",
                "run the same command again then, or pass --wait",
                until,
            )
            if self._waiting.ends(step, stop):
                self.records.append(StepRecord(step.id, StepStatus.WAITING))
                return stop
        # The wait ended at this time; the next one starts from here.
        return self._record(StepRecord(step.id, StepStatus.DONE))

    def _step(self, step: Step) -> StopReason | None:
        if step.optional and step.feature in self._progress.early:
            message = f"{step.feature} was dropped in the first call"
            return self._record(StepRecord(step.id, StepStatus.SKIPPED, message=message))
        attempt, began = 0, self._limits.now()
        while True:
            attempt += 1
            stop = self._unready(step)
            if stop is not None:
                return stop
            before = self._progress.baseline.version
            self._recorder.sent(step, before, self._limits.now())
            self._touched = self.executed = True
            try:
                tag = CommitTag(
                    self._planned.id, step.id, self._recorder.run, current_actor().actor
                )
                result = self._send(step, tag)
                verified, own = self._verify(step, result)
            except BaseException as error:
                said = self._redact(f"{type(error).__name__}: {error}")
                self._recorder.unseen(step, said, before, self._limits.now())
                self.records.append(
                    StepRecord(step.id, StepStatus.FAILED, (), (), attempt, message=said)
                )
                raise
            now = self._limits.now()
            self._recorder.answered(
                step, result, verified, before, own, self._progress, now - began, now
            )
            record = StepRecord(
                step.id,
                StepStatus.DONE,
                tuple(commit.version for commit in own),
                tuple(commit.operation for commit in own),
                attempt,
                now - began,
                verified.message,
                verified.remarks,
            )
            if verified.verdict in _SUCCESS_VERDICTS:
                return self._cross_check(step, record, verified) or self._unaudited(step)
            if verified.verdict is StepVerdict.WAIT:
                stop = _young_history(step, now + _RETENTION_RETRY_SECONDS)
                if (unaudited := self._unaudited(step)) is not None:
                    self._report(record._replace(done=StepStatus.WAITING))
                    return unaudited
                if self._waiting.ends(step, stop, refused=True):
                    self._report(record._replace(done=StepStatus.WAITING))
                    return stop
            elif (
                verified.verdict is StepVerdict.CONFLICT
                and attempt <= self._limits.retries
                and self._recorder.unaudited is None
            ):
                pause = _BACKOFF_SECONDS * 2 ** (attempt - 1)
                self._observer.retries(self._planned, step, self._winner(own), pause)
                self._limits.sleep(pause)
            else:
                return self._failed(step, record, verified, own)

    def _unready(self, step: Step) -> StopReason | None:
        """Return why the step cannot be executed now, or None."""
        if self._limits.halted():
            code = ExitCode.FAILED if self._touched else ExitCode.STALE
            return StopReason(code, INTERRUPTED, RUN_AGAIN_HINT)
        while (shut := check_window_open(self._prepared.windows, self._limits.now())) is not None:
            if self._waiting.ends(step, shut):
                self.records.append(StepRecord(step.id, StepStatus.WAITING))
                return shut
        # Each attempt commits before Delta refuses it, so an early one is not sent.
        held, until = self._held or ("", 0.0)
        if held == step.id and self._limits.now() < until:
            young = _young_history(step, until)
            if self._waiting.ends(step, young, refused=True):
                self.records.append(StepRecord(step.id, StepStatus.WAITING))
                return young
        self._held = None
        baseline, progress = self._progress.baseline, self._progress
        observed = self._watcher.observe(baseline.version)
        found = progress_from_commits(
            self._planned.id, self._plan, progress.done, progress.early, observed, baseline
        )
        self._progress = found._replace(
            done=progress.done, early=progress.early, partial=found.partial or progress.partial
        )
        code = ExitCode.FAILED if self._touched else ExitCode.STALE
        self._notice_other_run(found, code)
        stop = check_unchanged(self._plan, step, self._progress, code) or self._other_run
        if stop is not None:
            self.records.append(StepRecord(step.id, StepStatus.FAILED, message=stop.message))
        return stop

    def _notice_other_run(self, found: Progress, code: ExitCode) -> None:
        """Remember another run's commits: a later observation starts after them."""
        self._other_run = self._other_run or check_no_other_run(
            found.own.values(), self._recorder.run, self._observed.now.version, code
        )

    def _verify(
        self, step: Step, result: StatementResult
    ) -> tuple[VerifiedStep, tuple[Commit, ...]]:
        progress = self._progress
        baseline, done, early = progress.baseline, progress.done, progress.early
        observed = self._watcher.observe(baseline.version)
        after = progress_from_commits(self._planned.id, self._plan, done, early, observed, baseline)
        self._notice_other_run(after, ExitCode.FAILED)
        own = tuple(
            commit
            for commit in after.own.get(step.id, ())
            if (tag := commit_tag_of(commit)) is not None and tag.run == self._recorder.run
        )
        operations = [commit.operation for commit in own]
        verified = verify_step(
            step, result, operations, observed.now.protocol, early, resumed=progress.partial
        )
        if after.foreign is not None:
            who = after.foreign.commit.in_words
            said = f"{after.foreign.what} changed meanwhile: {who}"
            verified = VerifiedStep(StepVerdict.UNEXPECTED, said)
        elif verified.verdict is StepVerdict.LOST and is_finished(
            step, own, early, observed.now.protocol
        ):
            verified = VerifiedStep(
                StepVerdict.AS_PREDICTED, remarks=(f"Spark disconnected: {result.message}",)
            )
        verified = find_left_vectors((step,), observed) or verified
        partial = progress.partial or bool(own)
        self._progress = after._replace(done=done, early=early, own={}, partial=partial)
        return verified, own

    def _cross_check(
        self, step: Step, record: StepRecord, verified: VerifiedStep
    ) -> StopReason | None:
        protocol = self._progress.baseline.protocol
        agrees, said = cross_check_with_delta_rs(self._watcher.uri, self._options, protocol)
        record = record._replace(delta_rs=said)
        if not agrees:
            wrong = VerifiedStep(
                StepVerdict.UNEXPECTED, f"the log has {protocol.in_words}, and {said}"
            )
            return self._failed(step, record, wrong, ())
        if verified.verdict is StepVerdict.EARLY:
            early = self._progress.early | {step.feature or ""}
            self._progress = self._progress._replace(early=early)
        if verified.verdict is StepVerdict.NOT_NEEDED:
            record = record._replace(done=StepStatus.SKIPPED)
        return self._record(record)

    def _record(self, record: StepRecord) -> StopReason | None:
        """Record a finished step. Return a reason to stop before the next one, or None."""
        self._progress = self._progress._replace(done=self._progress.done + 1, partial=False)
        self._report(record)
        self._since = self._limits.now()
        self._recorder.done(self._progress, record, self._since)
        return None

    def _failed(
        self, step: Step, record: StepRecord, verified: VerifiedStep, own: Sequence[Commit]
    ) -> StopReason:
        if verified.verdict is StepVerdict.CONFLICT:
            said = f"{step.id} lost {record.attempts} times; the last winner is {self._winner(own)}"
        else:
            said = f"{step.id} {_FAILURE_PHRASES[verified.verdict]}: {verified.message}"
        hint = verified.hint or _HINTS[verified.verdict]
        storage = (
            _storage_hint(verified.message) if verified.verdict is StepVerdict.REFUSED else None
        )
        if own:
            made = ", ".join(f"{commit.version} ({commit.operation})" for commit in own)
            said += f"; the table has its commits {made}"
            if verified.verdict not in (StepVerdict.UNEXPECTED, StepVerdict.LOST):
                hint = f"fix the cause and run the same command again: it resumes {step.id}"
        hint = storage or hint
        self._report(record._replace(done=StepStatus.FAILED, message=verified.message))
        self._recorder.failed(step, verified.message, self._limits.now())
        return StopReason(ExitCode.FAILED, said, hint)

    def _unaudited(self, step: Step) -> StopReason | None:
        """Stop before another statement if the last one is missing in the audit log."""
        problem = self._recorder.unaudited
        if problem is None:
            return None
        said = f"{step.id} was sent, but {problem}: no more statements are sent"
        return StopReason(ExitCode.FAILED, said, FREE_SPACE_HINT)

    def _winner(self, own: Sequence[Commit]) -> str:
        """Describe the newest commit by another writer."""
        mine = {commit.version for commit in own}
        try:
            observed = self._watcher.observe(self._observed.now.version)
        except TableError as error:
            return f"unknown ({error.message})"
        others = [each for each in observed.commits if each.version not in mine]
        others = [each for each in others if commit_tag_of(each) is None]
        return others[-1].in_words if others else "not visible in the log"


def _young_history(step: Step, until: float) -> StopReason:
    return StopReason(
        ExitCode.CHANGES,
        f"{step.id} has to wait: more history must expire first",
        "run the same command again then, or pass --wait",
        until,
    )


_FAILURE_PHRASES = {
    StepVerdict.LOST: "was interrupted: the connection to Spark is lost",
    StepVerdict.REFUSED: "was rejected",
    StepVerdict.UNEXPECTED: "did not do what was predicted",
}
_PERMISSION_HINT = (
    "give Spark's account write access to the table's folder, and run the same command again"
)
_FULL_HINT = (
    "free some space for the table and for Spark's temporary files, and run the same command again"
)


def _storage_hint(message: str) -> str | None:
    """Return a hint for storage that refused to write; None for any other failure."""
    if is_permission_denied(message):
        return _PERMISSION_HINT
    return _FULL_HINT if is_storage_full(message) else None


_HINTS = {
    StepVerdict.LOST: "start Spark, and run the same command again: it finds the finished steps",
    StepVerdict.CONFLICT: "run the same command when the table is idle, or stop the other writer",
    StepVerdict.REFUSED: REPLAN_HINT,
    StepVerdict.UNEXPECTED: REPLAN_HINT,
}
