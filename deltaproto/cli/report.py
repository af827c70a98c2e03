"""`deltaproto report`."""

from __future__ import annotations

import sys
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
    EngineChoice,
    open_inventory,
    parse_max_age,
)
from deltaproto.cli.progress import show_waiting, warn
from deltaproto.counts import counted
from deltaproto.errors import ExitCode, UsageError, no_tables_error
from deltaproto.fleet.build_report import build_report, load_report_policy
from deltaproto.fleet.inventory_reader import (
    build_scan_notices,
    require_current,
    select_newest_state,
)
from deltaproto.fleet.scan_history import MAY_BE_BEHIND
from deltaproto.fleet.seen.stored_uses import add_clients_seen
from deltaproto.policy.finding import describe_hidden
from deltaproto.render.interface import NOTICES
from deltaproto.render.overview.write import ReportFormat, write_report

_MAX_TABLES = 50_000
_READ_AT_ONCE = (ReportFormat.TEXT, ReportFormat.MARKDOWN)
"""formats with the warnings, so that standard error does not repeat them beside the report"""


def run(values: Mapping[str, Any]) -> int:
    """Build the report of an inventory and render it."""
    if values["most"] < 0:
        raise UsageError(f"--most {values['most']} is less than 0", "give a number of tables")
    storage = options.storage_options(values)
    policy = values["policy"]
    options.refuse_overwrite(values["output"], (policy, *values["client_file"]))
    format, chosen = _choose_format(values)
    rules = load_report_policy(policy, allow_empty=values["allow_empty"])
    show = options.shows_progress(values)
    spark = " with Spark" if values["engine"] is EngineChoice.SPARK else ""
    with show_waiting(f"reading the inventory{spark}", show=show):
        inventory = open_inventory(values["inventory"], values)
        state = select_newest_state(inventory, values["scan"])
        require_current(values["inventory"], inventory, state, values["scan"], storage)
        found = build_report(rules, values["client_file"], inventory, state)
        if values["engine"] is EngineChoice.LOCAL:
            found = add_clients_seen(found, values["inventory"], storage)
        if not (found.tables or found.unread or values["allow_empty"]):
            raise no_tables_error(values["inventory"])
        now = datetime.now(UTC)
        notices = build_scan_notices(values["inventory"], state, now, parse_max_age(values)).texts
        incomplete = sum(not row.complete for row in found.tables)
        if incomplete:
            total = f"{incomplete:,} of {counted(len(found.tables), 'table')}"
            notices.append(f"{total} {MAY_BE_BEHIND}")
        NOTICES.extend(notices)
        if format not in _READ_AT_ONCE or values["output"] not in (None, "-"):
            for notice in notices:
                warn(notice)
        hidden = describe_hidden(found.waived, found.off)
        if hidden and format is ReportFormat.CSV:
            # Each line is a table, so there is no place for a summary.
            warn(f"findings not shown: {hidden}")
    with options.open_output(values["output"]) as file:
        color = not values["no_color"]
        write_report(found, policy, format, values["most"], now, file, color=color)
    if not (chosen or values["quiet"]):
        print("hint: --output report.html writes the page with all tables", file=sys.stderr)
    # An incomplete result is never compliant.
    return int(ExitCode.UNREADABLE if found.unread or incomplete else ExitCode.OK)


def _choose_format(values: Mapping[str, Any]) -> tuple[ReportFormat, bool]:
    """Return the format, and False if it is text only because the output is a terminal."""
    if values["format"] is not None:
        return values["format"], True
    shown = values["output"] in (None, "-") and sys.stdout is not None and sys.stdout.isatty()
    return (ReportFormat.TEXT, False) if shown else (ReportFormat.HTML, True)


COMMAND = Command(
    "report",
    "Write a report about a fleet: protocols, features, clients, drift, and what to fix first.",
    run,
    INVENTORY,
    (
        Option(
            ("--format",),
            "Choose the output format. Default: html; on a terminal: text.",
            ReportFormat,
            panel=Panel.OUTPUT,
        ),
        options.POLICY._replace(
            help="Evaluate the clients and rules of this policy. Default: the clients that made "
            "the newest commits."
        ),
        options.CLIENT_FILE,
        SCAN,
        MAX_AGE,
        ENGINE,
        Option(
            ("--most",),
            "List at most N tables; totals always cover all tables.",
            int,
            _MAX_TABLES,
            metavar="N",
            panel=Panel.OUTPUT,
        ),
        options.ALLOW_EMPTY,
        options.OUTPUT,
        *options.READING,
    ),
    examples=(
        "report /data/_inventory --output fleet.html",
        "report /data/_inventory --policy policy.yaml --format markdown",
    ),
)
