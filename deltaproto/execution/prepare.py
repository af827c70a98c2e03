"""Before execution: progress so far, the warning, and the gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.errors import DeltaprotoError, EngineError, ExitCode, TableError, UsageError
from deltaproto.execution import preflight
from deltaproto.execution.copy_state import CopyState, CopyTables, is_named_copy
from deltaproto.execution.goal_limits import TableUse
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import GateResult
from deltaproto.execution.prepare_copy import (
    copy_gates,
    finished_steps,
    loss_gate,
    may_be_refused,
    progress_of,
)
from deltaproto.execution.progress import (
    Progress,
    TableObservation,
    TableWatcher,
    progress_from_commits,
    table_address,
)
from deltaproto.execution.run_log import SentStatement, journal_path, read_journal
from deltaproto.execution.runner import EngineFacts, StatementRunner
from deltaproto.execution.verify import find_left_vectors
from deltaproto.execution.warning import ApplyWarning, build_warning, maintenance_windows_for
from deltaproto.inspection.activity import Activity, recent_activity
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.inspection.inspect import run_rules
from deltaproto.inspection.interface import Inspection
from deltaproto.planning.from_state import table_from_state
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.policy_impact import (
    PolicyImpact,
    UnpredictableError,
    assess_policy_impact,
    predict_facts,
)
from deltaproto.planning.request import approvable_goal
from deltaproto.policy.context import TableFacts
from deltaproto.policy.document import Policy
from deltaproto.policy.document.model import Window
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.engine_errors import contain_table_errors
from deltaproto.tables.log.reader import LogReader

_GATES_BEFORE_ENGINE = 2
"""number of gates (`plan` and `fingerprint`) shown before the engine's"""


class ApplyContext(NamedTuple):
    """Inputs shared by all plans of one call."""

    storage_options: Mapping[str, str]
    spark: SparkSettings
    folder: Callable[[str], str]
    """returns the journal folder of a plan file"""
    policy: Policy | None = None
    checker: Checker | None = None
    allow_irreversible: bool = False
    outside_window: bool = False
    catalog: ClientCatalog | None = None
    """the clients that goals can name; None: the built-in ones"""
    accepted_losses: frozenset[str] = frozenset()
    """what copies into a new table may lose, by name"""

    def journal_of(self, planned: LoadedPlan) -> Path:
        """Return the path of a plan's journal."""
        return journal_path(self.folder(planned.path), planned.id)


def load_context(
    storage_options: Mapping[str, str],
    spark: SparkSettings,
    folder: Callable[[str], str],
    policy: Policy | None,
    client_files: Sequence[str],
    *,
    today: date | None = None,
) -> ApplyContext:
    """Return the context of plans under a policy, whose goals can name the clients of files.

    Raises:
        PolicyError: for a client file with mistakes.
    """
    catalog = load_local_catalog(client_files, policy)
    checker = None if policy is None else Checker(policy, catalog, today=today)
    return ApplyContext(storage_options, spark, folder, policy, checker, catalog=catalog)


class LocatedProgress(NamedTuple):
    """The progress of a plan, and its evidence."""

    watcher: TableWatcher
    observed: TableObservation
    progress: Progress
    since: float | None
    """when the last step finished"""
    unaudited: tuple[SentStatement, ...]
    """statements of earlier runs that are missing in the audit log"""
    held: tuple[str, float] | None = None
    """the step that Delta refused because history is too young, and when it may be sent again"""
    copy: CopyState | None = None
    """the tables of a plan that replaces the table with a copy, or takes that back"""


class PreparedPlan(NamedTuple):
    """A plan whose table was inspected."""

    planned: LoadedPlan
    located: LocatedProgress
    gates: tuple[GateResult, ...]
    warning: ApplyWarning
    windows: tuple[Window, ...] | None = None
    """applicable maintenance windows; None: no restriction"""
    approvals: tuple[str, ...] = ()
    """each loss of access, with the approval that permits it"""

    @property
    def left(self) -> tuple[Step, ...]:
        """The remaining steps."""
        return self.planned.plan.steps[self.located.progress.done :]

    @property
    def refused(self) -> GateResult | None:
        """All failed gates, combined into one; None if all passed."""
        return preflight.combine_failed_gates(self.gates)


