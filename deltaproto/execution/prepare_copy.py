"""Before a copy into a new table is executed: how far it is, and the gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from deltaproto.errors import ExitCode
from deltaproto.execution import preflight
from deltaproto.execution.copy_losses import loss_gate
from deltaproto.execution.copy_state import (
    CommitEffect,
    CopyStage,
    CopyState,
    CopyTables,
    find_metadata_change,
    pending_commits,
)
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import GateResult, describe_commit
from deltaproto.execution.prepare import (
    ApplyContext,
    PreparedCopy,
    PreparedPlan,
    evaluate_engine_gate,
    policy_facts,
    predict_policy_impact,
    read_activity,
)
from deltaproto.execution.progress import Baseline, Progress, TableObservation, TableWatcher
from deltaproto.execution.run_log import journal_path, read_journal
from deltaproto.execution.runner import StatementRunner
from deltaproto.execution.warning import build_warning, maintenance_windows_for
from deltaproto.inspection.inspect import run_rules
from deltaproto.plan_inputs.from_log import load_plan_input, metadata_digest
from deltaproto.planning.engine import EngineName
from deltaproto.planning.plan import Plan, Step, plan_id
from deltaproto.planning.policy_impact import (
    PolicyImpact,
    UnpredictableError,
    assess_policy_impact,
)
from deltaproto.planning.request import approvable_goal
from deltaproto.planning.search.copy_table import same_copy
from deltaproto.planning.statement import Action
from deltaproto.policy.evaluate import Checker
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED


def prepare_copy(
    planned: LoadedPlan,
    context: ApplyContext,
    runner: Callable[[], StatementRunner],
    now: float,
) -> PreparedPlan:
    """Inspect the tables of a copy, or of its undo plan, and evaluate the gates.

    Args:
        now: in seconds since the epoch.

    Raises:
        TableError: when the names stand for other tables, or a log cannot be read.
        UsageError: when the journal cannot be read.
    """
    plan = planned.plan
    owner = planned.id if planned.undoes is None else planned.undoes.id
    tables = CopyTables(plan, owner, context.storage_options, context.spark)
    state = tables.read()
    journal = read_journal(journal_path(context.folder(planned.path), planned.id), planned.id)
    done = finished_steps(plan, state, owner)
    if state.stage is CopyStage.SWAPPED and journal.done == len(plan.steps):
        # Later commits to the old table are meant for it.
        done = journal.done
    left = plan.steps[done:]
    windows = maintenance_windows_for(context.policy, plan)
    # The log is followed where the table is now.
    location = state.old.opened.location.uri
    here = plan._replace(table=location, location=location, sql_name=f"delta.`{location}`")
    watched = TableWatcher(here, context.storage_options, context.spark)
    activity = read_activity(watched)
    warned = build_warning(plan, left, activity, None, windows, now)
    brought = None
    if context.checker is not None and _may_be_refused(plan, state):
        brought = _predict_policy_impact(context.checker, plan, state)
    gates = list(_evaluate_gates(planned, context, state, left, owner))
    if left and brought is not None:
        gates.append(preflight.policy_gate(brought))
    if warned.window is not None and left:
        gates.append(preflight.window_gate(warned.window, context.outside_window))
    if left and preflight.combine_failed_gates(gates) is None:
        engine, of_engine = evaluate_engine_gate(runner, plan)
        gates.append(of_engine)
        warned = build_warning(plan, left, activity, engine, windows, now)
    return PreparedPlan(
        planned,
        watched,
        progress_of(plan, state, done),
        TableObservation(state.old.state.metadata.id, baseline_of(state), ()),
        journal.since,
        tuple(gates),
        warned,
        None if context.outside_window else windows,
        journal.unaudited,
        tuple(r.text for r in brought.rulings) if isinstance(brought, PolicyImpact) else (),
        copy=PreparedCopy(tables, state, owner),
    )


def baseline_of(state: CopyState) -> Baseline:
    """Return the state of the table that has the name now, or had it last."""
    table = state.new if state.stage is CopyStage.SWAPPED and state.new else state.old
    seen = table.state
    return Baseline(seen.version, seen.protocol, metadata_digest(seen.metadata))


def progress_of(plan: Plan, state: CopyState, done: int) -> Progress:
    """Return the progress of a copy's plan as that of other plans."""
    return Progress(done, frozenset(), {}, baseline_of(state), None)


def finished_steps(plan: Plan, state: CopyState, owner: str) -> int:
    """Return how many steps of the plan are finished, from the first on."""
    swap = next(n for n, step in enumerate(plan.steps) if step.action is Action.SWAP)
    if "undo" in plan.goal:
        if state.stage is CopyStage.SWAPPED:
            return 0
        if state.stage is CopyStage.BETWEEN:
            return 1
        return 2 if state.closed else 3
    if state.stage is CopyStage.PLANNED:
        return 0
    if state.stage is CopyStage.COPYING:
        return 1
    if state.stage is CopyStage.BETWEEN:
        return swap + 1
    left = pending_commits(state.old, -1 if state.copied is None else state.copied, owner)
    caught_up = all(each.effect is CommitEffect.NOTHING for each in left)
    return len(plan.steps) - (not caught_up)


