"""The progress of a rollout, read from the tables, the journals and the decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from deltaproto.counts import counted, tables_such_as
from deltaproto.errors import DeltaprotoError, ExitCode, UsageError
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import check_window_open, fingerprint_gate
from deltaproto.execution.prepare import ApplyContext, locate_progress
from deltaproto.execution.replan import load_replanned
from deltaproto.execution.rollout_file import Rollout
from deltaproto.execution.rollout_log import Decisions, RolloutLog
from deltaproto.execution.run_log import read_journal
from deltaproto.execution.verify import find_left_vectors
from deltaproto.execution.waits import SECONDS_PER_HOUR, wait_ends_at, wait_not_needed
from deltaproto.execution.warning import maintenance_windows_for
from deltaproto.interrupts import work_ahead
from deltaproto.location import locate
from deltaproto.planning.rollout import RolloutTable, Wave
from deltaproto.tables.engine_errors import contain_table_errors


class RolloutStatus(StrEnum):
    """The status of a rollout, a wave or a table."""

    DONE = "done"
    """every step is done, or every table of it has ended"""
    SKIPPED = "skipped"
    """a table that `rollout skip` excluded"""
    FAILED = "failed"
    """a table that failed since the last `resume`"""
    READY = "ready"
    """may run now"""
    WAITING = "waiting"
    """may run at a later time"""
    PENDING = "pending"
    """an earlier wave is not done"""
    STOPPED = "stopped"
    """more tables failed than the policy accepts"""
    PAUSED = "paused"
    """no more tables are started until it is resumed"""
    ABORTED = "aborted"
    """no more statements are sent"""


ENDED = (RolloutStatus.DONE, RolloutStatus.SKIPPED, RolloutStatus.FAILED)
"""statuses of a table for which nothing will be executed"""


class TableProgress(NamedTuple):
    """The progress of one table."""

    table: RolloutTable
    """the table and its plan"""
    status: RolloutStatus
    """whether it is done, may run, waits, failed or is skipped"""
    until: float | None = None
    """when it may run, in seconds since the epoch; None: now, or unknown"""
    since: float | None = None
    """when it ended, in seconds since the epoch"""
    message: str = ""
    """the cause of a failure, the reason of a skip, or what is waited for"""
    unread: bool = False
    """whether the table could not be read"""
    changed: bool = False
    """whether the table changed since it was planned, although no step was executed"""
    started: bool = False
    """whether a step was executed"""
    steps_left: int = 0
    """steps of its plan that are not done, including waits; 0 if it is skipped"""
    unrecorded: bool = False
    """whether its log shows steps of the plan that no journal has"""

    def __repr__(self) -> str:
        return f"<TableProgress {self.table.table}: {self.status}>"


class WaveProgress(NamedTuple):
    """The progress of one wave."""

    name: str
    """canary, or wave and its number"""
    status: RolloutStatus
    """done, ready, waiting or pending"""
    tables: tuple[TableProgress, ...]
    """its tables"""
    until: float | None = None
    """when its next step may run, in seconds since the epoch; None: now, or unknown"""
    message: str = ""
    """what it waits for"""

    def __repr__(self) -> str:
        return f"<WaveProgress {self.name}: {self.status}, {counted(len(self.tables), 'table')}>"

    @property
    def ended_at(self) -> float | None:
        """When its last table ended; None if all were skipped."""
        return max((each.since for each in self.tables if each.since is not None), default=None)


class RolloutProgress(NamedTuple):
    """The progress of a rollout."""

    rollout: Rollout
    status: RolloutStatus
    """whether steps may run, wait, or are blocked"""
    waves: tuple[WaveProgress, ...]
    """the waves, in order"""
    plans: Mapping[str, LoadedPlan]
    """the current plan of each table, by the rollout's id for the table"""
    message: str = ""
    """why it does not continue"""
    rehearsed: frozenset[str] = frozenset()
    """the groups (`group_id`) with a plan whose rehearsal on a clone went as predicted"""
    note: str = ""
    """what is unknown because journals are missing"""

    @property
    def current(self) -> WaveProgress | None:
        """The first wave that is not done, or None."""
        return next((wave for wave in self.waves if wave.status is not RolloutStatus.DONE), None)

    @property
    def ready(self) -> tuple[TableProgress, ...]:
        """The tables that may run now."""
        if self.status is not RolloutStatus.READY or self.current is None:
            return ()
        return tuple(each for each in self.current.tables if each.status is RolloutStatus.READY)

    @property
    def next_at(self) -> float | None:
        """When the next step may run, in seconds since the epoch. None: now, or not by itself."""
        if self.status is not RolloutStatus.WAITING or self.current is None:
            return None
        return self.current.until

    @property
    def complete(self) -> bool:
        """False if a table could not be read."""
        return not any(table.unread for wave in self.waves for table in wave.tables)

    @property
    def code(self) -> ExitCode:
        """The exit code: a table is unreadable, steps are pending, blocked, or done."""
        if not self.complete:
            return ExitCode.UNREADABLE
        if self.status in (RolloutStatus.READY, RolloutStatus.WAITING):
            return ExitCode.CHANGES
        blocked = self._failures or self.status is not RolloutStatus.DONE
        return ExitCode.FINDINGS if blocked else ExitCode.OK

    @property
    def _failures(self) -> int:
        return sum(t.status is RolloutStatus.FAILED for wave in self.waves for t in wave.tables)


