"""`deltaproto plan-downgrade`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import plans
from deltaproto.cli.declare import Command, Option
from deltaproto.errors import UsageError
from deltaproto.plan_inputs.client_scope import downgrading, letting_in
from deltaproto.plan_inputs.parse_goal import feature_names, versions
from deltaproto.planning.downgrade import Downgrade
from deltaproto.planning.search.search import HistoryChoice
from deltaproto.protocol import feature_catalog

_GOALS = ("--lowest", "--drop", "--for-client", "--policy", "--to")
_HINT = f"one of {', '.join(_GOALS)}"


def run(values: Mapping[str, Any]) -> int:
    """Plan the downgrade of every table."""
    goals = [flag for flag in _GOALS if values[flag.lstrip("-").replace("-", "_")]]
    # A policy and clients of the command line are one goal: everybody who is named.
    kinds = {"--for-client" if flag == "--policy" else flag for flag in goals}
    if len(kinds) != 1 and kinds != {"--lowest", "--for-client"}:
        said = "no goal" if not goals else f"{' and '.join(goals)} are different goals"
        raise UsageError(said, _HINT)
    if values["include_enabled"] and not values["lowest"]:
        raise UsageError("--include-enabled goes with --lowest", _HINT)
    users = plans.users_of(values)
    asked = Downgrade(
        lowest=values["lowest"],
        include_enabled=values["include_enabled"],
        drop=feature_names(values["drop"], "--drop"),
        to=versions(values["to"]),
        history=values["history"],
        rewrite=values["rewrite"],
    )
    by_client = "--for-client" in kinds
    assumed = () if values["access"] else plans.for_clients(values)
    planner = letting_in(asked, values["client"], assumed) if by_client else downgrading(asked)
    return plans.plan_tables(values, "plan-downgrade", users, planner)


def is_feature(word: str) -> bool:
    """Whether a word after `--drop A` is one more feature, and no table."""
    return all(feature_catalog.search(part)[0] is not None for part in word.split(",") if part)


def is_client(word: str) -> bool:
    """Whether a word after `--for-client A` is one more client, and no table."""
    return re.fullmatch(r"[\w.-]+(/[\w.-]+)?@[\w.+ -]+", word) is not None


COMMAND = Command(
    "plan-downgrade",
    "Plan the cheapest way to a lower protocol: every statement, commit, cost and consequence.",
    run,
    plans.TABLES,
    (
        Option(
            ("--lowest",),
            "Goal: the lowest protocol that takes nothing from any client, dropping what nothing "
            "uses; also with --for-client or --policy.",
            bool,
            False,
        ),
        Option(
            ("--include-enabled",),
            "With --lowest: drop what is in use, too, where that is possible.",
            bool,
            False,
        ),
        Option(
            ("--drop",),
            "Goal: these features are gone; several may follow.",
            str,
            many=True,
            metavar="FEATURE...",
            follows=is_feature,
        ),
        Option(
            ("--for-client",),
            "Goal: these clients can read and append again; several may follow.",
            str,
            many=True,
            metavar="ID@VERSION...",
            follows=is_client,
        ),
        Option(
            ("--policy",),
            "Goal: every client that this policy declares can do what it declares.",
            str,
            metavar="FILE",
        ),
        Option(("--to",), "Goal: versions no higher than these.", str, metavar="R,W"),
        Option(
            ("--history",),
            "keep: nothing is truncated, checkpointProtection may stay; truncate: it does not.",
            HistoryChoice,
        ),
        Option(
            ("--rewrite",),
            "Where drops do not reach the goal: plan a copy into a new table, and a swap.",
            bool,
            False,
        ),
        plans.ACCESS,
        plans.CLIENT,
        *plans.ENDING,
    ),
)
