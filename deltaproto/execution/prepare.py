"""Before anything is executed: where the plan stands, the warning, the gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from deltaproto.activity import Activity, recent_activity
from deltaproto.checking.check import Checker
from deltaproto.checking.live import facts
from deltaproto.checking.predicted import Effect, UnpredictableError, effect, facts_after
from deltaproto.errors import DeltaprotoError, EngineError, ExitCode, TableError, UsageError
from deltaproto.execution import gates
from deltaproto.execution.gates import Gate
from deltaproto.execution.journal import Sent, journal_path, recorded
from deltaproto.execution.plan_file import Planned
from deltaproto.execution.resume import Standing, standing
from deltaproto.execution.runner import EngineFacts, Runner
from deltaproto.execution.sight import Point, Sight, Watched, named
from deltaproto.execution.warning import Warning, warning, windows_of
from deltaproto.inspection.inspect import judged
from deltaproto.inspection.interface import Inspection
from deltaproto.planning.observe import observe
from deltaproto.planning.plan import Plan, Step
from deltaproto.policy.document import Policy
from deltaproto.policy.document.model import Window
from deltaproto.tables.defect import one_table
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.log.reader import LogReader

_BEFORE_ENGINE = 2
"""how many gates, `plan` and `fingerprint`, are shown before the engine's"""


class Context(NamedTuple):
    """What all plans of one call share."""

    storage_options: Mapping[str, str]
    spark: SparkSettings
    folder: Callable[[str], str]
    """where the journals of a plan file lie"""
    policy: Policy | None = None
    checker: Checker | None = None
    allow_irreversible: bool = False
    outside_window: bool = False


class Prepared(NamedTuple):
    """A plan that was looked at."""

    planned: Planned
    watched: Watched
    stands: Standing
    sight: Sight
    since: float | None
    """when the last step was done"""
    gates: tuple[Gate, ...]
    warning: Warning
    windows: tuple[Window, ...] | None = None
    """maintenance windows that hold; None: none do"""
    unaudited: tuple[Sent, ...] = ()
    """statements of earlier runs that the audit log lacks"""
    approvals: tuple[str, ...] = ()
    """each loss of access with the approval that permits it"""

    @property
    def left(self) -> tuple[Step, ...]:
        """The steps that are not done."""
        return self.planned.plan.steps[self.stands.done :]

    @property
    def refused(self) -> Gate | None:
        """All gates that did not pass, in one; None if all passed."""
        return gates.refusal(self.gates)


def prepare(
    planned: Planned, context: Context, runner: Callable[[], Runner] | None, now: float
) -> Prepared:
    """Look at the table and judge.

    The engine's gate is the last one to be judged, and only when all others pass: it starts Spark.

    Args:
        runner: None: without the engine's gate and without recent activity.
        now: in seconds since the epoch.

    Raises:
        TableError: when the table cannot be read.
        UsageError: when the journal cannot be read.
    """
    plan = planned.plan
    watched, sight, stands, since, unaudited = stand(planned, context)
    left = plan.steps[stands.done :]
    windows = windows_of(context.policy, plan)
    activity = _activity(watched) if runner else None
    warned = warning(plan, left, activity, None, windows, now)
    checker = context.checker if left else None
    brought = None if checker is None else _effect(checker, plan, left, watched)
    passed = tuple(_gates(planned, context, watched, sight, stands, warned, brought))
    if left and runner is not None and gates.refusal(passed) is None:
        engine, of_engine = _engine(runner, plan)
        passed = (*passed[:_BEFORE_ENGINE], of_engine, *passed[_BEFORE_ENGINE:])
        warned = warning(plan, left, activity, engine, windows, now)
    hold = None if context.outside_window else windows
    approvals = tuple(r.text for r in brought.rulings) if isinstance(brought, Effect) else ()
    return Prepared(
        planned, watched, stands, sight, since, passed, warned, hold, unaudited, approvals
    )


def foreseen(
    planned: Planned, context: Context, now: float, unread: TableError | None = None
) -> tuple[Gate, ...]:
    """The gates of `apply` at a time (seconds since the epoch), all but that of the engine.

    Of a table that cannot be read, a gate says so in place of those that need it.

    Args:
        unread: why the table is not to be read.
    """
    try:
        if unread is not None:
            raise unread
        with one_table():
            return prepare(planned, context, None, now).gates
    except DeltaprotoError as error:
        return tuple(_unread(planned, context, error, now))


