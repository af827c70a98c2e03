"""`deltaproto scan`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option, Panel, switch
from deltaproto.cli.inventories import ENGINE, EngineChoice, open_inventory
from deltaproto.cli.progress import show_rate, show_waiting, warn
from deltaproto.cli.signals import resume_hint
from deltaproto.errors import ExitCode, UsageError
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.discovered import FolderSelection
from deltaproto.fleet.discovery import DiscoverySource, list_session_catalogs
from deltaproto.fleet.inventory import open_inventory_tables
from deltaproto.fleet.scan import ScanRequest, ScanResult, run_scan
from deltaproto.fleet.scan_history import find_scan, select_pair
from deltaproto.fleet.schemas import require_inventory_folder
from deltaproto.fleet.settings_file import NUMBER_LIMITS
from deltaproto.input_file import SETTINGS_FILE
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import FailOn, Severity, exit_code_for
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
from deltaproto.render.drift import DriftCounts
from deltaproto.render.scan import Afterwards, ScanFormat, write_scan

_SOURCES = ("roots", "list", "catalog")
"""arguments and options that name what to scan"""
_SECONDS = 60
_RESUME_HINT = "tables already read are kept; run the same command with --resume to continue"


def run(values: Mapping[str, Any]) -> int:
    """Scan the roots, render the summary, and return the worst exit code."""
    if not (values["roots"] or values["list"] or values["catalog"]):
        raise UsageError(
            "nothing to scan", f"give a ROOT, a --catalog or a --list, or write {SETTINGS_FILE}"
        )
    for name, most in NUMBER_LIMITS.items():
        options.require_range(values[name], f"--{name}", most)
    for name in ("keep", "resume", "full"):
        options.require_partner(values, f"--{name}", "--inventory")
    if values["list_tables"] and values["resume"]:
        raise UsageError(
            "--list-tables and --resume cannot be used together",
            "leave out one: --list-tables saves no scan",
        )
    storage = options.storage_options(values)
    if values["inventory"]:
        require_inventory_folder(values["inventory"], storage)
    request = ScanRequest(
        DiscoverySource(
            tuple(values["roots"]),
            tuple(values["list"]),
            FolderSelection(tuple(values["include"]), tuple(values["exclude"])),
            values["inventory"] or None,
            tuple(values["catalog"]),
            list_session_catalogs(tuple(values["catalog"]), lambda: options.spark_settings(values)),
            values["allow_empty"],
        ),
        storage,
        open_inventory_tables(values["inventory"], storage) if values["inventory"] else None,
        values["parallel"],
        float(values["timeout"] or _SECONDS),
        values["resume"],
        values["policy"] and os.path.abspath(values["policy"]),
        values["full"],
    )
    if values["list_tables"]:
        return _list_tables(request, values)
    checker = _load_checker(values)
    # The scan reads lists while it runs.
    options.refuse_overwrite(values["output"], (*values["list"], values["policy"]))
    with options.open_output(values["output"]) as file:
        show = options.shows_progress(values)
        with (
            resume_hint(_RESUME_HINT if values["inventory"] else None),
            show_rate("tables", show=show, at_once=False) as progress,
        ):
            if values["engine"] is EngineChoice.SPARK:
                from deltaproto.fleet.spark_scan import scan_with_spark

                done = scan_with_spark(request, options.spark_settings(values), progress)
            else:
                done = run_scan(request, progress)
        with show_waiting(
            "comparing with the policy and the last scan", show=show and values["inventory"]
        ):
            after = _process_finished_scan(done, checker, values)
        write_scan(
            done, after, values["inventory"], values["format"], file, color=not values["no_color"]
        )
    return int(_exit_code(done, after, values["fail_on"]))


def _list_tables(request: ScanRequest, values: Mapping[str, Any]) -> int:
    """Print the tables that a scan would read, and the places that cannot be searched."""
    from itertools import chain

    from deltaproto.fleet.catalog_rows import note_other_names
    from deltaproto.fleet.discovered import SkippedPlaces
    from deltaproto.fleet.discovery import discover_tables
    from deltaproto.fleet.local_engine import THREADS
    from deltaproto.render.scan import write_table_list

    options.refuse_overwrite(values["output"], values["list"])
    skipped, entries = SkippedPlaces(), CatalogEntries()
    threads = request.parallel or THREADS
    found = discover_tables(request.source, request.storage_options, threads, skipped, entries)
    with options.open_output(values["output"]) as file:
        unseen = write_table_list(chain(*found), values["format"], file, entries.renamed())
    note_other_names(entries, skipped)
    for place in unseen:
        hint = f" ({place.error.hint})" if place.error.hint else ""
        warn(f"{place.place}: {place.error.message.removeprefix(f'{place.place}: ')}{hint}")
    for note in skipped.notes():
        warn(note)
    return int(ExitCode.UNREADABLE if unseen else ExitCode.OK)


def _load_checker(values: Mapping[str, Any]) -> Checker | None:
    if not values["policy"]:
        return None
    if not values["inventory"]:
        raise UsageError("--policy needs --inventory", "pass the inventory to evaluate it against")
    policy = load_local_policy(values["policy"])
    return Checker(policy, load_local_catalog((), policy))


def _process_finished_scan(
    done: ScanResult, checker: Checker | None, values: Mapping[str, Any]
) -> Afterwards:
    if not values["inventory"]:
        return Afterwards()
    opened = open_inventory(values["inventory"], values)
    scans = opened.scans()
    newest = find_scan(scans, done.scan_id)
    after = Afterwards(None if checker is None else opened.counted(newest, checker))
    both = select_pair(scans, None, done.scan_id)
    if both is not None:
        counts = DriftCounts()
        if done.same_as != both.before.scan_id:
            counts.add(opened.drift(both, None))
        after = after._replace(pair=both, drift=counts)
    # Delete old scans last: the earlier scan may be one of them.
    forgotten = opened.forget(values["keep"]) if values["keep"] else []
    return after._replace(forgotten=forgotten)


def _exit_code(done: ScanResult, after: Afterwards, fail_on: FailOn) -> ExitCode:
    # An incomplete result is never compliant.
    if done.tally.errors or done.tally.incomplete:
        return ExitCode.UNREADABLE
    if after.policy is not None:
        return exit_code_for(after.policy.severities, fail_on)
    return exit_code_for(map(Severity, done.tally.findings), fail_on)


COMMAND = Command(
    "scan",
    "Find all tables below the roots, read their protocols and save them to an inventory of "
    "Delta tables.",
    run,
    Argument(
        "roots",
        "ROOT...",
        "Folders, URIs, and catalogs (uc://HOST, hms://HOST, glue://REGION).",
        many=True,
        required=False,
        setting="roots",
        unless=_SOURCES,
    ),
    (
        Option(
            ("--inventory",),
            "Append the results to the inventory in this folder or URI.",
            metavar="INVENTORY",
            panel=Panel.OUTPUT,
            old="--to",
            setting="inventory",
        ),
        options.POLICY._replace(help="Check the inventory's current state against this policy."),
        Option(
            ("--catalog",),
            "Scan the tables of this catalog, catalog.schema or schema. Repeatable.",
            many=True,
            metavar="NAME",
            panel=Panel.INPUT,
            setting="catalogs",
            unless=_SOURCES,
        ),
        Option(
            ("--list",),
            "Scan the tables listed in this file, one path or URI per line. Repeatable.",
            many=True,
            metavar="FILE",
            panel=Panel.INPUT,
            setting="lists",
            unless=_SOURCES,
        ),
        Option(
            ("--include",),
            "Scan only tables in folders with this name or path, even hidden folders. Repeatable.",
            many=True,
            metavar="GLOB",
            panel=Panel.INPUT,
            setting="include",
        ),
        Option(
            ("--exclude",),
            "Skip folders with this name or path. Repeatable.",
            many=True,
            metavar="GLOB",
            panel=Panel.INPUT,
            setting="exclude",
        ),
        ENGINE._replace(default=None, help=f"{ENGINE.help} Default: local.", setting="engine"),
        switch(
            "--list-tables",
            help="Print the tables found, one per line, and stop: nothing is read or saved.",
            panel=Panel.OUTPUT,
        ),
        Option(
            ("--parallel",),
            "Use N processes (disks), threads (object stores) or tasks (Spark).",
            int,
            metavar="N",
            panel=Panel.SPARK,
            setting="parallel",
        ),
        Option(
            ("--timeout",),
            f"Give up on a table after this many seconds. Default: {_SECONDS}.",
            int,
            metavar="SECONDS",
            panel=Panel.SAFETY,
            setting="timeout",
        ),
        Option(
            ("--keep",),
            "Delete scans older than this many days, but keep the last scan of each root.",
            int,
            metavar="DAYS",
            panel=Panel.OUTPUT,
            setting="keep",
        ),
        options.ALLOW_EMPTY,
        switch("--resume", help="Resume the last unfinished scan.", panel=Panel.INPUT),
        switch(
            "--full",
            help="Also read tables that are unchanged since the last scan.",
            panel=Panel.INPUT,
        ),
        options.FORMAT._replace(type=ScanFormat, default=ScanFormat.TEXT),
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
    examples=(
        "scan s3://lake/gold --inventory s3://lake/_inventory",
        "scan /data --inventory /data/_inventory --policy policy.yaml",
    ),
    sources=_SOURCES,
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE),
)