def prepare_plan(
    planned: LoadedPlan,
    context: ApplyContext,
    runner: Callable[[], StatementRunner] | None,
    now: float,
) -> PreparedPlan:
    """Inspect the table and evaluate the gates.

    The engine gate comes last and runs only if all others pass, because it starts Spark.

    Args:
        runner: None: skip the engine gate and recent activity.
        now: in seconds since the epoch.

    Raises:
        TableError: when the table cannot be read.
        UsageError: when the journal cannot be read.
    """
    plan = planned.plan
    copied = runner is not None and is_named_copy(plan)
    located = (
        _locate_copy(planned, context)
        if copied
        else locate_progress(planned, context, session=runner is not None)
    )
    left = plan.steps[located.progress.done :]
    windows = maintenance_windows_for(context.policy, plan)
    activity = _read_activity(located.watcher) if runner else None
    warning = build_warning(plan, left, activity, None, windows, now)
    impact = None
    if left and context.checker is not None:
        impact = _predict_impact(context.checker, plan, left, located)
    passed = tuple(_evaluate_gates(planned, context, located, warning, impact))
    if left and runner is not None and preflight.combine_failed_gates(passed) is None:
        engine, of_engine = _evaluate_engine_gate(runner, plan)
        place = _GATES_BEFORE_ENGINE if located.copy is None else len(passed)
        passed = (*passed[:place], of_engine, *passed[place:])
        warning = build_warning(plan, left, activity, engine, windows, now)
    hold = None if context.outside_window else windows
    approvals = tuple(r.text for r in impact.rulings) if isinstance(impact, PolicyImpact) else ()
    return PreparedPlan(planned, located, passed, warning, hold, approvals)


def predict_gates(
    planned: LoadedPlan, context: ApplyContext, now: float, unread: TableError | None = None
) -> tuple[GateResult, ...]:
    """Evaluate the gates of `apply`, except the engine gate, at a time in seconds since the epoch.

    If the table cannot be read, a single gate reports that, and the gates that need the table are
    omitted.

    Args:
        unread: why the table could not be read.
    """
    try:
        if unread is not None:
            raise unread
        with contain_table_errors():
            return prepare_plan(planned, context, None, now).gates
    except DeltaprotoError as error:
        return tuple(_gates_without_table(planned, context, error, now))


def _gates_without_table(
    planned: LoadedPlan, context: ApplyContext, error: DeltaprotoError, now: float
) -> Iterator[GateResult]:
    plan = planned.plan
    whole = preflight.plan_gate(plan)
    yield (preflight.forged_plan_gate(planned, None) or whole) if whole.passed else whole
    yield GateResult("fingerprint", False, error.message, error.hint, error.exit_code)
    if not plan.steps:
        return
    if context.checker is not None:
        message = "the result cannot be checked against the policy: the table cannot be read"
        yield GateResult("policy", False, message, "", ExitCode.UNREADABLE)
    windows = maintenance_windows_for(context.policy, plan)
    opening = build_warning(plan, plan.steps, None, None, windows, now).window
    if opening is not None:
        yield preflight.window_gate(opening, context.outside_window)
    yield _acceptance_gate(plan, plan.steps, context)


def locate_progress(
    planned: LoadedPlan, context: ApplyContext, *, session: bool = True
) -> LocatedProgress:
    """Determine a plan's progress from its journal and the table. Raises like `prepare`.

    Args:
        session: see `TableWatcher`.
    """
    plan = planned.plan
    watcher = TableWatcher(plan, context.storage_options, context.spark, session=session)
    journal = read_journal(context.journal_of(planned), planned.id)
    if journal.done > len(plan.steps):
        raise UsageError(
            f"{context.journal_of(planned)} has more finished steps than the plan has steps",
            "move it away: finished steps are then read from the table",
        )
    start = journal.baseline or plan.fingerprint
    observed = watcher.observe(start.version)
    progress = progress_from_commits(planned.id, plan, journal.done, journal.early, observed, start)
    since = _last_commit_seconds(progress) if journal.since is None else journal.since
    return LocatedProgress(watcher, observed, progress, since, journal.unaudited, journal.held)


def _locate_copy(planned: LoadedPlan, context: ApplyContext) -> LocatedProgress:
    """Like `locate_progress`, for a plan that makes or undoes a copy."""
    owner = planned.id if planned.undoes is None else planned.undoes.id
    copy = CopyTables(planned.plan, owner, context.storage_options, context.spark).read()
    journal = read_journal(context.journal_of(planned), planned.id)
    progress = progress_of(copy, finished_steps(copy, journal.done))
    # Follow the log at the table's current location.
    location = copy.old.opened.location.uri
    here = planned.plan._replace(table=location, location=location, sql_name=f"delta.`{location}`")
    return LocatedProgress(
        TableWatcher(here, context.storage_options, context.spark),
        TableObservation(progress.baseline, ()),
        progress,
        journal.since,
        journal.unaudited,
        copy=copy,
    )


def _last_commit_seconds(progress: Progress) -> float | None:
    """Return when the plan's last commit was made, in seconds since the epoch."""
    times = [each.timestamp for commits in progress.own.values() for each in commits]
    return max((time / 1000 for time in times if time is not None), default=None)


def _evaluate_gates(
    planned: LoadedPlan,
    context: ApplyContext,
    located: LocatedProgress,
    warning: ApplyWarning,
    impact: PolicyImpact | UnpredictableError | None,
) -> Iterator[GateResult]:
    plan, copy = planned.plan, located.copy
    left = plan.steps[located.progress.done :]
    if copy is None:
        yield from _table_gates(planned, context, located, left)
    else:
        yield from copy_gates(planned, copy)
    if not left:
        return
    accepted = _acceptance_gate(plan, left, context)
    if copy is not None:
        yield accepted
    if impact is not None:
        yield preflight.policy_gate(impact)
    if warning.window is not None:
        yield preflight.window_gate(warning.window, context.outside_window)
    if copy is None:
        yield accepted


