"""`deltaproto plan-downgrade`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import completion, options, plans
from deltaproto.cli.declare import Command, Option, Panel, option_name, switch
from deltaproto.counts import all_names
from deltaproto.errors import ExitCode, UsageError
from deltaproto.plan_inputs.parse_goal import parse_feature_names, parse_version_pair
from deltaproto.plan_inputs.planners import client_downgrade_planner, downgrade_planner
from deltaproto.planning.downgrade import DowngradeRequest
from deltaproto.planning.search.goals import HistoryChoice
from deltaproto.protocol import feature_catalog

_GOAL_FLAGS = ("--lowest", "--drop", "--for-client", "--policy", "--protocol")
_GOAL_HINT = f"one of {', '.join(_GOAL_FLAGS)}"


def run(values: Mapping[str, Any]) -> int:
    """Plan the downgrade of every table."""
    goals = [flag for flag in _GOAL_FLAGS if values[option_name(flag)]]
    # A policy and clients from the command line form one goal: all of these clients.
    kinds = {"--for-client" if flag == "--policy" else flag for flag in goals}
    if len(kinds) != 1 and kinds != {"--lowest", "--for-client"}:
        problem = "no goal" if not goals else f"{all_names(goals)} are different goals"
        raise UsageError(problem, _GOAL_HINT)
    options.require_partner(values, "--include-enabled", "--lowest")
    users = plans.build_users(values)
    request = DowngradeRequest(
        lowest=values["lowest"],
        include_enabled=values["include_enabled"],
        drop=parse_feature_names(values["drop"], "--drop"),
        to=parse_version_pair(values["protocol"]),
        history=values["history"],
        rewrite=values["rewrite"],
    )
    by_client = "--for-client" in kinds
    assumed = () if values["access"] else plans.parse_for_clients(values)
    planner = (
        client_downgrade_planner(request, values["client"], assumed)
        if by_client
        else downgrade_planner(request)
    )
    return plans.plan_tables(values, "plan-downgrade", users, planner)


def is_feature(word: str) -> bool:
    """Return True if a word after `--drop A` is another feature rather than a table."""
    parts = [part for part in word.split(",") if part]
    return bool(parts) and all(
        feature_catalog.search_feature(part)[0] is not None for part in parts
    )


def _is_client(word: str) -> bool:
    """Return True if a word after `--for-client A` is another client rather than a table."""
    return re.fullmatch(r"[\w.-]+(/[\w.-]+)?@[\w.+ -]+", word) is not None


PROTOCOL = Option(
    ("--protocol",),
    "Lower the protocol to at most these versions.",
    metavar="R,W",
    panel=Panel.GOAL,
    old="--to",
)
FOR_CLIENT = Option(
    ("--for-client",),
    "Make the table readable and writable (append) for these clients.",
    many=True,
    metavar="ID@VERSION...",
    follows=_is_client,
    words=completion.clients,
    panel=Panel.GOAL,
)
COMMAND = Command(
    "plan-downgrade",
    "Plan the cheapest statements that lower the protocol, with every commit, cost and "
    "consequence.",
    run,
    plans.TABLES,
    (
        switch(
            "--lowest",
            help="Reach the lowest protocol at which no client loses access, by dropping unused "
            "features. Combine with --for-client or --policy.",
            panel=Panel.GOAL,
        ),
        switch(
            "--include-enabled",
            help="With --lowest: also drop features in use, where possible.",
            panel=Panel.GOAL,
        ),
        Option(
            ("--drop",),
            "Drop these features.",
            many=True,
            metavar="FEATURE...",
            follows=is_feature,
            words=completion.features,
            panel=Panel.GOAL,
        ),
        FOR_CLIENT,
        Option(
            ("--policy",),
            "Give every client of this policy the access it declares.",
            metavar="FILE",
            panel=Panel.GOAL,
        ),
        PROTOCOL,
        Option(
            ("--history",),
            "keep: preserve history (may leave checkpointProtection). truncate: delete history to "
            "remove it.",
            HistoryChoice,
            panel=Panel.GOAL,
        ),
        switch(
            "--rewrite",
            help="Plan to copy the table and swap in the copy if drops cannot reach the goal.",
            panel=Panel.GOAL,
        ),
        plans.ACCESS,
        options.CLIENT,
        *plans.COMMON_OPTIONS,
    ),
    examples=(
        "plan-downgrade ./orders --lowest",
        "plan-downgrade orders --drop deletionVectors --script sql",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE, ExitCode.CHANGES),
)
