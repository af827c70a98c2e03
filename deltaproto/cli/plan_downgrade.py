"""`deltaproto plan-downgrade`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import plans
from deltaproto.cli.declare import Command, Option, Panel
from deltaproto.errors import ExitCode, UsageError
from deltaproto.plan_inputs.client_scope import downgrading, letting_in
from deltaproto.plan_inputs.parse_goal import feature_names, versions
from deltaproto.planning.downgrade import Downgrade
from deltaproto.planning.search.search import HistoryChoice
from deltaproto.protocol import feature_catalog

_GOALS = ("--lowest", "--drop", "--for-client", "--policy", "--protocol")
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
        to=versions(values["protocol"]),
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
    "Plan the cheapest way to a lower protocol, with every statement, commit, cost "
    "and consequence.",
    run,
    plans.TABLES,
    (
        Option(
            ("--lowest",),
            "Reach the lowest protocol that takes nothing from any client, by dropping "
            "unused features. Goes with --for-client or --policy.",
            bool,
            False,
            panel=Panel.GOAL,
        ),
        Option(
            ("--include-enabled",),
            "With --lowest: also drop features in use, where possible.",
            bool,
            False,
            panel=Panel.GOAL,
        ),
        Option(
            ("--drop",),
            "Drop these features.",
            str,
            many=True,
            metavar="FEATURE...",
            follows=is_feature,
            panel=Panel.GOAL,
        ),
        Option(
            ("--for-client",),
            "Let these clients read and append.",
            str,
            many=True,
            metavar="ID@VERSION...",
            follows=is_client,
            panel=Panel.GOAL,
        ),
        Option(
            ("--policy",),
            "Let every client of this policy do what it declares.",
            str,
            metavar="FILE",
            panel=Panel.GOAL,
        ),
        Option(
            ("--protocol",),
            "Lower the versions to at most these.",
            str,
            metavar="R,W",
            panel=Panel.GOAL,
            old="--to",
        ),
        Option(
            ("--history",),
            "keep: truncate nothing, so that checkpointProtection may stay. truncate: do not "
            "let it stay.",
            HistoryChoice,
            panel=Panel.GOAL,
        ),
        Option(
            ("--rewrite",),
            "Where drops do not reach the goal, plan a copy into a new table and a swap.",
            bool,
            False,
            panel=Panel.GOAL,
        ),
        plans.ACCESS,
        plans.CLIENT,
        *plans.ENDING,
    ),
    examples=(
        "plan-downgrade ./orders --lowest",
        "plan-downgrade orders --drop deletionVectors --script sql",
    ),
    exits=(ExitCode.OK, ExitCode.FINDINGS, ExitCode.USAGE, ExitCode.UNREADABLE, ExitCode.CHANGES),
)