def _evaluate_gates(
    planned: LoadedPlan,
    context: ApplyContext,
    state: CopyState,
    left: Sequence[Step],
    owner: str,
) -> Iterator[GateResult]:
    plan = planned.plan
    whole = preflight.plan_gate(plan)
    if whole.passed and (why := _find_contradiction(planned, context, state)) is not None:
        whole = GateResult(
            "plan", False, f"the plan contradicts itself: {why}", "plan again", ExitCode.USAGE
        )
    yield whole
    yield _fingerprint_gate(plan, state, owner)
    if left:
        yield loss_gate(left, context.accepted_losses)


def _may_be_refused(plan: Plan, state: CopyState) -> bool:
    """Return True while the tables still have their names, as no statement on them fails then."""
    if "undo" in plan.goal:
        return state.stage is CopyStage.SWAPPED
    return state.stage <= CopyStage.COPYING


def _predict_policy_impact(
    checker: Checker, plan: Plan, state: CopyState
) -> PolicyImpact | UnpredictableError:
    old = run_rules(state.old.state)
    if "undo" not in plan.goal or state.new is None:
        return predict_policy_impact(checker, plan, plan.steps, old)
    today = policy_facts(plan, run_rules(state.new.state))
    checker.observe(checker.check(today))
    return assess_policy_impact(checker, today, policy_facts(plan, old), approvable_goal(plan))


def _find_contradiction(planned: LoadedPlan, context: ApplyContext, state: CopyState) -> str | None:
    """Describe how the plan differs from what would be planned now; None if it does not.

    Once the new table exists, its commits have the id of the plan, which depends on all statements.
    """
    plan = planned.plan
    if planned.id != plan_id(plan):
        return f"its plan_id is {planned.id}, but its goal and steps have {plan_id(plan)}"
    if plan.engine.name is not EngineName.DELTA_SPARK:
        return "copies are executed by Delta Spark only; print the statements with --script sql"
    if CATALOG_MANAGED & plan.fingerprint.protocol.supported:
        return "a catalog manages the commits of the table, so its log may be incomplete"
    if planned.undoes is not None:
        expected = [each.sql for each in undo_steps(planned.undoes.plan)]
        same = expected == [step.sql for step in plan.steps]
        return None if same else "it does not undo the copy"
    if "undo" in plan.goal:
        return "it undoes another plan: run `deltaproto apply PLAN --undo` with that one"
    if state.stage is not CopyStage.PLANNED:
        return None
    inputs = load_plan_input(plan.table, context.storage_options, context.spark, 0.0)._replace(
        engine=plan.engine
    )
    return None if same_copy(inputs, plan) else "its statements are not those of a copy"


def _fingerprint_gate(plan: Plan, state: CopyState, owner: str) -> GateResult:
    code = ExitCode.STALE
    seen = state.old.state
    if "undo" in plan.goal:
        if state.stage is CopyStage.SWAPPED and state.foreign:
            who = describe_commit(state.foreign[-1])
            return GateResult(
                "fingerprint",
                False,
                f"the new table has commits that the old one lacks: {who}",
                f"write their rows to {state.names.old} first, or keep the new table",
                code,
            )
        return GateResult("fingerprint", True, f"the old table is at version {seen.version}")
    if state.stage <= CopyStage.COPYING:
        planned = plan.fingerprint.version
        if seen.version < planned:
            message = f"the table is at version {seen.version}, but was at {planned}"
            return GateResult("fingerprint", False, message, "plan again", code)
        if (changed := find_metadata_change(plan, state, owner)) is not None:
            message = f"protocol, schema or properties changed since: {changed}"
            return GateResult("fingerprint", False, message, "plan again", code)
    if state.stage is not CopyStage.SWAPPED and state.foreign:
        who = describe_commit(state.foreign[-1])
        message = f"{state.names.new} has a commit that is not of this plan: {who}"
        hint = f"drop {state.names.new} and delete its folder, then plan again"
        return GateResult("fingerprint", False, message, hint, code)
    return GateResult("fingerprint", True, f"the old table is at version {seen.version}")


def undo_steps(plan: Plan) -> tuple[Step, ...]:
    """Return the steps that put the old table back, for a plan that makes a copy."""
    close_old, *_ = (s for s in plan.steps if s.action is Action.SWAP and s.operations)
    rename_old, rename_new = (s for s in plan.steps if s.action is Action.SWAP and not s.operations)
    texts = {
        rename_new.id: "rename the new table back; it is kept",
        rename_old.id: "rename the old table back",
        close_old.id: "remove the mark that the table was replaced",
    }
    return tuple(
        step._replace(
            id=f"s{number}",
            sql=step.undo,
            undo=step.sql,
            why=texts[step.id],
            protocol_before=plan.protocol_after if number == 1 else plan.protocol_before,
            protocol_after=plan.protocol_before,
            operations=("UNSET TBLPROPERTIES",) if step is close_old else (),
            streams=(),
            losses=(),
        )
        for number, step in enumerate((rename_new, rename_old, close_old), 1)
    )
