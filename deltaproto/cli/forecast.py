"""`deltaproto forecast`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Command, Option, Panel
from deltaproto.cli.inventories import (
    ENGINE,
    INVENTORY,
    MAX_AGE,
    SCAN,
    open_inventory,
    parse_max_age,
)
from deltaproto.cli.progress import show_waiting, warn
from deltaproto.errors import ExitCode, no_tables_error
from deltaproto.fleet.build_report import load_report_policy
from deltaproto.fleet.forecast.forecaster import load_forecaster, run_forecast
from deltaproto.fleet.inventory_reader import (
    build_scan_notices,
    require_current,
    select_newest_state,
)
from deltaproto.policy.finding import FailOn, exit_code_for
from deltaproto.render.forecast import write_forecast
from deltaproto.render.interface import NOTICES, PageFormat


def run(values: Mapping[str, Any]) -> int:
    """Forecast every table of the inventory, render it, and return the worst exit code."""
    name, policy = values["inventory"], values["policy"]
    limit = options.require_limit(values["limit"])
    storage = options.storage_options(values)
    options.refuse_overwrite(values["output"], (policy, *values["client_file"]))
    rules = load_report_policy(policy, allow_empty=values["allow_empty"])
    now = datetime.now(UTC)
    show = options.shows_progress(values)
    with show_waiting("reading the inventory", show=show):
        inventory = open_inventory(name, values)
        state = select_newest_state(inventory, values["scan"])
        require_current(name, inventory, state, values["scan"], storage)
        forecaster = load_forecaster(
            name, storage, rules, values["client"], values["client_file"], now.date()
        )
        found = run_forecast(inventory, state, forecaster)
    if not (found.tables or values["allow_empty"]):
        raise no_tables_error(name)
    notices = build_scan_notices(name, state, now, parse_max_age(values))
    NOTICES.extend(notices.texts)
    with options.open_output(values["output"]) as file:
        color = not values["no_color"]
        write_forecast(found, values["format"], file, color=color, limit=limit)
    if values["format"] is PageFormat.JSONL:
        for notice in notices.texts:
            warn(notice)
    # An incomplete result is never compliant.
    codes = [ExitCode.OK if found.complete else ExitCode.UNREADABLE]
    codes.append(exit_code_for(found.severities, values["fail_on"]))
    if notices.doubtful and values["fail_on"] is FailOn.WARNING:
        codes.append(ExitCode.FINDINGS)
    return int(ExitCode.worst(codes))


COMMAND = Command(
    "forecast",
    "Forecast which features Databricks may turn on automatically in managed tables of Unity "
    "Catalog, when, and which clients that would block.",
    run,
    INVENTORY,
    (
        Option(
            ("--policy",),
            "Show the effect on the clients of this policy, and on those that discover "
            "counted in the inventory. Default: those counted, or else all known clients.",
            metavar="FILE",
            panel=Panel.CLIENTS,
            setting="policy",
            unless=("client",),
        ),
        options.CLIENT,
        options.CLIENT_FILE,
        SCAN,
        MAX_AGE,
        ENGINE,
        options.LIMIT,
        options.ALLOW_EMPTY,
        options.PAGE_FORMAT,
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
    examples=(
        "forecast /data/_inventory --policy policy.yaml",
        "forecast /data/_inventory --client trino@476 --format json",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE),
)
