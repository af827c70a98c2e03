"""`deltaproto plan-upgrade`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options, plans
from deltaproto.cli.declare import Command, Option
from deltaproto.cli.plan_downgrade import is_client, is_feature
from deltaproto.errors import UsageError
from deltaproto.plan_inputs.client_scope import upgrading
from deltaproto.plan_inputs.parse_goal import script, split, versions, wanted_features
from deltaproto.planning.upgrade_request import Upgrade

_ASKS = ("--enable", "--set", "--to", "--isolation", "--cluster-by", "--sql")


def run(values: Mapping[str, Any]) -> int:
    """Plan the upgrade of every table."""
    if not any(values[flag.lstrip("-").replace("-", "_")] for flag in _ASKS):
        raise UsageError("nothing is asked for", f"one of {', '.join(_ASKS)}")
    users = plans.users_of(values)
    asked = Upgrade(
        enable=wanted_features(values["enable"], tuple(split(values["cluster_by"])), "--enable"),
        set=options.pairs(values["set"], "--set"),
        to=versions(values["to"]),
        isolation=values["isolation"],
        statements=tuple(parsed for text in values["sql"] for parsed in script(text)),
    )
    planner = upgrading(asked, plans.for_clients(values))
    # Statements name tables.
    alike = not asked.statements
    return plans.plan_tables(values, "plan-upgrade", users, planner, alike_saved=alike)


def _is_setting(word: str) -> bool:
    return re.match(r"[A-Za-z_][\w.-]*=", word) is not None


def _is_wanted(word: str) -> bool:
    return is_feature(word.partition("=")[0])


COMMAND = Command(
    "plan-upgrade",
    "Plan what a feature, property or isolation level does to protocol, clients and writers.",
    run,
    plans.TABLES,
    (
        Option(
            ("--enable",),
            "Features to switch on, with what they need; columnMapping=name; several may follow.",
            str,
            many=True,
            metavar="FEATURE...",
            follows=_is_wanted,
        ),
        Option(
            ("--set",),
            "Table properties to set; several may follow.",
            str,
            many=True,
            metavar="PROPERTY=VALUE...",
            follows=_is_setting,
        ),
        Option(("--to",), "Versions no lower than these.", str, metavar="R,W"),
        Option(
            ("--isolation",),
            "Isolation level: Serializable or WriteSerializable.",
            str,
            metavar="LEVEL",
        ),
        Option(
            ("--cluster-by",),
            "Columns to cluster by; repeatable.",
            str,
            many=True,
            metavar="COLUMN",
        ),
        Option(
            ("--sql",),
            "Statements, or a file of them, and what they would do; repeatable.",
            str,
            many=True,
            metavar="SQL",
        ),
        Option(
            ("--for-client",),
            "Clients that must keep working; several may follow.",
            str,
            many=True,
            metavar="ID@VERSION...",
            follows=is_client,
        ),
        plans.ACCESS,
        plans.CLIENT,
        plans.POLICY,
        *plans.ENDING,
    ),
)
