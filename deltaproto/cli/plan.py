"""`deltaproto plan`."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options, plans
from deltaproto.cli.declare import Command, Option, Panel
from deltaproto.cli.progress import warn
from deltaproto.errors import ExitCode, TableError, UsageError
from deltaproto.execution.rollout_file import ROLLOUT_FILE
from deltaproto.execution.warning import maintenance_windows_for
from deltaproto.fleet.schemas import is_inventory, is_table
from deltaproto.plan_inputs.planners import target_planner
from deltaproto.planning.plan import Plan, plan_id
from deltaproto.planning.rollout import CANARY, RolloutTable, Wave, assign_waves
from deltaproto.planning.search.cost import Cost
from deltaproto.policy.document import Policy
from deltaproto.render.interface import error_fields, json_text
from deltaproto.render.plan_json import save_plan_file, save_rollout_file, write_plan_text


def run(values: Mapping[str, Any]) -> int:
    """Plan the statements that bring every table into line with the policy."""
    if not values["policy"]:
        raise UsageError("no policy", "pass --policy FILE, with the requirements for the tables")
    folder = values["out"]
    users = plans.build_users(values)
    saved: _PlanFolder | None = None
    if folder is not None:
        _require_folder_for_plans(folder)
        saved = _PlanFolder(folder, users.policy)
    code = plans.plan_tables(
        values,
        "plan",
        users,
        target_planner,
        prepare=users.with_target,
        save=None if saved is None else saved.save,
        save_error=None if saved is None else saved.save_error,
    )
    if saved is not None and saved.is_empty and not values["quiet"]:
        print(f"no plan has steps: nothing was saved in {folder}", file=sys.stderr)
    if saved is not None and (waves := saved.assign_waves()) and not values["quiet"]:
        sizes = ", ".join(f"{wave.name}: {len(wave.tables):,}" for wave in waves)
        print(f"tables in each wave of the rollout: {sizes}", file=sys.stderr)
        if saved.lacks_canary(waves):
            warn(f"no canary of the rollout has a plan to apply: it begins with {waves[0].name}")
    return code


class _PlanFolder:
    """Saves plans in a folder, and assigns them to waves if the policy has a rollout."""

    def __init__(self, folder: str, policy: Policy | None) -> None:
        self._folder, self._policy = folder, policy
        self._rollout = None if policy is None else policy.rollout
        self._windows = self._failed = False
        self._planned: dict[str, tuple[RolloutTable, Cost]] = {}
        self._other_names: dict[str, tuple[str, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """True if nothing was saved."""
        return not (self._planned or self._failed)

    def save(self, plan: Plan) -> None:
        """Save one plan.

        Raises:
            UsageError: if a file cannot be written.
        """
        if self._rollout is not None and not self._planned:
            self._save_rollout((), complete=False)
        name = _plan_file_name(plan)
        save_plan_file(plan, os.path.join(self._folder, name))
        table = RolloutTable(plan_id(plan), plan.table, plan.location, name)
        self._planned[table.plan_id] = table, plan.cost
        if plan.other_names:
            self._other_names[table.plan_id] = plan.other_names
        if self._rollout is not None and not self._windows:
            self._windows = maintenance_windows_for(self._policy, plan) is not None

    def save_error(self, table: str, error: TableError) -> None:
        """Save a table that could not be planned, so that commands that read the folder report it.

        Raises:
            UsageError: if the file cannot be written.
        """
        fields = {"table": table, "error": error_fields(error)}
        digest = hashlib.sha256(table.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        text = json_text("plan", fields, line=False, complete=False)
        write_plan_text(text, os.path.join(self._folder, f"not-planned-{digest}.json"))
        self._failed = True

    def assign_waves(self) -> tuple[Wave, ...]:
        """Save the plans of each wave, and return the waves; empty without a rollout."""
        if self._rollout is None or not self._planned:
            return ()
        waves = assign_waves(self._rollout, self._planned.values(), self._other_names)
        self._save_rollout(waves, complete=True)
        return waves

    def lacks_canary(self, waves: tuple[Wave, ...]) -> bool:
        """Return True if the policy names canaries, and no wave has one."""
        wanted = self._rollout is not None and self._rollout.canary
        return bool(wanted) and all(wave.name != CANARY for wave in waves)

    def _save_rollout(self, waves: tuple[Wave, ...], *, complete: bool) -> None:
        assert self._rollout is not None
        path = os.path.join(self._folder, ROLLOUT_FILE)
        save_rollout_file(self._rollout, waves, path, windows=self._windows, complete=complete)


def _plan_file_name(plan: Plan) -> str:
    """Return the table's last part and the plan's id, as a file name."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", plan.location.rstrip("/").rpartition("/")[2])
    return f"{name.strip('.-')[:80] or 'table'}-{plan_id(plan)}.json"


def _require_folder_for_plans(folder: str) -> None:
    """Refuse a table, an inventory, and a folder with plans, which `apply` would execute as well.

    Raises:
        UsageError: if it is one.
    """
    if not os.path.lexists(folder):
        return
    for is_kind, what in ((is_table, "a Delta table"), (is_inventory, "an inventory")):
        if is_kind(folder, {}):
            raise UsageError(f"{folder} is {what}, not a folder for plans", "pass another --out")
    if os.path.isfile(folder):
        raise UsageError(f"{folder} is a file, not a folder for plans", "pass another --out")
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise UsageError(
            f"{folder}: {error.strerror or error}", "pass a folder for the plans"
        ) from None
    old = sorted(name for name in names if name.endswith((".json", ".jsonl")))
    if old:
        raise UsageError(
            f"{folder} has plans already, such as {old[0]}",
            "pass a new folder: apply would execute the old plans as well",
        )


COMMAND = Command(
    "plan",
    "Plan the cheapest statements that bring tables into line with a policy, and show "
    "what they fix and what stays violated.",
    run,
    plans.TABLES._replace(setting="inventory", unless=("from_",)),
    (
        Option(
            ("--policy",),
            "Bring the tables into line with this policy.",
            metavar="FILE",
            panel=Panel.GOAL,
            setting="policy",
        ),
        Option(
            ("--out",),
            "Save the plan of each table that needs steps to this folder, for apply.",
            metavar="FOLDER",
            panel=Panel.OUTPUT,
        ),
        plans.ACCESS,
        options.CLIENT,
        *plans.COMMON_OPTIONS,
    ),
    examples=(
        "plan ./orders --policy policy.yaml",
        "plan inventory --policy policy.yaml --out gold --detailed-exitcode",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE, ExitCode.CHANGES),
)
