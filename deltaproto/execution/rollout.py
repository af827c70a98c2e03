"""Applies the plans of a folder in waves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache

from deltaproto.errors import ExitCode, TableError, UsageError
from deltaproto.execution.apply import Confirm, apply_plans
from deltaproto.execution.hooks import AFTER_TABLE, BEFORE_TABLE, BEFORE_WAVE, ON_FAILURE, Hooks
from deltaproto.execution.plan_executor import ApplySession
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import INTERRUPTED
from deltaproto.execution.rehearse import rehearse_plan
from deltaproto.execution.replan import plan_again
from deltaproto.execution.result import ApplyResult, ApplyStatus
from deltaproto.execution.rollout_file import Rollout
from deltaproto.execution.rollout_log import Decisions, RolloutLog
from deltaproto.execution.rollout_state import (
    RolloutProgress,
    find_obstacle,
    match_plans,
    read_progress,
)
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.planning.plan import Plan
from deltaproto.planning.rollout import group_id
from deltaproto.tables.engine_errors import contain_table_errors

_ENDED = (ApplyStatus.DONE, ApplyStatus.NOTHING)
_MAX_SLEEP = 1.0
_GATES_OF_RUN = {"window", "engine"}
"""gates that may pass in another run, at another time or on another machine"""


class RolloutRun:
    """One call of `apply` for a folder with a rollout.

    With a policy, it plans tables that changed again.

    Args:
        plans: the plans of the rollout's folder.
        save: writes a plan to a file.
        hooks: None: there are none.
        rehearse: whether to rehearse a plan of each group.
        scratch: where the rehearsals create clones; None: a temporary folder.

    Raises:
        UsageError: when the plans are not those of the rollout, or its journal is damaged.
    """

    def __init__(
        self,
        rollout: Rollout,
        plans: Sequence[LoadedPlan],
        session: ApplySession,
        save: Callable[[Plan, str], None],
        *,
        hooks: Hooks | None = None,
        client_files: Sequence[str] = (),
        rehearse: bool = False,
        scratch: str | None = None,
    ) -> None:
        context, audit = session.context, session.audit(rollout.path)
        self._rollout, self._hooks, self._save = rollout, hooks, save
        self._log = RolloutLog(rollout, context.folder(rollout.path), audit, session.redact)
        self._plans = match_plans(self._log, plans)
        self._ids = {planned.id: table for table, planned in self._plans.items()}
        """the rollout's id for the table of a plan"""
        self._objections: dict[str, str] = {}
        """why a table that changed has no new plan"""
        self._users = context.policy and ClientScope(context.policy, client_files, ())
        self._now, self._limits = session.limits.now, session.limits
        self._lock, self._rehearsal_lock = threading.Lock(), threading.Lock()
        self._scratch = scratch
        self._rehearsals: ApplySession | None = None
        if rehearse:
            # Tables are changed at the same time, and commits are tagged by session.
            runner = cache(lambda: session.runner().apart())
            self._rehearsals = session._replace(runner=runner, parallel=1)
        self._started: set[str] = set()
        """tables with at least one executed step, for which nothing can be rehearsed"""
        self._tried: set[str] = set()
        """plans that this run cannot execute for a reason unrelated to the table"""
        # The rollout does the waiting: a waiting table must not hold up the others of its wave.
        limits = session.limits._replace(wait=False, halted=self._is_aborted)
        self._session = session._replace(limits=limits)
        if not session.dry_run:
            self._session = self._session._replace(around=self._run_table)

    def apply(self, confirm: Confirm, *, ask_all_first: bool) -> Generator[ApplyResult, None, None]:
        """Apply the plans that may run now, wave by wave, and yield every result.

        Raises:
            PlanLockedError: when another process applies the rollout.
            UsageError: when the journal or the audit log cannot be read or written.
        """
        if self._session.dry_run:
            yield from self._apply_tables(self._ready(self.progress()), confirm, ask_all_first)
            return
        with self._log.locked():
            while True:
                progress = self.progress()
                if self._plan_again(progress):
                    continue
                ready = self._ready(progress)
                if ready and self._begin_wave(progress):
                    yield from self._apply_tables(ready, confirm, ask_all_first)
                elif not (self._limits.wait and self._sleep_until(progress.next_at)):
                    return

    def progress(self) -> RolloutProgress:
        """Read how far the rollout has come."""
        return read_progress(self._log, self._plans, self._session.context, self._now())

    def _ready(self, progress: RolloutProgress) -> list[LoadedPlan]:
        """Return the plans of the current wave that may run now."""
        self._started |= {each.table.plan_id for each in progress.ready if each.started}
        ids = (each.table.plan_id for each in progress.ready)
        return [self._plans[each] for each in ids if each not in self._tried]

    def _plan_again(self, progress: RolloutProgress) -> bool:
        """Plan the tables of the current wave again that changed. Return True if any has a new plan
        or needs none."""
        decided = False
        for each in progress.ready:
            old = each.table.plan_id
            if not each.changed or old in self._objections or self._users is None:
                continue
            try:
                with contain_table_errors():
                    context, folder = self._session.context, self._log.folder
                    found = plan_again(
                        self._plans[old], self._users, context, folder, self._save, self._now()
                    )
            except TableError as error:
                found = error.message
            if isinstance(found, str):
                self._objections[old] = found
                continue
            decided = True
            if found is None:
                reason = "it changed, and meets the policy without its plan"
                self._log.decide("skip", self._now(), name=old, reason=reason)
                continue
            self._log.decide("replan", self._now(), name=old, reason=each.message, shown=found.id)
            self._plans[old], self._ids[found.id] = found, old
        return decided

    def _apply_tables(
        self, ready: Sequence[LoadedPlan], confirm: Confirm, ask_all_first: bool
    ) -> Iterator[ApplyResult]:
        for applied in apply_plans(ready, self._session, confirm, ask_all_first=ask_all_first):
            waits = applied.earliest is not None or _failed_gates(applied) == {"window"}
            if applied.status not in _ENDED and not waits:
                self._tried.add(self._ids[applied.planned.id])
            yield applied

    def _begin_wave(self, progress: RolloutProgress) -> bool:
        """Run the wave's hook once. If it fails, pause the rollout and return False."""
        wave = progress.current
        if wave is None or wave.name in self._log.decisions().begun:
            return True
        if self._passes(BEFORE_WAVE, self._rollout.path, wave.name):
            self._log.add("wave", self._now(), name=wave.name)
            return True
        return False

    def _run_table(self, planned: LoadedPlan, run: Callable[[], ApplyResult]) -> ApplyResult:
        table = planned.plan.table
        with self._lock:
            blocked = self._find_obstacle(self._log.decisions())
        blocked = blocked or self._rehearse(planned)
        if blocked is None and not self._passes(BEFORE_TABLE, planned.path, table):
            blocked = "its hook failed"
        if blocked is not None:
            message = f"not started: {blocked}"
            return ApplyResult(planned, ApplyStatus.WAITING, ExitCode.CHANGES, message)
        applied, name = run(), self._ids[planned.id]
        if _is_failure(applied):
            if name in self._objections:
                why = f"{applied.message}; a new plan needs your decision: {self._objections[name]}"
                hint = "plan the table again, or exclude it with deltaproto rollout skip"
                applied = applied._replace(message=why, hint=hint)
            with self._lock:
                self._log.add("failed", self._now(), name=name, reason=applied.message)
            self._passes(ON_FAILURE, planned.path, table, applied.message)
        self._passes(AFTER_TABLE, planned.path, table, str(applied.status))
        return applied

    def _rehearse(self, planned: LoadedPlan) -> str | None:
        """Rehearse the first plan of each group. Return why the table may not be started, or None.

        If the rehearsal does not go as predicted, the rollout is paused.
        """
        if self._rehearsals is None or self._ids[planned.id] in self._started:
            return None
        group = group_id(planned.plan)
        with self._rehearsal_lock:
            # Another plan may have been rehearsed meanwhile, which takes minutes.
            decisions = self._log.decisions()
            blocked = self._find_obstacle(decisions)
            if blocked is not None or group in decisions.rehearsed:
                return blocked
            try:
                result = rehearse_plan(planned, self._rehearsals, self._scratch)
                problem = f"{result.message}; {result.hint}" if result.hint else result.message
            except UsageError as error:
                result, problem = None, f"{error.message}; {error.hint}"
            if result is not None and result.status in _ENDED:
                name = self._ids[planned.id]
                self._log.decide("rehearse", self._now(), name=name, reason=problem, shown=group)
                return self._find_obstacle(self._log.decisions())
            if result is not None and (
                result.status is ApplyStatus.UNREADABLE
                or any(not gate.passed for gate in result.gates)
            ):
                # `apply` has the same gates, and reports it.
                return None
            with self._lock:
                reason = f"{planned.plan.table}: the rehearsal did not succeed: {problem}"
                self._log.decide("pause", self._now(), reason=reason)
        return "its rehearsal did not succeed"

    def _find_obstacle(self, decisions: Decisions) -> str | None:
        """Return why no other table may be started now, or None."""
        found = find_obstacle(decisions, len(decisions.failed), self._rollout.max_failures)
        return None if found is None else f"the rollout is {found[0]}"

    def _passes(self, hook: str, file: str, *arguments: str) -> bool:
        """Run a hook. If it fails, pause the rollout and return False."""
        problem = None if self._hooks is None else self._hooks.run(hook, file, *arguments)
        if problem is None:
            return True
        with self._lock:
            self._log.decide("pause", self._now(), reason=f"{arguments[0]}: {problem}")
        return False

    def _is_aborted(self) -> bool:
        return self._log.decisions().aborted is not None

    def _sleep_until(self, until: float | None) -> bool:
        """Sleep until a time, or until a decision is recorded. Return False without a time."""
        if until is None:
            return False
        before = self._log.decisions()
        while (left := until - self._now()) > 0 and self._log.decisions() == before:
            self._limits.sleep(min(left, _MAX_SLEEP))
        return True


def _is_failure(applied: ApplyResult) -> bool:
    """Return True if a table failed; False if only this run could not execute it."""
    if applied.message == INTERRUPTED:
        return False
    if applied.status is not ApplyStatus.REFUSED:
        return applied.status in (ApplyStatus.FAILED, ApplyStatus.UNREADABLE)
    # If no gate failed, another run holds the plan.
    return not _failed_gates(applied) <= _GATES_OF_RUN and applied.code is not ExitCode.USAGE


def _failed_gates(applied: ApplyResult) -> set[str]:
    return {gate.name for gate in applied.gates if not gate.passed}