def _unread(
    planned: Planned, context: Context, error: DeltaprotoError, now: float
) -> Iterator[Gate]:
    plan = planned.plan
    whole = gates.plan_gate(plan)
    yield (gates.forged(planned, None) or whole) if whole.passed else whole
    yield Gate("fingerprint", False, error.message, error.hint, error.exit_code)
    if not plan.steps:
        return
    if context.checker is not None:
        said = "the result cannot be checked against the policy: the table cannot be read"
        yield Gate("policy", False, said, "", ExitCode.UNREADABLE)
    windows = windows_of(context.policy, plan)
    opening = warning(plan, plan.steps, None, None, windows, now).window
    if opening is not None:
        yield gates.window_gate(opening, context.outside_window)
    yield gates.irreversible_gate(plan.steps, context.allow_irreversible)


class Stood(NamedTuple):
    """How far a plan has come, and what shows it."""

    watched: Watched
    sight: Sight
    stands: Standing
    since: float | None
    """when the last step was done"""
    unaudited: tuple[Sent, ...]
    """statements of earlier runs that the audit log lacks"""


def stand(planned: Planned, context: Context) -> Stood:
    """Where a plan stands, by its journal and by the table; else as `prepare`."""
    plan = planned.plan
    watched = Watched(plan, context.storage_options, context.spark)
    journal = recorded(journal_path(context.folder(planned.path), planned.id), planned.id)
    if journal.done > len(plan.steps):
        path = journal_path(context.folder(planned.path), planned.id)
        raise UsageError(
            f"{path} has more steps as done than the plan holds",
            "move it away: what is done is then found in the table",
        )
    print_ = plan.fingerprint
    start = journal.point or Point(print_.version, print_.protocol, print_.metadata)
    sight = watched.look(start.version)
    stands = standing(planned.id, plan, journal.done, journal.early, sight, start)
    since = _last(stands) if journal.since is None else journal.since
    return Stood(watched, sight, stands, since, journal.unaudited)


def _last(stands: Standing) -> float | None:
    """When the plan's last commit was made, in seconds since the epoch."""
    times = [each.timestamp for commits in stands.own.values() for each in commits]
    return max((time / 1000 for time in times if time is not None), default=None)


def _gates(
    planned: Planned,
    context: Context,
    watched: Watched,
    sight: Sight,
    stands: Standing,
    warned: Warning,
    brought: Effect | UnpredictableError | None,
) -> Iterator[Gate]:
    plan = planned.plan
    left = plan.steps[stands.done :]
    whole = gates.plan_gate(plan)
    print_ = gates.comparable(plan) or gates.fingerprint_gate(plan, sight, stands, stands.started)
    if whole.passed:
        # Predictions hold for the table as it was planned for.
        again = print_.passed and not stands.started
        table = observe(_inspection(watched).state) if again else None
        whole = gates.forged(planned, table) or whole
    yield whole
    yield print_
    if not left:
        return
    if isinstance(brought, UnpredictableError):
        yield gates.unpredictable_gate(str(brought))
    elif brought is not None:
        yield gates.policy_gate(brought)
    if warned.window is not None:
        yield gates.window_gate(warned.window, context.outside_window)
    yield gates.irreversible_gate(left, context.allow_irreversible)


def _engine(runner: Callable[[], Runner], plan: Plan) -> tuple[EngineFacts | None, Gate]:
    try:
        facts = runner().facts()
    except EngineError as error:
        return None, Gate("engine", False, error.message, error.hint, ExitCode.UNREADABLE)
    return facts, gates.engine_gate(plan.engine, facts)


def _activity(watched: Watched) -> Activity | None:
    try:
        return recent_activity(watched.reached.store)
    except TableError:
        return None


def _effect(
    checker: Checker, plan: Plan, left: Sequence[Step], watched: Watched
) -> Effect | UnpredictableError:
    """Check the policy's clients and requirements before and after the remaining steps."""
    inspection = _inspection(watched)
    # A plan file could call the table otherwise than the policy's patterns do.
    today = facts(inspection)._replace(table=named(plan))
    checker.observe(checker.check(today))
    try:
        after = facts_after(today, observe(inspection.state), left, plan)
    except UnpredictableError as error:
        return error
    return effect(checker, today, after, plan.goal_text)


def _inspection(watched: Watched) -> Inspection:
    location, store = watched.reached
    return judged(LogReader(watched.storage_options).read_from(location, store))
