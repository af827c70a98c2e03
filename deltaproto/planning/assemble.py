"""Build a `Plan` from predicted statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deltaproto.planning.advice import find_warnings
from deltaproto.planning.concurrency_change import concurrency_change
from deltaproto.planning.impact import (
    client_changes,
    end_state_of,
    lost_evidence_warning,
    wrong_result_warning,
)
from deltaproto.planning.plan import Alternative, Blocked, Plan
from deltaproto.planning.request import PlanInput, goal_text
from deltaproto.planning.search.copy_by_name import copy_warning
from deltaproto.planning.search.copy_table import end_state_of_copy
from deltaproto.planning.search.cost import compute_cost
from deltaproto.planning.search.goals import requirements_after
from deltaproto.planning.search.prediction import PredictedStatement
from deltaproto.planning.steps import block_secrets, build_steps


def assemble_plan(
    inputs: PlanInput,
    command: str,
    goal: Mapping[str, Any],
    predictions: Sequence[PredictedStatement],
    *,
    blocked: tuple[Blocked, ...] = (),
    alternatives: tuple[Alternative, ...] = (),
    kept: tuple[Blocked, ...] = (),
    unmet: tuple[Blocked, ...] = (),
    notes: tuple[str, ...] = (),
    copy: Alternative | None = None,
) -> Plan:
    """Return the plan whose statements are `predictions`, with their effects.

    Args:
        notes: warnings about the request, shown before those about the steps.
        copy: the plan is this copy into a new table; there are no predictions.
    """
    if copy is None:
        made = build_steps(predictions, inputs.engine, inputs.files, inputs.sql, inputs.writers)
        cost = compute_cost(predictions, inputs.engine, inputs.files)
        left = predictions[-1].outcome.table if predictions else inputs.table
        ending = end_state_of(left, inputs.table)
    else:
        made, cost = copy.steps, copy.cost
        left = inputs.table._replace(protocol=copy.protocol_after)
        ending = end_state_of_copy(inputs.table)._replace(protocol=copy.protocol_after)
    after = made[-1].protocol_after if made else inputs.table.protocol
    needs = requirements_after(inputs.needs, ending) if made else inputs.needs
    changes = client_changes(inputs, needs)
    truncates = any(step.truncates for step in made)
    text = goal_text(goal, inputs.table.protocol)
    plan = Plan(
        command=command,
        table=inputs.name,
        location=inputs.location,
        sql_name=inputs.sql,
        goal=goal,
        goal_text=text,
        engine=inputs.engine,
        fingerprint=inputs.fingerprint,
        protocol_before=inputs.table.protocol,
        protocol_after=after,
        steps=made,
        cost=cost,
        blocked=blocked,
        alternatives=alternatives,
        kept=kept,
        unmet=unmet,
        warnings=(
            *inputs.warnings,
            *notes,
            *wrong_result_warning(changes),
            *(find_warnings(inputs, made, after) if copy is None else (copy_warning(made),)),
            *(lost_evidence_warning(inputs.clients, needs) if truncates else ()),
        ),
        clients=changes,
        complete=inputs.complete,
        everybody=inputs.everybody,
        concurrency=concurrency_change(inputs, left),
        other_names=inputs.other_names,
    )
    return block_secrets(plan)
