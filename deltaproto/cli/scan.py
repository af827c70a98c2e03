"""`deltaproto scan`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option
from deltaproto.cli.inventories import ENGINE, EngineChoice, opened_inventory
from deltaproto.cli.progress import rated, waiting
from deltaproto.cli.signals import resume_hint
from deltaproto.errors import DeltaprotoError, ExitCode, UsageError
from deltaproto.fleet.discovered import DiscoveredTable, Selection, UnreadablePlace
from deltaproto.fleet.discovery import Source
from deltaproto.fleet.inventory import inventory_at
from deltaproto.fleet.scan import Scan, ScanRequest, scan
from deltaproto.fleet.scan_history import LocalQuestions, extent_of, pair, pick
from deltaproto.fleet.settings_file import NAME, NUMBERS, read_settings
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import FailOn, Severity, exit_code_for
from deltaproto.policy.local_catalog import site_catalogue, site_policy
from deltaproto.render.drift import DriftCounts
from deltaproto.render.scan import Afterwards, ScanFormat, write_scan

_SOURCES = {"roots": "roots", "lists": "list", "catalogs": "catalog"}
"""key of the file, and the option that it stands for"""
_SECONDS = 60
_RESUME = "what was looked at is kept; the same command with --resume goes on from there"


def run(values: Mapping[str, Any]) -> int:
    """Scan the roots, render the summary, and return the worst exit code."""
    values = _with_file(values)
    if not (values["roots"] or values["list"] or values["catalog"]):
        raise UsageError(
            "there is nothing to scan", f"give a ROOT, a --catalog or a --list, or write {NAME}"
        )
    for name, most in NUMBERS.items():
        options.require_range(values[name], f"--{name}", most)
    if values["keep"] and not values["to"]:
        raise UsageError("--keep needs --to", "it is about the inventory's old scans")
    if values["resume"] and not values["to"]:
        raise UsageError("--resume needs --to", "it names the inventory of the scan to resume")
    storage = options.pairs(values["storage_option"], "--storage-option")
    request = ScanRequest(
        Source(
            tuple(values["roots"]),
            tuple(values["list"]),
            Selection(tuple(values["include"]), tuple(values["exclude"])),
            values["to"] or None,
            tuple(values["catalog"]),
            lambda: _in_catalogs(values),
            values["allow_empty"],
        ),
        storage,
        inventory_at(values["to"], storage) if values["to"] else None,
        values["parallel"],
        float(values["timeout"] or _SECONDS),
        values["resume"],
        values["policy"] and os.path.abspath(values["policy"]),
    )
    checker = _checker(values)
    # Lists are read while the scan goes on.
    options.refuse_overwrite(
        values["output"], (*values["list"], values["policy"], values["config"])
    )
    with options.opened(values["output"]) as file:
        show = not (values["no_progress"] or values["quiet"])
        total = _expected(request) if show else None
        with (
            resume_hint(_RESUME if values["to"] else None),
            rated("tables", total=total, show=show) as progress,
        ):
            if values["engine"] is EngineChoice.SPARK:
                from deltaproto.fleet.spark_scan import scan_with_spark

                done = scan_with_spark(request, options.spark_settings(values), progress)
            else:
                done = scan(request, progress)
        with waiting("comparing with the policy and the last scan", show=show and values["to"]):
            after = _afterwards(done, checker, values)
        write_scan(done, after, values["to"], values["format"], file, color=not values["no_color"])
    return int(_exit_code(done, after, values["fail_on"]))


def _with_file(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the command line does not say, from the file; the command line wins.

    What the file may say is None or empty where the command line is silent: a value that happens to
    be the usual one counts as said.
    """
    path = values["config"]
    nothing = not (values["roots"] or values["list"] or values["catalog"])
    if path is None and nothing and os.path.isfile(NAME):
        path = NAME
    if path is None:
        return values
    told = read_settings(path, os.environ)
    merged = {**values, "config": path}
    if nothing:
        merged |= {option: told.get(key, ()) for key, option in _SOURCES.items()}
    for key in told.keys() & values.keys() - {"roots", "spark_conf"}:
        if values[key] in (None, ()):
            merged[key] = EngineChoice(told[key]) if key == "engine" else told[key]
    for key, option in (("storage_options", "storage_option"), ("spark_conf", "spark_conf")):
        # The last of equal keys wins.
        merged[option] = (*(f"{k}={v}" for k, v in told.get(key, {}).items()), *values[option])
    return merged


