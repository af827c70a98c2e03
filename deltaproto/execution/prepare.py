"""Before anything is executed: where the plan stands, the warning, the gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from deltaproto.activity import Activity, recent_activity
from deltaproto.checking.check import Checked, Checker
from deltaproto.checking.live import facts
from deltaproto.errors import EngineError, ExitCode, TableError
from deltaproto.execution import gates
from deltaproto.execution.gates import Gate
from deltaproto.execution.journal import journal_path, recorded
from deltaproto.execution.plan_file import Planned
from deltaproto.execution.resume import Standing, standing
from deltaproto.execution.runner import EngineFacts, Runner
from deltaproto.execution.sight import Point, Sight, Watched
from deltaproto.execution.warning import Warning, warning, windows_of
from deltaproto.inspection.inspect import judged
from deltaproto.planning.goal import Ending, needs_after
from deltaproto.planning.plan import Plan, Step
from deltaproto.policy.approvals import Ruling, losses_of
from deltaproto.policy.document import Policy
from deltaproto.policy.document.model import Window
from deltaproto.policy.finding import Finding, Severity
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.log.reader import LogReader


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
    approvals: tuple[str, ...] = ()
    """each loss of access with the approval that permits it"""

    @property
    def left(self) -> tuple[Step, ...]:
        """The steps that are not done."""
        return self.planned.plan.steps[self.stands.done :]

    @property
    def refused(self) -> Gate | None:
        """The gate that was not passed, the gravest where there are several."""
        failed = [gate for gate in self.gates if not gate.passed]
        worst = ExitCode.worst(gate.code for gate in failed)
        return next((gate for gate in failed if gate.code is worst), None)


def prepare(
    planned: Planned, context: Context, runner: Callable[[], Runner], now: float
) -> Prepared:
    """Look at the table and judge; `now` is in seconds since the epoch.

    Raises:
        TableError: when the table cannot be read.
        UsageError: when the journal cannot be read.
    """
    plan = planned.plan
    watched, sight, stands, since = stand(planned, context)
    left = plan.steps[stands.done :]
    engine, trouble = _engine(runner, left)
    windows = windows_of(context.policy, plan)
    warned = warning(plan, left, _activity(watched), engine, windows, now)
    checker = context.checker if left else None
    brought = None if checker is None else _policy(checker, plan, watched, context)
    passed = tuple(_gates(plan, context, sight, stands, engine, trouble, warned, brought))
    hold = None if context.outside_window else windows
    approvals = () if brought is None else tuple(each.text for each in brought.rulings)
    return Prepared(planned, watched, stands, sight, since, passed, warned, hold, approvals)


class Stood(NamedTuple):
    """How far a plan has come, and what shows it."""

    watched: Watched
    sight: Sight
    stands: Standing
    since: float | None
    """when the last step was done"""


def stand(planned: Planned, context: Context) -> Stood:
    """Where a plan stands, by its journal and by the table; else as `prepare`."""
    plan = planned.plan
    watched = Watched(plan, context.storage_options, context.spark)
    journal = recorded(journal_path(context.folder(planned.path), planned.id), planned.id)
    print_ = plan.fingerprint
    start = journal.point or Point(print_.version, print_.protocol, print_.metadata)
    sight = watched.look(start.version)
    stands = standing(planned.id, plan, journal.done, journal.early, sight, start)
    since = _last(stands) if journal.since is None else journal.since
    return Stood(watched, sight, stands, since)


def _last(stands: Standing) -> float | None:
    """When the plan's last commit was made, in seconds since the epoch."""
    times = [each.timestamp for commits in stands.own.values() for each in commits]
    return max((time / 1000 for time in times if time is not None), default=None)


def _gates(
    plan: Plan,
    context: Context,
    sight: Sight,
    stands: Standing,
    engine: EngineFacts | None,
    trouble: EngineError | None,
    warned: Warning,
    brought: Brought | None,
) -> Iterator[Gate]:
    left = plan.steps[stands.done :]
    yield gates.plan_gate(plan)
    yield gates.fingerprint_gate(plan, sight, stands, stands.started)
    if not left:
        return
    if trouble is not None:
        yield Gate("engine", False, trouble.message, trouble.hint, ExitCode.UNREADABLE)
    elif engine is not None:
        yield gates.engine_gate(plan.engine, engine)
    if brought is not None:
        yield gates.policy_gate(*brought)
    if warned.window is not None:
        yield gates.window_gate(warned.window, context.outside_window)
    yield gates.irreversible_gate(left, context.allow_irreversible)


def _engine(
    runner: Callable[[], Runner], left: Sequence[Step]
) -> tuple[EngineFacts | None, EngineError | None]:
    if not left:
        return None, None
    try:
        return runner().facts(), None
    except EngineError as error:
        return None, error


def _activity(watched: Watched) -> Activity | None:
    try:
        return recent_activity(watched.reached.store)
    except TableError:
        return None


class Brought(NamedTuple):
    """What a plan brings before the policy."""

    new: list[Finding]
    """errors, approved ones left out"""
    left: int
    """how many errors stay"""
    rulings: tuple[Ruling, ...]
    """clients that lose access, and whether that is approved"""


def _policy(checker: Checker, plan: Plan, watched: Watched, context: Context) -> Brought:
    location, store = watched.reached
    reader = LogReader(context.storage_options)
    today = facts(judged(reader.read_from(location, store)))
    # Commits of before do not ask for what comes now.
    today = today._replace(changes=None)
    after = today._replace(needs=needs_after(today.needs, Ending(plan.protocol_after)))
    now, later = checker.check(today), checker.check(after)
    losses = losses_of(now.verdicts, later.verdicts, plan.goal_text)
    rulings = checker.rulings(today.table, today.location, losses)
    unapproved = {each.loss.client for each in rulings if not each.approved}
    approved = {each.loss.client for each in rulings} - unapproved
    before = {_key(each) for each in _errors(now)}
    then = list(_errors(later))
    new = [each for each in then if _key(each) not in before and each.client not in approved]
    return Brought(new, sum(_key(each) in before for each in then), rulings)


def _errors(checked: Checked) -> Iterator[Finding]:
    yield from (each for each in checked.findings if each.severity is Severity.ERROR)


def _key(finding: Finding) -> tuple[str, str | None, str | None, str | None]:
    return finding.rule, finding.feature, finding.client, finding.detail
