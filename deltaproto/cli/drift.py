"""`deltaproto drift`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Command, Option, Panel, switch
from deltaproto.cli.inventories import ENGINE, INVENTORY, MAX_AGE, open_inventory, parse_max_age
from deltaproto.cli.notify import post_message, require_hook
from deltaproto.cli.progress import show_waiting, warn
from deltaproto.errors import ExitCode, no_tables_error
from deltaproto.fleet.drift.attribution import CommitAttributor
from deltaproto.fleet.inventory_reader import (
    find_uncompared_scans,
    old_scan_warnings,
    unsearched_notices,
)
from deltaproto.fleet.scan_history import (
    PastScan,
    ScanPair,
    find_scan,
    newest_scan,
    select_pair,
)
from deltaproto.policy.finding import FailOn, exit_code_for
from deltaproto.redaction import Redactor
from deltaproto.render.drift import (
    DriftCounts,
    drift_message,
    incomplete_reasons,
    is_complete,
    write_drift,
)
from deltaproto.render.interface import NOTICES, Format


def run(values: Mapping[str, Any]) -> int:
    """Compare two scans, render the changes, and return the worst exit code."""
    counts = DriftCounts()
    options.require_partner(values, "--notify-required", "--notify")
    hook = require_hook(values["notify"]) if values["notify"] else None
    storage = options.storage_options(values)
    show = options.shows_progress(values)
    with (
        options.open_output(values["output"]) as file,
        show_waiting("comparing the scans", show=show),
    ):
        inventory = open_inventory(values["inventory"], values)
        past, until = inventory.scans(), values["until"]
        since = values["since"]
        scans = select_pair(past, since, until) or _compare_with_itself(past, since, until)
        for scan in scans:
            if not (scan.tables or scan.errors or values["allow_empty"]):
                raise no_tables_error(f"scan {scan.scan_id}")
        inventory.require_whole(*scans)
        now = datetime.now(UTC)
        old = old_scan_warnings(values["inventory"], scans[1:], now, parse_max_age(values))
        left = (
            []
            if values["until"]
            else find_uncompared_scans(inventory, values["inventory"], storage)
        )
        unsearched = unsearched_notices(values["inventory"], dict.fromkeys(scans))
        NOTICES.extend((*old, *left, *unsearched))
        attributor = None if values["no_commits"] else CommitAttributor(storage, scans.now.roots)
        changes = inventory.drift(scans, attributor)
        color = not values["no_color"]
        write_drift(scans, changes, counts, values["format"], file, now, color=color)
    if values["format"] is Format.JSONL:
        # Each line is one change, and there may be none.
        for notice in (*old, *left, *unsearched, *incomplete_reasons(scans)):
            warn(notice)
    failed = None
    if hook is not None and counts.tables:
        message = drift_message(values["inventory"], scans, counts)
        failed = post_message(hook, Redactor(storage)(message))
    if failed is not None:
        warn(f"cannot notify: {failed}")
    if left or not is_complete(scans) or (failed is not None and values["notify_required"]):
        # An incomplete result is never compliant.
        return int(ExitCode.UNREADABLE)
    if old and values["fail_on"] is FailOn.WARNING:
        return int(ExitCode.FINDINGS)
    return int(exit_code_for(counts.severities, values["fail_on"]))


def _compare_with_itself(past: list[PastScan], since: str | None, until: str | None) -> ScanPair:
    """Return a pair without changes for a scan with nothing to compare, and add a notice."""
    first = find_scan(past, until) if until else newest_scan(past)
    if since is not None:
        NOTICES.append(
            f"nothing to compare yet: {first.scan_id} is both the start and the end of the "
            "comparison"
        )
        return ScanPair(first, first)
    earlier = past[: past.index(first)]
    other = (
        f"; the last scan with others is {earlier[-1].scan_id}, of {', '.join(earlier[-1].roots)}: "
        f"compare with it by --since {earlier[-1].scan_id}"
        if earlier
        else ""
    )
    NOTICES.append(
        f"nothing to compare yet: {first.scan_id} is the first scan with its roots and patterns"
        f"{other}"
    )
    return ScanPair(first, first)


COMMAND = Command(
    "drift",
    "Show what changed between two scans (features, protocols, isolation levels, "
    "tables), and which commit made each change.",
    run,
    INVENTORY,
    (
        Option(
            ("--since",),
            "Compare from this scan, or the last one that ended by this time. Default: the "
            "previous scan of the same roots.",
            metavar="SCAN|TIME",
            panel=Panel.INPUT,
        ),
        Option(
            ("--until",),
            "Compare up to this scan, or the last one that ended by this time. Default: newest.",
            metavar="SCAN|TIME",
            panel=Panel.INPUT,
        ),
        switch(
            "--no-commits",
            help="Do not search logs for the commits that made the changes.",
            panel=Panel.INPUT,
        ),
        Option(
            ("--notify",),
            "Post the changes to this webhook, in Slack's format. The address is a secret: "
            "pass it in the environment.",
            metavar="URL",
            panel=Panel.OUTPUT,
        ),
        switch(
            "--notify-required", help="Exit 3 if the changes cannot be posted.", panel=Panel.SAFETY
        ),
        MAX_AGE,
        options.ALLOW_EMPTY,
        ENGINE,
        options.FORMAT,
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
    examples=(
        "drift s3://lake/_inventory",
        "drift /data/_inventory --since 2026-11-01 --format json",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE),
)
