"""`deltaproto plan`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import plans
from deltaproto.cli.declare import Command, Option, Panel
from deltaproto.errors import ExitCode, UsageError
from deltaproto.plan_inputs.client_scope import target_planner


def run(values: Mapping[str, Any]) -> int:
    """Plan what brings every table to the policy."""
    if not values["policy"]:
        raise UsageError("no policy", "pass --policy FILE: it states what the tables must be")
    folder = values["out"]
    if folder is not None:
        _require_no_plans(folder)
    users = plans.build_users(values)
    return plans.plan_tables(
        values, "plan", users, target_planner, prepare=users.targeted, folder=folder
    )


def _require_no_plans(folder: str) -> None:
    """Refuse a folder with plans: `apply` would execute the old ones as well."""
    if not os.path.lexists(folder):
        return
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
    "Plan the cheapest statements that bring tables to a policy, in either direction, and show "
    "what they fix and what stays violated.",
    run,
    plans.TABLES,
    (
        Option(
            ("--policy",),
            "Bring the tables to this policy.",
            str,
            metavar="FILE",
            panel=Panel.GOAL,
            setting="policy",
        ),
        Option(
            ("--out",),
            "Save a plan for each table that needs steps in this folder, for apply.",
            str,
            metavar="FOLDER",
            panel=Panel.OUTPUT,
        ),
        plans.ACCESS,
        plans.CLIENT,
        *plans.COMMON_OPTIONS,
    ),
    examples=(
        "plan ./orders --policy policy.yaml",
        "plan /data/_inventory --policy policy.yaml --out plans --detailed-exitcode",
    ),
    exits=(ExitCode.OK, ExitCode.FINDINGS, ExitCode.USAGE, ExitCode.UNREADABLE, ExitCode.CHANGES),
)
