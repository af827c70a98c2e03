"""`deltaproto scan`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option
from deltaproto.cli.progress import rated
from deltaproto.errors import ExitCode, UsageError
from deltaproto.fleet.discovery import Source
from deltaproto.fleet.found import Selection
from deltaproto.fleet.inventory import inventory_at
from deltaproto.fleet.scan import Request, Scan, scan
from deltaproto.policy.finding import FailOn, Severity, exit_code_for
from deltaproto.report.scan import ScanFormat, write_scan


class EngineChoice(StrEnum):
    """What reads the tables."""

    LOCAL = "local"
    SPARK = "spark"


ENGINE = Option(
    ("--engine",),
    "local: this machine; spark: the executors of a Spark session.",
    EngineChoice,
    EngineChoice.LOCAL,
)
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
    )
    with options.opened(values["output"]) as file:
        show = not (values["no_progress"] or values["quiet"])
        with rated("tables", show=show) as progress:
            if values["engine"] is EngineChoice.SPARK:
                from deltaproto.fleet.spark_scan import scan_with_spark

                done = scan_with_spark(request, options.spark_settings(values), progress)
            else:
                done = scan(request, progress)
        write_scan(done, values["to"], values["format"], file, color=not values["no_color"])
    return int(_exit_code(done, values["fail_on"]))


def _exit_code(done: Scan, fail_on: FailOn) -> ExitCode:
    # An incomplete answer is never a compliant one.
    if done.tally.errors or done.tally.incomplete:
        return ExitCode.UNREADABLE
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
