"""`deltaproto plan-upgrade`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import completion, options, plans
from deltaproto.cli.declare import Command, Option, Panel, option_name
from deltaproto.cli.plan_downgrade import FOR_CLIENT, PROTOCOL, is_feature
from deltaproto.errors import ExitCode, UsageError
from deltaproto.plan_inputs.from_log import with_restored_versions
from deltaproto.plan_inputs.parse_goal import (
    parse_features_to_enable,
    parse_version_pair,
    read_script,
    split_words,
    validate_properties_to_set,
)
from deltaproto.plan_inputs.planners import upgrade_planner
from deltaproto.planning.request import UpgradeRequest

_GOAL_FLAGS = ("--enable", "--set", "--protocol", "--isolation", "--cluster-by", "--sql")


def run(values: Mapping[str, Any]) -> int:
    """Plan the upgrade of every table."""
    if not any(values[option_name(flag)] for flag in _GOAL_FLAGS):
        raise UsageError("no change requested", f"pass one of {', '.join(_GOAL_FLAGS)}")
    users = plans.build_users(values)
    request = UpgradeRequest(
        enable=parse_features_to_enable(
            values["enable"], tuple(split_words(values["cluster_by"])), "--enable"
        ),
        set=validate_properties_to_set(
            options.parse_pairs(values["set"], "--set", once=True), "--set"
        ),
        to=parse_version_pair(values["protocol"]),
        isolation=values["isolation"],
        statements=tuple(parsed for text in values["sql"] for parsed in read_script(text)),
    )
    planner = upgrade_planner(request, plans.parse_for_clients(values))
    storage, spark = options.storage_options(values), options.spark_settings(values)
    return plans.plan_tables(
        *(values, "plan-upgrade", users, planner),
        # The statements name the tables.
        cache_saved=not request.statements,
        prepare=lambda found: with_restored_versions(found, request.statements, storage, spark),
    )


def _is_setting(word: str) -> bool:
    return re.match(r"[A-Za-z_][\w.-]*=", word) is not None


def _is_feature_or_setting(word: str) -> bool:
    return is_feature(word.partition("=")[0])


COMMAND = Command(
    "plan-upgrade",
    "Plan a feature, property, isolation level or SQL statement, and show its effect "
    "on the protocol, clients and writers.",
    run,
    plans.TABLES,
    (
        Option(
            ("--enable",),
            "Enable these features and what they require; columnMapping=name selects a mode.",
            many=True,
            metavar="FEATURE...",
            follows=_is_feature_or_setting,
            words=completion.features,
            panel=Panel.GOAL,
        ),
        Option(
            ("--set",),
            "Set these table properties.",
            many=True,
            metavar="PROPERTY=VALUE...",
            follows=_is_setting,
            words=completion.properties,
            panel=Panel.GOAL,
        ),
        PROTOCOL._replace(help="Raise the protocol to at least these versions."),
        Option(
            ("--isolation",),
            "Set the isolation level: Serializable or WriteSerializable.",
            metavar="LEVEL",
            words=completion.isolation_levels,
            panel=Panel.GOAL,
        ),
        Option(
            ("--cluster-by",),
            "Cluster by this column. Repeatable.",
            many=True,
            metavar="COLUMN",
            panel=Panel.GOAL,
        ),
        Option(
            ("--sql",),
            "Predict the effect of these SQL statements (text or file). Repeatable.",
            many=True,
            metavar="SQL",
            panel=Panel.GOAL,
        ),
        FOR_CLIENT._replace(
            help="Avoid changes that would block these clients.", panel=Panel.CLIENTS
        ),
        plans.ACCESS,
        options.CLIENT,
        plans.POLICY,
        *plans.COMMON_OPTIONS,
    ),
    examples=(
        "plan-upgrade ./orders --enable deletionVectors",
        "plan-upgrade orders --enable rowTracking --format json -o p.json",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE, ExitCode.CHANGES),
)
