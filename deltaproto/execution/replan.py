"""Plans a table of a rollout again if it changed between planning and its turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from deltaproto.errors import UsageError
from deltaproto.execution.plan_file import PLAN_ID, LoadedPlan, read_plans
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.plan import Plan, plan_id
from deltaproto.planning.rollout import find_objections
from deltaproto.protocol.table_state import SparkSettings

_BY_PATH = "delta.`"


class Replanner:
    """Makes plans for the policy of a rollout.

    Args:
        users: the clients and the policy.
        folder: where the plans are saved: that of the journals.
        save: writes a plan to a path.
    """

    def __init__(
        self,
        users: ClientScope,
        storage: Mapping[str, str],
        spark: SparkSettings,
        folder: str,
        save: Callable[[Plan, str], None],
    ) -> None:
        self._users, self._storage, self._spark = users, storage, spark
        self._folder, self._save = folder, save

    def plan_again(self, planned: LoadedPlan, now: float) -> LoadedPlan | str | None:
        """Return the saved new plan, or why it does not replace the old one.

        None: the table meets the policy now.

        Raises:
            TableError: if the table cannot be read.
            UsageError: if the plan cannot be saved.
        """
        old = planned.plan
        name = old.location if old.sql_name.startswith(_BY_PATH) else old.table
        found = load_plan_input(name, self._storage, self._spark, now)
        assert found.facts is not None
        # Patterns of the policy match the name that the user gave.
        facts = found.facts._replace(table=old.table, other_names=old.other_names)
        found = found._replace(name=old.table, facts=facts)
        ready = self._users.on(found).executed_by(old.engine, self._spark.conf)
        new = self._users.converged(ready).plan
        if not (new.steps or new.unmet or new.blocked):
            return None
        objections = list(find_objections(old, new))
        if objections:
            return "; ".join(objections)
        path = replanned_path(self._folder, plan_id(new))
        self._save(new, path)
        return _load(path)


def replanned_path(folder: str, plan: str) -> str:
    """Return the file of a new plan with this id in the folder of the journals."""
    return os.path.join(folder, f"{plan}.plan.json")


def load_replanned(
    plans: Mapping[str, LoadedPlan], replanned: Mapping[str, str], folder: str
) -> dict[str, LoadedPlan]:
    """Return the plans by the id of the rollout, where a table has a new plan with that one.

    A new plan whose file is missing or damaged is made again, as the old one no longer fits. So is
    one that is for another table.

    Args:
        replanned: the id of the new plan by that of the old one.
    """
    found = dict(plans)
    for old, new in replanned.items():
        if old not in found or PLAN_ID.fullmatch(new) is None:
            continue
        try:
            planned = _load(replanned_path(folder, new))
        except UsageError:
            continue
        if planned.id == new and planned.plan.location == found[old].plan.location:
            found[old] = planned
    return found


def _load(path: str) -> LoadedPlan:
    (planned,) = read_plans(path)
    if not isinstance(planned, LoadedPlan):
        raise UsageError(f"{path} is not a plan", "move it away, and run the command again")
    return planned