def match_plans(log: RolloutLog, plans: Iterable[LoadedPlan]) -> dict[str, LoadedPlan]:
    """Return the current plan of each table, by the rollout's id for the table.

    Args:
        plans: the plans of the folder, from which the rollout was created.

    Raises:
        UsageError: when the folder lacks a plan of the rollout, has others, or contradicts it.
    """
    rollout = log.rollout
    found = {planned.id: planned for planned in plans}
    hint = "plan again into a new folder"
    for table in rollout.tables:
        if table.plan_id not in found:
            raise UsageError(
                f"{rollout.path}: the plan {table.file} is missing", f"restore the file, or {hint}"
            )
        plan = found[table.plan_id].plan
        if (plan.table, plan.location) != (table.table, table.location):
            raise UsageError(
                f"{rollout.path} contradicts {found[table.plan_id].path}: {table.table} is not "
                f"the plan's table, {plan.table}",
                hint,
            )
    others = found.keys() - {table.plan_id for table in rollout.tables}
    if others:
        raise UsageError(f"{found[min(others)].path} is not in {rollout.path}", hint)
    return load_replanned(found, log.decisions().replanned, log.folder)


def read_progress(
    log: RolloutLog, plans: Mapping[str, LoadedPlan], context: ApplyContext, now: float
) -> RolloutProgress:
    """Determine the progress at a time in seconds since the epoch.

    A finished table is known from its journal, or else from its log. The tables of a wave are only
    read once it may run.

    Args:
        plans: from `match_plans`.

    Raises:
        UsageError: when a journal cannot be read.
    """
    rollout, decisions = log.rollout, log.decisions()
    waves: list[WaveProgress] = []
    opens: float | None = 0.0
    for wave in rollout.waves:
        begins = opens is not None and now >= opens
        read = partial(_read_table, plans, context, decisions, now, read_log=begins)
        found = _judge_wave(wave, _read_tables(wave.tables, read, read_log=begins), opens, now)
        waves.append(found)
        opens = None
        if found.status is RolloutStatus.DONE:
            ended = found.ended_at
            opens = 0.0 if ended is None else ended + rollout.soak_hours * SECONDS_PER_HOUR
    progress = RolloutProgress(
        rollout, RolloutStatus.DONE, tuple(waves), plans, rehearsed=decisions.rehearsed
    )
    status, message = _judge_rollout(progress, decisions)
    return progress._replace(status=status, message=message, note=_missing_records(log, waves))


def _missing_records(log: RolloutLog, waves: Iterable[WaveProgress]) -> str:
    found = [each.table.table for wave in waves for each in wave.tables if each.unrecorded]
    if not found:
        return ""
    unknown = "failures"
    if not log.decisions_path.exists():
        unknown += ", and decisions such as a pause,"
    return (
        f"the journals of {tables_such_as(len(found), found[0])} are not in {log.folder}: the "
        f"progress was read from the logs of the tables, and {unknown} from before are unknown; "
        "restore that folder, or pass the right one with --journal"
    )


def _judge_rollout(progress: RolloutProgress, decisions: Decisions) -> tuple[RolloutStatus, str]:
    """Return the status of the rollout, and why it does not continue."""
    current, failures, most = progress.current, progress._failures, progress.rollout.max_failures
    if current is None and failures <= most:
        return RolloutStatus.DONE, ""
    obstacle = find_obstacle(decisions, failures, most)
    if obstacle is not None:
        return obstacle
    assert current is not None
    return current.status, current.message


def find_obstacle(
    decisions: Decisions, failures: int, most: int
) -> tuple[RolloutStatus, str] | None:
    """Return the status that keeps other tables from being started, with the reason, or None.

    Args:
        failures: the number of failed tables; the policy accepts at most `most`.
    """
    if decisions.aborted is not None:
        return RolloutStatus.ABORTED, decisions.aborted
    if failures > most:
        return RolloutStatus.STOPPED, f"{failures} failed, max_failures is {most}"
    if decisions.paused is not None:
        return RolloutStatus.PAUSED, decisions.paused
    return None