def _acceptance_gate(plan: Plan, left: Sequence[Step], context: ApplyContext) -> GateResult:
    """Check that the user accepts what cannot be undone."""
    if is_named_copy(plan):
        return loss_gate(left, context.accepted_losses)
    return preflight.irreversible_gate(left, context.allow_irreversible)


def _table_gates(
    planned: LoadedPlan, context: ApplyContext, located: LocatedProgress, left: Sequence[Step]
) -> Iterator[GateResult]:
    """Yield the gates `plan` and `fingerprint`."""
    plan, progress, watcher = planned.plan, located.progress, located.watcher
    whole = preflight.plan_gate(plan)
    fingerprint = preflight.missing_fingerprint_gate(plan) or preflight.fingerprint_gate(
        plan, located.observed, progress, progress.started
    )
    if (left_vectors := find_left_vectors(plan.steps, located.observed)) is not None:
        message, hint = left_vectors.message, left_vectors.hint
        fingerprint = GateResult("fingerprint", False, message, hint, ExitCode.FAILED)
    if whole.passed and not is_named_copy(plan):
        # Predictions are valid only for the table as the plan saw it.
        again = fingerprint.passed and not progress.started
        table = table_from_state(_inspect_table(watcher).state) if again else None
        use = _read_use(watcher, context) if fingerprint.passed and _needs_use(plan, left) else None
        whole = preflight.forged_plan_gate(planned, table, use, left) or whole
    yield whole
    yield fingerprint


def _evaluate_engine_gate(
    runner: Callable[[], StatementRunner], plan: Plan
) -> tuple[EngineFacts | None, GateResult]:
    """Return the engine, if it responds, and whether it is the plan's."""
    try:
        facts = runner().facts()
    except EngineError as error:
        return None, GateResult("engine", False, error.message, error.hint, ExitCode.UNREADABLE)
    return facts, preflight.engine_gate(plan.engine, facts)


def _read_activity(watcher: TableWatcher) -> Activity | None:
    """Return the recent activity; None if the log cannot be read."""
    try:
        return recent_activity(watcher.reached.store)
    except TableError:
        return None


def _predict_impact(
    checker: Checker, plan: Plan, left: Sequence[Step], located: LocatedProgress
) -> PolicyImpact | UnpredictableError | None:
    """Predict the policy's findings; None for a copy that must be completed or undone."""
    copy = located.copy
    if copy is None:
        return _predict_policy_impact(checker, plan, left, _inspect_table(located.watcher))
    if not may_be_refused(copy):
        return None
    old = run_rules(copy.old.state)
    if "undo" not in plan.goal or copy.new is None:
        return _predict_policy_impact(checker, plan, left, old)
    today = _policy_facts(plan, run_rules(copy.new.state))
    checker.observe(checker.check(today))
    return assess_policy_impact(checker, today, _policy_facts(plan, old), approvable_goal(plan))


def _predict_policy_impact(
    checker: Checker, plan: Plan, left: Sequence[Step], inspection: Inspection
) -> PolicyImpact | UnpredictableError:
    """Check the policy's clients and requirements before and after steps on this table."""
    today = _policy_facts(plan, inspection)
    checker.observe(checker.check(today))
    try:
        after = predict_facts(today, table_from_state(inspection.state), left, plan)
    except UnpredictableError as error:
        return error
    return assess_policy_impact(checker, today, after, approvable_goal(plan))


def _policy_facts(plan: Plan, inspection: Inspection) -> TableFacts:
    """Return the facts about a plan's table, by the names that the policy's patterns match."""
    # A plan file could name the table differently.
    return facts_from_inspection(inspection)._replace(
        table=table_address(plan), other_names=plan.other_names
    )


def _needs_use(plan: Plan, left: Sequence[Step]) -> bool:
    """Return True if the table's use decides which changes the goal of a downgrade needs."""
    goal = plan.goal
    unused = goal.get("kind") == "lowest" and goal.get("include_enabled") is not True
    return bool(left) and (unused or bool(goal.get("clients")))


def _read_use(watcher: TableWatcher, context: ApplyContext) -> TableUse:
    """Read how the table uses its features, as thoroughly as for a plan."""
    inspection = _inspect_table(watcher, thorough=True)
    catalog = context.catalog or ClientCatalog()
    needs = facts_from_inspection(inspection).needs
    return TableUse(inspection.subject.features, needs, catalog, inspection.state.domains)


def _inspect_table(watcher: TableWatcher, *, thorough: bool = False) -> Inspection:
    location, store = watcher.reached
    reader = LogReader(watcher.storage_options, look_in_files=thorough, every_commit=thorough)
    return run_rules(reader.read_from(location, store))
