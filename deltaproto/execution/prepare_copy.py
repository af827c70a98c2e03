"""Prepares a copy into a new table: reads its progress, and evaluates its gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from deltaproto.errors import ExitCode, UsageError
from deltaproto.execution import preflight
from deltaproto.execution.copy_state import (
    CommitEffect,
    CopyStage,
    CopyState,
    find_metadata_change,
    pending_commits,
)
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import GateResult
from deltaproto.execution.progress import Progress
from deltaproto.plan_inputs.from_log import fingerprint_of, load_plan_input
from deltaproto.planning.engine import EngineName
from deltaproto.planning.plan import Plan, Step, plan_id
from deltaproto.planning.search.copy_by_name import LOSSES, loss_names
from deltaproto.planning.search.copy_table import same_copy
from deltaproto.planning.statement import Action
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED


def progress_of(state: CopyState, done: int) -> Progress:
    """Return the progress of a copy's plan in the same form as for other plans.

    The baseline is the table that has the name now, or had it last.
    """
    table = state.new if state.stage is CopyStage.SWAPPED and state.new else state.old
    return Progress(done, frozenset(), {}, fingerprint_of(table.state), None)


def finished_steps(state: CopyState, recorded: int) -> int:
    """Return how many steps of the plan are finished, from the first on.

    Args:
        recorded: how many the journal has.
    """
    plan, stage = state.tables.plan, state.stage
    if stage is CopyStage.SWAPPED and recorded == len(plan.steps):
        # Later commits to the old table are meant for it.
        return recorded
    if "undo" in plan.goal:
        if stage <= CopyStage.COPYING:
            return 2 if state.closed else 3
        return 1 if stage is CopyStage.BETWEEN else 0
    if stage <= CopyStage.COPYING:
        return int(stage)
    if stage is CopyStage.BETWEEN:
        return 1 + next(n for n, step in enumerate(plan.steps) if step.action is Action.SWAP)
    after = -1 if state.copied is None else state.copied
    left = pending_commits(state.old, after, state.tables.owner)
    caught_up = all(each.effect is CommitEffect.NOTHING for each in left)
    return len(plan.steps) - (not caught_up)


def copy_gates(planned: LoadedPlan, state: CopyState) -> Iterator[GateResult]:
    """Yield the gates `plan` and `fingerprint` of a plan that makes or undoes a copy."""
    whole = preflight.plan_gate(planned.plan)
    if whole.passed and (why := _find_contradiction(planned, state)) is not None:
        whole = GateResult(
            "plan", False, f"the plan contradicts itself: {why}", "plan again", ExitCode.USAGE
        )
    yield whole
    yield _fingerprint_gate(state)


def may_be_refused(state: CopyState) -> bool:
    """Return True while the tables still have their original names: no statement on them fails."""
    if "undo" in state.tables.plan.goal:
        return state.stage is CopyStage.SWAPPED
    return state.stage <= CopyStage.COPYING


def _find_contradiction(planned: LoadedPlan, state: CopyState) -> str | None:
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
        return "it undoes another plan: run `deltaproto apply PLAN --undo` with that plan"
    if state.stage is not CopyStage.PLANNED:
        return None
    tables = state.tables
    inputs = load_plan_input(plan.table, tables.storage_options, tables.spark, 0.0)
    same = same_copy(inputs._replace(engine=plan.engine), plan)
    return None if same else "its statements are not those of a copy"


def _fingerprint_gate(state: CopyState) -> GateResult:
    code, plan, seen = ExitCode.STALE, state.tables.plan, state.old.state
    if "undo" in plan.goal:
        if state.stage is CopyStage.SWAPPED and state.foreign:
            who = state.foreign[-1].in_words
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
        if (changed := find_metadata_change(state)) is not None:
            message = f"protocol, schema or properties changed since: {changed}"
            return GateResult("fingerprint", False, message, "plan again", code)
    if state.stage is not CopyStage.SWAPPED and state.foreign:
        who = state.foreign[-1].in_words
        message = f"{state.names.new} has a commit that is not of this plan: {who}"
        hint = f"drop {state.names.new} and delete its folder, then plan again"
        return GateResult("fingerprint", False, message, hint, code)
    return GateResult("fingerprint", True, f"the old table is at version {seen.version}")


def parse_losses(words: Iterable[str]) -> frozenset[str]:
    """Return the names of accepted losses; one word may contain several, separated by commas.

    Raises:
        UsageError: for a name that no loss has.
    """
    names = frozenset(name.strip() for word in words for name in word.split(","))
    if unknown := sorted(names - LOSSES.keys()):
        raise UsageError(f"unknown loss {', '.join(unknown)}", f"the names are {', '.join(LOSSES)}")
    return names


def loss_gate(left: Sequence[Step], accepted: frozenset[str]) -> GateResult:
    """Check that everything that a copy loses was accepted by name."""
    names = loss_names(left)
    missing = [name for name in names if name not in accepted]
    if not missing:
        message = f"accepted: {', '.join(names)}" if names else "nothing is lost"
        return GateResult("losses", True, message)
    return GateResult(
        "losses",
        False,
        "; ".join(f"{name}: {LOSSES[name]}" for name in missing),
        f"pass --accept-loss {','.join(missing)} to accept this",
        ExitCode.USAGE,
    )


def undo_steps(plan: Plan) -> tuple[Step, ...]:
    """Return the steps that restore the old table, for a plan that creates a copy."""
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
