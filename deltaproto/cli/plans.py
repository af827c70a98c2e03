"""Shared by plan, plan-upgrade and plan-downgrade: options, tables, output and exit codes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Option, Panel, switch
from deltaproto.cli.inspect import read_table_names
from deltaproto.cli.inventories import MAX_AGE, SCAN, SEEN, SEEN_DAYS, read_seen
from deltaproto.cli.progress import warn
from deltaproto.cli.read_plan_inputs import read_plan_inputs
from deltaproto.cli.table_planner import TablePlanner
from deltaproto.errors import ExitCode, TableError, UsageError
from deltaproto.fleet.schemas import is_inventory
from deltaproto.location import is_remote
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.plan_inputs.parse_goal import split_words
from deltaproto.plan_inputs.planners import Planner
from deltaproto.planning.plan import Plan
from deltaproto.planning.request import PlanInput
from deltaproto.policy.local_catalog import DEFAULT_ACCESS, load_local_policy, parse_accesses
from deltaproto.render.interface import PageFormat
from deltaproto.render.plan import PlanReport, Script
from deltaproto.render.plan_script import is_complete
from deltaproto.tables.engine_errors import contain_table_errors

TABLES = Argument(
    "tables",
    "TABLE...",
    "Path, URI, catalog name, inventory or saved inspection (JSON); - reads names "
    "from standard input.",
    many=True,
    required=False,
)
FROM = Option(
    ("--from",),
    "Plan the tables of this inventory, from its newest scans. Repeatable.",
    many=True,
    metavar="INVENTORY",
    panel=Panel.INPUT,
)
WHERE = Option(
    ("--where",),
    "Plan only tables of inventories that match this SQL condition on the columns of `tables`.",
    metavar="SQL",
    panel=Panel.INPUT,
)
FRESH = switch(
    "--fresh",
    help="Read each table of an inventory again, so that the plans can be applied.",
    panel=Panel.INPUT,
)
ENGINE = Option(
    ("--engine",),
    "Plan for this engine, such as delta-spark@4.4 or databricks@16.4.",
    metavar="NAME@VERSION",
    panel=Panel.SPARK,
)
ACCESS = Option(
    ("--access",),
    "Assume that clients named on the command line need this access. Default: read and "
    "append. Repeatable.",
    many=True,
    metavar="ACCESS",
    panel=Panel.CLIENTS,
)
POLICY = options.POLICY._replace(
    help="Exit 1 if a client of this policy loses access, or the plan violates the policy."
)
DETAILED = switch("--detailed-exitcode", help="Exit 10 if changes are pending.", panel=Panel.OUTPUT)
SCRIPT = Option(
    ("--script",), "Print only the statements, with comments, as text.", Script, panel=Panel.OUTPUT
)
COMMON_OPTIONS = (
    FROM,
    WHERE,
    SCAN,
    SEEN._replace(
        help="Also show the effect on the clients that discover counted in this inventory. Exit 1 "
        "if one that is not declared loses access."
    ),
    SEEN_DAYS,
    MAX_AGE,
    FRESH,
    options.ALLOW_EMPTY,
    ENGINE,
    options.CLIENT_FILE,
    DETAILED,
    SCRIPT,
    options.DETAILS,
    options.LIMIT,
    options.PAGE_FORMAT,
    options.OUTPUT,
    *options.READING,
)


def plan_tables(
    values: Mapping[str, Any],
    command: str,
    users: ClientScope,
    planner: Planner,
    *,
    cache_saved: bool = True,
    prepare: Callable[[PlanInput], PlanInput] | None = None,
    save: Callable[[Plan], None] | None = None,
    save_error: Callable[[str, TableError], None] | None = None,
) -> int:
    """Plan every table, render each, and return the worst exit code.

    With `cache_saved`, saved tables with the same planner input share one plan.

    Args:
        prepare: adds to each table what the planner needs.
        save: receives each plan with steps, for the table as it is now.
        save_error: receives each table that cannot be planned, if there are several.
    """
    if values["script"] and values["format"] is not PageFormat.TEXT:
        both = f"--script and --format {values['format']} are different outputs"
        raise UsageError(both, "leave out one of them")
    names = _read_names(values)
    inventories = _find_inventories(names, values)
    table_planner = TablePlanner(values, users, planner, prepare, cache_saved, save)
    options.refuse_overwrite(
        values["output"], (*names, values["policy"], *values.get("sql", ()), *values["client_file"])
    )
    codes = {ExitCode.OK}
    with options.open_output(values["output"]) as file:
        inputs = read_plan_inputs(names, inventories, values)
        # The first input shows whether the only name is an inventory.
        first = next(inputs, None)
        report = PlanReport(
            command,
            values["format"],
            file,
            time.time(),
            color=not values["no_color"],
            script=values["script"],
            details=values["details"],
            limit=options.require_limit(values["limit"]),
            many=len(names) > 1 or bool(inventories) or any(map(os.path.isfile, names)),
        )
        every = chain(() if first is None else (first,), inputs)
        for pending, read in table_planner.begin(every):
            name = pending.name
            try:
                with contain_table_errors():
                    plan, losses, _ = table_planner.plan(pending, read)
            except TableError as error:
                if not report.many:
                    raise
                codes.add(ExitCode.UNREADABLE)
                report.add_error(name, error)
                if name not in inventories:
                    users.observe_unreadable(name, error)
                if save_error is not None:
                    save_error(name, error)
                continue
            codes.add(ExitCode.FINDINGS if losses else ExitCode.OK)
            codes.add(_exit_code(plan, values["detailed_exitcode"]))
            if values["script"] and not is_complete(plan):
                codes.add(ExitCode.FINDINGS)
            report.add(plan)
        options.print_policy_notices(users.checker)
        report.close()
    return int(ExitCode.worst(codes))


def _read_names(values: Mapping[str, Any]) -> list[str]:
    named = read_table_names(values["tables"], allow_empty=values["allow_empty"])
    names = [*named, *values["from_"]]
    if not (values["tables"] or values["from_"]):
        raise UsageError("no table", "give a path, a URI or a catalog name, or --from INVENTORY")
    return names


def _find_inventories(names: Sequence[str], values: Mapping[str, Any]) -> set[str]:
    """Return the names that are inventories.

    Raises:
        UsageError: for options of inventories without any.
    """
    storage = options.storage_options(values)
    of_inventories = bool(values["where"] or values["scan"] or values["fresh"])
    # Read a remote table first: its log shows what it is.
    inventories = {
        *values["from_"],
        *(
            each
            for each in names
            if (of_inventories or not is_remote(each)) and is_inventory(each, storage)
        ),
    }
    if not inventories and of_inventories:
        raise UsageError("--where, --scan and --fresh apply to inventories", "pass one with --from")
    return inventories


def _exit_code(plan: Plan, detailed: bool) -> ExitCode:
    if not plan.complete:
        # An incomplete result is never compliant.
        return ExitCode.UNREADABLE
    if plan.blocked or plan.unmet:
        return ExitCode.FINDINGS
    return ExitCode.CHANGES if detailed and plan.changes else ExitCode.OK


def parse_for_clients(values: Mapping[str, Any]) -> list[str]:
    """Return the clients of `--for-client`, which may be repeated or separated by commas."""
    return split_words(values.get("for_client", ()))


def build_users(values: Mapping[str, Any]) -> ClientScope:
    """Return the clients of the command line and the policy, which apply to every table.

    Raises:
        UsageError: for an invalid client, policy or access.
    """
    options.require_partner(values, "--seen-days", "--seen")
    policy = load_local_policy(values["policy"]) if values["policy"] else None
    seen = None
    if values["seen"] is not None:
        from deltaproto.fleet.seen.seen_findings import uses_for_plans

        recent, old = read_seen(values)
        if old is not None:
            warn(old)
        seen = uses_for_plans(recent)
    named = (*parse_for_clients(values), *values["client"])
    access = parse_accesses(values["access"], "--access")
    if access and not named:
        raise UsageError(
            "--access without a client",
            "pass it with --for-client or --client; policies declare it",
        )
    return ClientScope(policy, values["client_file"], named, access or DEFAULT_ACCESS, seen)