def _expected(request: ScanRequest) -> int | None:
    """How many tables the last scan of the same roots met; None where nobody knows."""
    if request.inventory is None:
        return None
    chosen = request.source.selection
    extent = extent_of(request.source.named(), chosen.include, chosen.exclude)
    with suppress(DeltaprotoError):
        alike = [s for s in LocalQuestions(request.inventory).scans() if s.extent == extent]
        return alike[-1].tables + alike[-1].errors if alike else None
    return None


def _in_catalogs(values: Mapping[str, Any]) -> Iterator[DiscoveredTable | UnreadablePlace]:
    if values["catalog"]:
        from deltaproto.fleet.catalogs import tables_of
        from deltaproto.tables.session import spark_session

        session = spark_session(options.spark_settings(values))
        yield from tables_of(session, tuple(values["catalog"]))


def _checker(values: Mapping[str, Any]) -> Checker | None:
    if not values["policy"]:
        return None
    if not values["to"]:
        raise UsageError("--policy needs --to", "it is asked of the inventory; name one")
    policy = site_policy(values["policy"])
    return Checker(policy, site_catalogue((), policy))


def _afterwards(done: Scan, checker: Checker | None, values: Mapping[str, Any]) -> Afterwards:
    if not values["to"]:
        return Afterwards()
    asked = opened_inventory(values["to"], values)
    scans = asked.scans()
    newest = pick(scans, done.scan_id)
    after = Afterwards(None if checker is None else asked.counted(newest, checker))
    # Without an earlier one it is the first of its roots.
    with suppress(UsageError):
        both, counts = pair(scans, None, done.scan_id), DriftCounts()
        counts.take(asked.drift(both, None))
        after = after._replace(pair=both, drift=counts)
    # The earlier scan may be one of those that are forgotten.
    forgotten = asked.forget(values["keep"]) if values["keep"] else []
    return after._replace(forgotten=forgotten)


def _exit_code(done: Scan, after: Afterwards, fail_on: FailOn) -> ExitCode:
    # An incomplete answer is never a compliant one.
    if done.tally.errors or done.tally.incomplete:
        return ExitCode.UNREADABLE
    if after.policy is not None:
        return exit_code_for(after.policy.severities, fail_on)
    return exit_code_for(map(Severity, done.tally.findings), fail_on)


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
            ("--catalog",),
            "Catalog, catalog.schema or schema that Spark knows; repeatable.",
            str,
            many=True,
            metavar="NAME",
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
        ENGINE._replace(default=None, help=f"{ENGINE.help[:-1]}; local unless given."),
        Option(
            ("--parallel",),
            "Processes for disks, threads for object stores, tasks with Spark.",
            int,
            metavar="N",
        ),
        Option(
            ("--timeout",),
            f"Give up on a table after this many seconds (default: {_SECONDS}).",
            int,
            metavar="SECONDS",
        ),
        Option(
            ("--keep",),
            "Forget scans of the inventory that ended more than so many days ago.",
            int,
            metavar="DAYS",
        ),
        Option(
            ("--config",),
            f"File that says what the command line does not; ./{NAME} where it names no root.",
            str,
            metavar="FILE",
        ),
        options.ALLOW_EMPTY,
        Option(("--resume",), "Go on with the last scan that was not finished.", bool, False),
        Option(("--format",), "Output format.", ScanFormat, ScanFormat.TEXT),
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
)
