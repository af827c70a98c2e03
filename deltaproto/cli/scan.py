"""`deltaproto scan`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from deltaproto.checking.check import Checker
from deltaproto.checking.site import site_catalogue
from deltaproto.cli import options
from deltaproto.cli.check import load_one_policy
from deltaproto.cli.declare import Argument, Command, Option
from deltaproto.cli.inventories import ENGINE, EngineChoice, opened_inventory
from deltaproto.cli.progress import rated, waiting
from deltaproto.errors import ExitCode, UsageError
from deltaproto.fleet.discovery import Source
from deltaproto.fleet.found import Selection
from deltaproto.fleet.inventory import inventory_at
from deltaproto.fleet.past import pair, pick
from deltaproto.fleet.scan import Request, Scan, scan
from deltaproto.policy.finding import FailOn, Severity, exit_code_for
from deltaproto.report.drift import DriftCounts
from deltaproto.report.scan import Afterwards, ScanFormat, write_scan

_MOST = 512
_LONGEST = 86_400


def run(values: Mapping[str, Any]) -> int:
    """Scan the roots, render the summary, and return the worst exit code."""
    if not values["roots"] and not values["list"]:
        raise UsageError("there is nothing to scan", "give a ROOT, or a --list of tables")
    _within(values["parallel"], "--parallel", _MOST)
    _within(values["timeout"], "--timeout", _LONGEST)
    if values["resume"] and not values["to"]:
        raise UsageError("--resume needs --to", "it names the inventory of the scan to resume")
    storage = options.pairs(values["storage_option"], "--storage-option")
    request = Request(
        Source(
            tuple(values["roots"]),
            tuple(values["list"]),
            Selection(tuple(values["include"]), tuple(values["exclude"])),
            values["to"] or None,
        ),
        storage,
        inventory_at(values["to"], storage) if values["to"] else None,
        values["parallel"],
        float(values["timeout"]),
        values["resume"],
        values["policy"] and os.path.abspath(values["policy"]),
    )
    checker = _checker(values)
    with options.opened(values["output"]) as file:
        show = not (values["no_progress"] or values["quiet"])
        with rated("tables", show=show) as progress:
            if values["engine"] is EngineChoice.SPARK:
                from deltaproto.fleet.spark_scan import scan_with_spark

                done = scan_with_spark(request, options.spark_settings(values), progress)
            else:
                done = scan(request, progress)
        with waiting("comparing with the policy and the last scan", show=show and values["to"]):
            after = _afterwards(done, checker, values)
        write_scan(done, after, values["to"], values["format"], file, color=not values["no_color"])
    return int(_exit_code(done, after, values["fail_on"]))


def _checker(values: Mapping[str, Any]) -> Checker | None:
    if not values["policy"]:
        return None
    if not values["to"]:
        raise UsageError("--policy needs --to", "it is asked of the inventory; name one")
    policy = load_one_policy(values["policy"])
    return Checker(policy, site_catalogue((), policy))


def _afterwards(done: Scan, checker: Checker | None, values: Mapping[str, Any]) -> Afterwards:
    if not values["to"]:
        return Afterwards()
    asked = opened_inventory(values["to"], values)
    scans = asked.scans()
    newest = pick(scans, done.scan_id)
    policy = None if checker is None else asked.counted(newest, checker)
    try:
        scans_pair = pair(scans, None, done.scan_id)
    except UsageError:
        # The first of its roots.
        return Afterwards(policy)
    counts = DriftCounts()
    counts.take(asked.drift(scans_pair, None))
    return Afterwards(policy, scans_pair, counts)


def _exit_code(done: Scan, after: Afterwards, fail_on: FailOn) -> ExitCode:
    # An incomplete answer is never a compliant one.
    if done.tally.errors or done.tally.incomplete:
        return ExitCode.UNREADABLE
    if after.policy is not None:
        return exit_code_for(after.policy.severities, fail_on)
    return exit_code_for(map(Severity, done.tally.findings), fail_on)


def _within(value: int | None, flag: str, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise UsageError(f"{flag} {value} makes no sense", f"give a number from 1 to {most}")


COMMAND = Command(
    "scan",
    "Find all tables below roots, read every protocol, and keep it as Delta inventory tables.",
    run,
    Argument(
        "roots",
        "ROOT...",
        "Folders and URIs; tables are found at any depth below them.",
        many=True,
        required=False,
    ),
    (
        Option(
            ("--to",),
            "Folder or URI of the inventory that keeps what was seen.",
            str,
            metavar="INVENTORY",
        ),
        Option(
            ("--policy",),
            "YAML file with declared clients and rules, asked of what the inventory holds now.",
            str,
            metavar="FILE",
        ),
        Option(
            ("--list",),
            "File with a table's path or URI in each line; repeatable.",
            str,
            many=True,
            metavar="FILE",
        ),
        Option(
            ("--include",),
            "Only tables in folders of this name or path; opens hidden folders; repeatable.",
            str,
            many=True,
            metavar="GLOB",
        ),
        Option(
            ("--exclude",),
            "Do not look into folders of this name or path; repeatable.",
            str,
            many=True,
            metavar="GLOB",
        ),
        ENGINE,
        Option(
            ("--parallel",),
            "Processes for disks, threads for object stores, tasks with Spark.",
            int,
            metavar="N",
        ),
        Option(
            ("--timeout",),
            "Seconds for one table on an object store.",
            int,
            60,
            metavar="SECONDS",
        ),
        Option(("--resume",), "Go on with the last scan that was not finished.", bool, False),
        Option(("--format",), "Output format.", ScanFormat, ScanFormat.TEXT),
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
)
