"""Plans a table of a rollout again if it changed between planning and its turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from deltaproto.errors import UsageError
from deltaproto.execution.plan_file import PLAN_ID, LoadedPlan, read_plan
from deltaproto.execution.prepare import ApplyContext
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.plan import Plan, plan_id
from deltaproto.planning.rollout import find_objections

_BY_PATH = "delta.`"


def plan_again(
    planned: LoadedPlan,
    users: ClientScope,
    context: ApplyContext,
    folder: str,
    save: Callable[[Plan, str], None],
    now: float,
) -> LoadedPlan | str | None:
    """Return the saved new plan for the policy, or why it does not replace the old one.

    None: the table meets the policy now.

    Args:
        users: the clients and the policy.
        folder: the folder of the journals, where the plan is saved.
        save: writes a plan to a path.

    Raises:
        TableError: if the table cannot be read.
        UsageError: if the plan cannot be saved.
    """
    old = planned.plan
    name = old.location if old.sql_name.startswith(_BY_PATH) else old.table
    found = load_plan_input(name, context.storage_options, context.spark, now)
    assert found.facts is not None
    # Patterns of the policy match the name that the user gave.
    facts = found.facts._replace(table=old.table, other_names=old.other_names)
    found = found._replace(name=old.table, facts=facts)
    ready = users.with_clients(found).executed_by(old.engine, context.spark.conf)
    new = users.plan_for_policy(ready).plan
    if not (new.steps or new.unmet or new.blocked):
        return None
    objections = list(find_objections(old, new))
    if objections:
        return "; ".join(objections)
    path = _replanned_path(folder, plan_id(new))
    save(new, path)
    return read_plan(path)


def _replanned_path(folder: str, plan: str) -> str:
    """Return the file of a new plan with this id in the folder of the journals."""
    return os.path.join(folder, f"{plan}.plan.json")


def load_replanned(
    plans: Mapping[str, LoadedPlan], replanned: Mapping[str, str], folder: str
) -> dict[str, LoadedPlan]:
    """Return the plans by their id in the rollout; for a replanned table, the new plan.

    If the file of a new plan is missing, damaged or for another table, the plan is created again,
    because the old one no longer fits.

    Args:
        replanned: the id of the new plan by the id of the old one.
    """
    found = dict(plans)
    for old, new in replanned.items():
        if old not in found or PLAN_ID.fullmatch(new) is None:
            continue
        try:
            planned = read_plan(_replanned_path(folder, new))
        except UsageError:
            continue
        if planned.id == new and planned.plan.location == found[old].plan.location:
            found[old] = planned
    return found