def _judge_wave(
    wave: Wave, tables: tuple[TableProgress, ...], opens: float | None, now: float
) -> WaveProgress:
    if all(each.status in ENDED for each in tables):
        return WaveProgress(wave.name, RolloutStatus.DONE, tables)
    if opens is None:
        return WaveProgress(wave.name, RolloutStatus.PENDING, tables)
    if now < opens:
        message = "soak time of the wave before it"
        return WaveProgress(wave.name, RolloutStatus.WAITING, tables, opens, message)
    if any(each.status is RolloutStatus.READY for each in tables):
        return WaveProgress(wave.name, RolloutStatus.READY, tables)
    waiting = [each for each in tables if each.until is not None]
    first = min(waiting, key=lambda each: each.until or 0, default=None)
    message = "" if first is None else f"{first.table.table}: {first.message}"
    until = None if first is None else first.until
    return WaveProgress(wave.name, RolloutStatus.WAITING, tables, until, message)


def _read_tables(
    tables: tuple[RolloutTable, ...],
    read: Callable[[RolloutTable], TableProgress],
    *,
    read_log: bool,
) -> tuple[TableProgress, ...]:
    def waits(table: RolloutTable) -> bool:
        return read_log and not locate(table.location).local

    return tuple(progress() for _, progress in work_ahead(read, tables, waits))


def _read_table(
    plans: Mapping[str, LoadedPlan],
    context: ApplyContext,
    decisions: Decisions,
    now: float,
    table: RolloutTable,
    *,
    read_log: bool,
) -> TableProgress:
    planned = plans[table.plan_id]
    journal = read_journal(context.journal_of(planned), planned.id)
    if journal.done >= len(planned.plan.steps):
        return TableProgress(table, RolloutStatus.DONE, since=journal.since)
    steps_left = len(planned.plan.steps) - journal.done
    found = TableProgress(table, RolloutStatus.PENDING, steps_left=steps_left)
    if read_log:
        try:
            with contain_table_errors():
                found = _read_log(table, planned, context, now)
        except DeltaprotoError as error:
            # `apply` reports it, and counts it as a failure.
            found = found._replace(status=RolloutStatus.READY, message=error.message, unread=True)
    done = found.status is RolloutStatus.DONE
    found = found._replace(unrecorded=journal.holder is None and (done or found.started))
    if done:
        return found
    if table.plan_id in decisions.skipped:
        reason = decisions.skipped[table.plan_id]
        return TableProgress(table, RolloutStatus.SKIPPED, message=reason)
    failure = decisions.failed.get(table.plan_id)
    if failure is not None:
        reason, at = failure
        failed = TableProgress(table, RolloutStatus.FAILED, since=at, message=reason)
        return failed._replace(steps_left=found.steps_left)
    return found


def _read_log(
    table: RolloutTable, planned: LoadedPlan, context: ApplyContext, now: float
) -> TableProgress:
    located, plan = locate_progress(planned, context, session=False), planned.plan
    progress = located.progress
    if (left := find_left_vectors(plan.steps, located.observed)) is not None:
        bad = TableProgress(table, RolloutStatus.READY, message=left.message, started=True)
        return bad._replace(steps_left=max(len(plan.steps) - progress.done, 1))
    if progress.done >= len(plan.steps):
        return TableProgress(table, RolloutStatus.DONE, since=located.since)
    steps_left = len(plan.steps) - progress.done
    waiting = TableProgress(
        table, RolloutStatus.WAITING, started=progress.started, steps_left=steps_left
    )
    if plan.steps[progress.done].sql is None and not wait_not_needed(plan, progress):
        until = wait_ends_at(planned, progress, located.since)
        if now < until:
            return waiting._replace(until=until, message="history has to be old enough")
    step, until = located.held or ("", 0.0)
    if step == plan.steps[progress.done].id and now < until:
        return waiting._replace(until=until, message="more history must expire first")
    windows = None if context.outside_window else maintenance_windows_for(context.policy, plan)
    closed = check_window_open(windows, now)
    if closed is not None:
        never = "the policy has no maintenance window for it"
        message = never if closed.earliest is None else "no maintenance window is open"
        return waiting._replace(until=closed.earliest, message=message)
    ready = waiting._replace(status=RolloutStatus.READY)
    if not progress.started:
        unchanged = fingerprint_gate(plan, located.observed, progress, started=False)
        if not unchanged.passed:
            same = plan.fingerprint.table_id in (None, located.observed.now.table_id)
            return ready._replace(message=unchanged.message, changed=same)
    return ready
