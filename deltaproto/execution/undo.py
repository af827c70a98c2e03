"""Undo plans: statements that roll back the finished steps of a plan.

RESTORE does not help: it restores data and schema, and removes no features from the protocol.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from deltaproto.errors import DeltaprotoError, ExitCode, UsageError
from deltaproto.execution.copy_state import CopyTables, is_named_copy
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import fingerprint_gate, forged_plan_gate
from deltaproto.execution.prepare import ApplyContext, locate_progress
from deltaproto.execution.prepare_copy import undo_steps
from deltaproto.execution.progress import reading_address
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.search.cost import Cost
from deltaproto.planning.upgrade import plan_upgrade


class StalePlanError(DeltaprotoError):
    """The table is no longer as the plan left it. Nothing was changed. Exit code 4."""

    exit_code = ExitCode.STALE
    code = "stale"


def plan_undo(planned: LoadedPlan, context: ApplyContext, now: float | None = None) -> Plan:
    """Return the plan that rolls back the finished steps of `planned`, last step first.

    Each statement is predicted on the table's current state.

    Raises:
        StalePlanError: when another writer has changed the table since.
        UsageError: when the plan contradicts itself.
        TableError: when the table cannot be read.
    """
    plan = planned.plan
    if is_named_copy(plan):
        return _plan_copy_undo(planned, context)
    contradiction = forged_plan_gate(planned, None)
    if contradiction is not None:
        raise UsageError(contradiction.message, contradiction.hint)
    _, observed, progress, *_ = locate_progress(planned, context, session=False)
    gate = fingerprint_gate(plan, observed, progress, started=False)
    if not gate.passed:
        raise StalePlanError(gate.message, "plan the rollback from the current state: plan-upgrade")
    done = plan.steps[: progress.done]
    script = ";\n".join(step.undo for step in reversed(done) if step.undo is not None)
    inputs = load_plan_input(
        reading_address(plan),
        context.storage_options,
        context.spark,
        time.time() if now is None else now,
    )
    inputs = inputs._replace(name=plan.table, sql=plan.sql_name, engine=plan.engine)
    back = plan_upgrade(
        inputs, UpgradeRequest(statements=tuple(parse_script(script)) if script else ())
    )
    return back._replace(
        goal={"kind": "upgrade", "undo": planned.id},
        goal_text=f"undo plan {planned.id}",
        other_names=plan.other_names,
        warnings=(
            *_irreversible_warnings(done),
            "RESTORE removes no features from the protocol.",
            *back.warnings,
        ),
    )


def _plan_copy_undo(planned: LoadedPlan, context: ApplyContext) -> Plan:
    """Return the plan that gives the old table its name again."""
    plan = planned.plan
    state = CopyTables(plan, planned.id, context.storage_options, context.spark).read()
    steps = undo_steps(plan)
    return plan._replace(
        command="plan-upgrade",
        goal={"kind": "upgrade", "undo": planned.id},
        goal_text=f"undo plan {planned.id}",
        fingerprint=plan.fingerprint._replace(version=state.old.version),
        protocol_before=plan.protocol_after,
        protocol_after=plan.protocol_before,
        steps=steps,
        cost=Cost(0, 0, 0, 0, 1),
        alternatives=(),
        kept=(),
        fixes=(),
        warnings=(
            f"The new table is kept as {state.names.new}: drop it, and delete its folder, when it "
            "is no longer needed.",
        ),
        clients=tuple(
            client._replace(before=client.after, after=client.before) for client in plan.clients
        ),
        concurrency=None,
    )


def _irreversible_warnings(done: tuple[Step, ...]) -> Iterator[str]:
    for step in done:
        if step.sql is None:
            continue
        if step.undo is None and step.protocol_after != step.protocol_before:
            yield f"{step.id} ({step.sql}) has no rollback."
        for loss in step.losses:
            yield f"{step.id}: {loss}, irreversibly."
        if step.truncates:
            yield f"{step.id}: the history that it deleted cannot be restored."
