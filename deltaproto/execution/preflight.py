"""Checks before a plan and before each of its steps. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from deltaproto.counts import counted
from deltaproto.errors import ExitCode
from deltaproto.execution.copy_state import is_named_copy
from deltaproto.execution.goal_limits import TableUse, find_unrequested_change
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.progress import Progress, TableObservation, without_features
from deltaproto.execution.rebuild import find_mismatch, find_misprediction
from deltaproto.execution.runner import EngineFacts
from deltaproto.execution.warning import MaintenanceWindowStatus
from deltaproto.planning.advice import is_same_table
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.engine import Engine
from deltaproto.planning.plan import Blocked, Plan, Step, plan_id
from deltaproto.planning.policy_impact import PolicyImpact, UnpredictableError
from deltaproto.planning.predict.table import Table
from deltaproto.planning.statement import Action
from deltaproto.policy.document.model import Window
from deltaproto.policy.document.windows import is_open, next_opening
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.commits import Commit, commit_tag_of

_MANUAL_ACTIONS = (Action.REWRITE, Action.SWAP)
_UPGRADE_CLIENTS_HINT = "upgrade these clients first, or plan a change that they support"


class GateResult(NamedTuple):
    """The result of one gate, with the reason if it failed."""

    name: str
    passed: bool
    message: str
    hint: str = ""
    code: ExitCode = ExitCode.OK
    """exit code if the gate failed"""


def plan_gate(plan: Plan) -> GateResult:
    """Check that the plan can be executed at all."""
    if plan.blocked:
        why = "; ".join(
            f"{each.feature}: {each.reason}" if each.feature else each.reason
            for each in plan.blocked
        )
        return _refuse(f"the plan is blocked: {why}", plan.blocked)
    if plan.stays_violated:
        why = "; ".join(each.reason for each in plan.unmet)
        return _refuse(f"no statement improves the table's compliance: {why}", plan.unmet)
    if not plan.complete:
        return GateResult(
            "plan",
            False,
            "the plan was made without reading the whole table",
            "plan again where the table can be read",
            ExitCode.UNREADABLE,
        )
    if steps := manual_steps(plan):
        return GateResult(
            "plan",
            False,
            f"{', '.join(steps)} create a new table that replaces this one, which must be done "
            "manually",
            "plan by the name of the table in a catalog of Spark, or print the statements with "
            "--script sql",
            ExitCode.USAGE,
        )
    for step in plan.steps:
        if (other := _find_other_table(plan, step)) is not None:
            return GateResult(
                "plan",
                False,
                f"{step.id} is a statement on {other}, which may be a different table",
                f"name the table {plan.sql_name} in the SQL, and plan again",
                ExitCode.USAGE,
            )
    return GateResult("plan", True, "valid, no blockers")


def _refuse(message: str, reasons: Iterable[Blocked]) -> GateResult:
    remedies = "; ".join(dict.fromkeys(each.remedy for each in reasons if each.remedy))
    return GateResult("plan", False, message, remedies, ExitCode.FINDINGS)


def manual_steps(plan: Plan) -> list[str]:
    """Return the steps that replace the table by a copy if deltaproto does not execute them."""
    return (
        []
        if is_named_copy(plan)
        else [step.id for step in plan.steps if step.action in _MANUAL_ACTIONS]
    )


def combine_failed_gates(gates: Iterable[GateResult]) -> GateResult | None:
    """Combine all failed gates into one that names each; None if all passed."""
    failed = [gate for gate in gates if not gate.passed]
    if len(failed) < 2:
        return next(iter(failed), None)
    worst = ExitCode.worst(gate.code for gate in failed)
    failed.sort(key=lambda gate: gate.code is not worst)
    return failed[0]._replace(
        message=f"{counted(len(failed), 'gate')} failed: "
        + "; ".join(f"{gate.name}: {gate.message}" for gate in failed),
        hint="; ".join(f"{gate.name}: {gate.hint}" for gate in failed if gate.hint),
    )


def forged_plan_gate(
    planned: LoadedPlan,
    table: Table | None,
    use: TableUse | None = None,
    left: Sequence[Step] | None = None,
) -> GateResult | None:
    """Return the failed plan gate if the plan's statements differ from its steps or its goal.

    A plan with the id of another plan would resume from the other plan's journal.

    Args:
        table: current state, for predicting the first steps again; None if steps are finished.
        use: how the table uses its features now; None: unknown.
        left: the remaining steps; None: all.
    """
    plan = planned.plan
    if "undo" in plan.goal and planned.undoes is None:
        return GateResult(
            "plan",
            False,
            "the plan undoes another one, which this command does not verify",
            "run `deltaproto apply PLAN --undo` with the plan to undo",
            ExitCode.USAGE,
        )
    why = find_mismatch(plan) or (None if table is None else find_misprediction(plan, table))
    why = why or find_unrequested_change(plan, use, left)
    if why is None and planned.id != plan_id(plan):
        why = f"its plan_id is {planned.id}, but its goal and steps have {plan_id(plan)}"
    if why is None:
        return None
    return GateResult(
        "plan",
        False,
        f"the plan contradicts itself: {why}",
        "plan again, and do not edit plans",
        ExitCode.USAGE,
    )


def _find_other_table(plan: Plan, step: Step) -> str | None:
    """Return the table that a user statement names, if it may be a different table."""
    if step.action is not Action.SQL or step.sql is None:
        return None
    for parsed in parse_script(step.sql):
        if parsed.target is None or not is_same_table(parsed.target, plan.sql_name):
            return "no table" if parsed.target is None else ".".join(parsed.target)
    return None


def missing_fingerprint_gate(plan: Plan) -> GateResult | None:
    """Return the failed fingerprint gate of a plan that was not made from the table itself."""
    if plan.fingerprint.metadata is not None or not plan.steps:
        return None
    return GateResult(
        "fingerprint",
        False,
        "the plan has no fingerprint of schema and properties, because it was made from an "
        "inventory or a saved inspection: changes since then cannot be detected",
        "plan again with --fresh, or from the table itself",
        ExitCode.USAGE,
    )


def fingerprint_gate(
    plan: Plan, observed: TableObservation, progress: Progress, started: bool
) -> GateResult:
    """Check that the table is the one that was planned for. Data commits since then are allowed.

    `started`: steps of the plan are finished already.
    """
    code = ExitCode.FAILED if started else ExitCode.STALE
    again = REPLAN_HINT if started else "plan again"
    if (why := _find_different_table(plan, observed, progress)) is not None:
        return GateResult("fingerprint", False, why, again, code)
    since = "no commits since"
    if observed.commits:
        since = (
            f"{counted(len(observed.commits), 'commit')} since, none of them by other writers with "
            "an effect on the plan"
        )
    return GateResult("fingerprint", True, f"version {observed.now.version}; {since}")


def _find_different_table(plan: Plan, observed: TableObservation, progress: Progress) -> str | None:
    wanted = plan.fingerprint.table_id
    if wanted is not None and observed.now.table_id != wanted:
        return f"this is a different table: its id is {observed.now.table_id}, but was {wanted}"
    if observed.now.version < plan.fingerprint.version:
        return (
            f"the table is at version {observed.now.version}, but was at "
            f"{plan.fingerprint.version} when it was planned: it was replaced or rolled back"
        )
    if progress.foreign is not None:
        return f"{progress.foreign.what} changed since: {progress.foreign.commit.in_words}"
    return _find_wrong_protocol(plan, progress)


def _find_wrong_protocol(plan: Plan, progress: Progress) -> str | None:
    expected = expected_protocol(plan, progress)
    if progress.partial or progress.baseline.protocol == expected:
        return None
    return (
        f"the protocol is {progress.baseline.protocol.in_words}, but should be {expected.in_words}"
    )


def engine_gate(wanted: Engine, facts: EngineFacts) -> GateResult:
    """Check that the engine is the one that the predictions are for."""
    if facts.name is not wanted.name:
        return GateResult(
            "engine",
            False,
            f"the plan is for {wanted}, but {facts} would execute it",
            f"plan again with --engine {facts.name}@VERSION",
            ExitCode.STALE,
        )
    if not facts.delta:
        return GateResult(
            "engine",
            False,
            f"this Spark ({facts.spark}) has not loaded Delta's SQL extension",
            "set spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension where it is started",
            ExitCode.UNREADABLE,
        )
    if facts.version is None:
        return GateResult(
            "engine",
            True,
            f"Spark {facts.spark} does not report its Delta version; the plan is for {wanted}",
        )
    if _minor_version(facts.version) != _minor_version(wanted.version):
        return GateResult(
            "engine",
            False,
            f"the plan is for {wanted}, but {facts} would execute it and may behave differently",
            f"plan again with --engine {facts.name}@{facts.version}",
            ExitCode.STALE,
        )
    return GateResult("engine", True, f"{facts} on Spark {facts.spark}")


def policy_gate(effect: PolicyImpact | UnpredictableError) -> GateResult:
    """Check that no declared client loses access, and that the result meets the policy.

    A loss that the policy approves passes; the message names the approver. A result that cannot be
    predicted fails.
    """
    if isinstance(effect, UnpredictableError):
        return GateResult(
            "policy",
            False,
            f"the result cannot be checked against the policy: {effect}",
            "plan again",
            ExitCode.FINDINGS,
        )
    approved = [each.text for each in effect.rulings if each.approved]
    found = effect.in_words
    if not found:
        remains = counted(effect.remaining, "existing error remains", "existing errors remain")
        rest = f"; {remains}" if effect.remaining else ""
        summary = "no other client loses" if approved else "no client loses"
        message = f"{summary} access and no new policy violations{rest}"
        if effect.unasked:
            message = "the policy does not cover this table"
        hidden = [f"findings on the result: {effect.hidden}"] if effect.hidden else []
        return GateResult("policy", True, "; ".join([message, *approved, *hidden]))
    hint = _UPGRADE_CLIENTS_HINT if effect.unapproved else effect.violations[0].hint
    return GateResult(
        "policy",
        False,
        f"the result would violate the policy: {'; '.join(found)}",
        hint,
        ExitCode.FINDINGS,
    )


def window_gate(opening: MaintenanceWindowStatus, outside: bool) -> GateResult:
    """Check that a maintenance window is open, or that the user overrides it."""
    if opening.open:
        return GateResult("window", True, "a maintenance window is open")
    until = f" until {opening.next:%Y-%m-%d %H:%M} UTC" if opening.next else ""
    if outside:
        return GateResult("window", True, f"no maintenance window is open{until}; --outside-window")
    message, hint = f"no maintenance window of the policy is open{until}", "run again then"
    if opening.next is None:
        message = "the policy has no maintenance window for this table"
        hint = "add one to the policy"
    hint = f"{hint}, or pass --outside-window"
    return GateResult("window", False, message, hint, ExitCode.STALE)


def irreversible_gate(left: Iterable[Step], allowed: bool) -> GateResult:
    """Check that irreversible steps are allowed if there are any."""
    steps = [step for step in left if not step.reversible]
    if not steps:
        return GateResult("irreversible", True, "all remaining steps are reversible")
    names = ", ".join(step.id for step in steps)
    if allowed:
        return GateResult(
            "irreversible", True, f"{names} cannot be rolled back; --allow-irreversible"
        )
    return GateResult(
        "irreversible",
        False,
        f"{names} cannot be rolled back: {'; '.join(_irreversible_losses(steps))}",
        "pass --allow-irreversible to accept this",
        ExitCode.USAGE,
    )


def _irreversible_losses(steps: Iterable[Step]) -> Iterator[str]:
    losses = [loss for step in steps for loss in step.losses]
    yield from dict.fromkeys(losses)
    if any(step.truncates for step in steps):
        yield "history is deleted"


def expected_protocol(plan: Plan, progress: Progress) -> Protocol:
    """Return the protocol before the next step, or after the last."""
    if progress.done == 0:
        return plan.fingerprint.protocol
    return without_features(plan.steps[progress.done - 1].protocol_after, progress.early)


def _minor_version(version: str) -> list[str]:
    return version.split(".")[:2]


REPLAN_HINT = "plan again: the remaining steps depend on the table's current state"
INTERRUPTED = "the run was interrupted"
RUN_AGAIN_HINT = "run the same command again to resume"


class StopReason(NamedTuple):
    """Why execution stopped before the last step."""

    code: ExitCode
    message: str
    hint: str
    earliest: float | None = None
    """when to resume, in seconds since the epoch; None: user action is needed first"""


def check_unchanged(
    plan: Plan, step: Step, progress: Progress, code: ExitCode
) -> StopReason | None:
    """Return why the step must not run; `code` is used if another writer changed the table."""
    if progress.foreign is not None:
        who = progress.foreign.commit.in_words
        return StopReason(
            code, f"before {step.id}, {progress.foreign.what} changed: {who}", REPLAN_HINT
        )
    if (why := _find_wrong_protocol(plan, progress)) is not None:
        return StopReason(code, f"before {step.id} {why}", REPLAN_HINT)
    return None


def check_no_other_run(
    own: Iterable[Sequence[Commit]], run: str, since: int, code: ExitCode
) -> StopReason | None:
    """Return a StopReason if another run of the same plan committed after this run began."""
    for commits in own:
        for commit in commits:
            tag = commit_tag_of(commit)
            if tag is not None and tag.run != run and commit.version > since:
                message = f"another run is executing this plan: {commit.in_words}"
                return StopReason(code, message, "let it finish, then run the same command again")
    return None


def check_window_open(windows: Sequence[Window] | None, now: float) -> StopReason | None:
    """Return a StopReason if all maintenance windows are closed; without windows, return None."""
    moment = datetime.fromtimestamp(now, UTC)
    if windows is None or is_open(windows, moment):
        return None
    coming = next_opening(windows, moment)
    return StopReason(
        ExitCode.CHANGES,
        "the maintenance window has closed",
        "run the same command again when it opens, or pass --wait",
        None if coming is None else coming.timestamp(),
    )
