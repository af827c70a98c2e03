"""`deltaproto discover`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option, Panel, switch
from deltaproto.cli.inspect import read_table_names
from deltaproto.cli.inventories import ENGINE, EngineChoice
from deltaproto.cli.progress import show_rate, warn
from deltaproto.counts import counted
from deltaproto.errors import ExitCode, UsageError
from deltaproto.fleet.inventory import InventoryTables, open_inventory_tables
from deltaproto.fleet.schemas import Inventory, is_inventory
from deltaproto.fleet.seen.collect import Discovery, LogOptions, require_read
from deltaproto.fleet.seen.policy_file import DraftedFile, draft_file
from deltaproto.fleet.seen.run_discovery import DiscoveryRequest, run_discovery
from deltaproto.policy.finding import exit_code
from deltaproto.render.discover import notices, write_discovery
from deltaproto.render.discover_settings import write_settings
from deltaproto.render.interface import NOTICES
from deltaproto.render.terminal import single_line

_DAY = 86_400_000
_MAX_DAYS = 36_500


def run(values: Mapping[str, Any]) -> int:
    """Read the logs of the tables, and render who used them."""
    options.require_range(values["days"], "--days", _MAX_DAYS)
    limit = options.require_limit(values["limit"])
    if values["how_to_identify"]:
        with options.open_output(values["output"]) as file:
            write_settings(values["format"], file, color=not values["no_color"])
        return int(ExitCode.OK)
    if not values["names"]:
        raise UsageError("no tables", "give a TABLE, a ROOT or an INVENTORY, or --how-to-identify")
    options.refuse_overwrite(values["output"], (*values["access_log"], values["write_policy"]))
    # Reading large logs takes long, and counts added to an inventory are not shown again.
    options.require_writable(values["output"])
    options.require_writable(values["write_policy"], "--write-policy")
    found = _discover(values)
    for notice in notices(found):
        NOTICES.append(notice)
        warn(notice)
    require_read(
        found, values["names"], logs=bool(values["access_log"]), allow_empty=values["allow_empty"]
    )
    policy = values["write_policy"]
    drafted = draft_file(policy, found, datetime.now(UTC)) if policy else None
    with options.open_output(values["output"]) as file:
        write_discovery(
            found,
            values["format"],
            file,
            color=not values["no_color"],
            details=values["details"],
            limit=limit,
        )
    if drafted is not None:
        _write_policy(drafted, quiet=values["quiet"])
    # An incomplete result is never compliant.
    incomplete = ExitCode.OK if found.complete else ExitCode.UNREADABLE
    return int(ExitCode.worst((incomplete, exit_code(found.findings, values["fail_on"]))))


def _discover(values: Mapping[str, Any]) -> Discovery:
    storage = options.storage_options(values)
    days = values["days"]
    since = None if days is None else int(time.time() * 1000) - days * _DAY
    names = list(read_table_names(values["names"], allow_empty=values["allow_empty"]))
    show = options.shows_progress(values)
    settings = LogOptions(
        storage,
        options.spark_settings(values),
        since,
        values["pseudonymize"],
        data_files=values["data_files"],
    )
    inventory = None if values["no_store"] else _find_inventory(names, days, storage)
    request = DiscoveryRequest(
        names,
        values["access_log"],
        settings,
        values["allow_empty"],
        on_spark=values["engine"] is EngineChoice.SPARK,
    )
    return run_discovery(request, inventory, lambda what: show_rate(what, show=show))


def _find_inventory(
    names: list[str], days: int | None, storage: Mapping[str, str]
) -> InventoryTables | None:
    """Return the inventory that stores the counts: the only inventory named, if no period is
    requested.
    """
    if len(names) != 1 or not is_inventory(names[0], storage):
        return None
    if days is None:
        return open_inventory_tables(names[0], storage)
    stored = f"{names[0]}/{Inventory.CLIENTS_SEEN}"
    notice = f"--days: this run adds nothing to {stored}, and shows nothing from it"
    NOTICES.append(notice)
    warn(notice)
    return None


def _write_policy(drafted: DraftedFile, *, quiet: bool) -> None:
    """Write the policy, and show on standard error what is new in it."""
    for table in drafted.draft.uncovered:
        warn(f"{table}: no pattern can match this name, so its clients are not in the policy")
    if drafted.after != drafted.before:
        with options.open_output(drafted.path, flag="--write-policy") as file:
            file.write(drafted.after)
    if quiet:
        return
    for line in drafted.diff.splitlines():
        print(single_line(line), file=sys.stderr)
    count = drafted.draft.clients
    print(
        f"{drafted.path}: added {counted(count, 'client')}"
        if count
        else f"{drafted.path} declares all clients that were seen",
        file=sys.stderr,
    )


COMMAND = Command(
    "discover",
    "Show which clients use tables, for whom and how often, from the tables' own logs and the "
    "access logs of object stores.",
    run,
    Argument(
        "names",
        "TABLE|ROOT|INVENTORY...",
        "Path, URI or catalog name of a table, a folder of tables, or an inventory; - reads "
        "names from standard input.",
        many=True,
        required=False,
        setting="inventory",
        unless=("how_to_identify",),
    ),
    (
        Option(
            ("--access-log",),
            "Also count the readers in this access log (file, folder, URI or system table). "
            "Repeatable.",
            many=True,
            metavar="FILE|URI|TABLE",
            panel=Panel.INPUT,
        ),
        switch(
            "--data-files",
            help="Also read the writers of data files whose commits are no longer in the log.",
            panel=Panel.INPUT,
        ),
        ENGINE,
        Option(
            ("--days",),
            "Show only the last N days. Default: everything still in the logs.",
            int,
            metavar="N",
            panel=Panel.INPUT,
        ),
        Option(
            ("--write-policy",),
            "Write a policy that declares the clients seen, or add them to an existing one.",
            metavar="FILE",
            panel=Panel.OUTPUT,
        ),
        switch(
            "--how-to-identify",
            help="Show the settings that make clients identify themselves, and exit.",
            panel=Panel.CLIENTS,
        ),
        switch(
            "--pseudonymize",
            help="Show hashes instead of the names of users, jobs, notebooks, clusters and "
            "queries.",
            panel=Panel.OUTPUT,
        ),
        switch(
            "--no-store",
            help="Do not save results to the inventory's clients_seen, or show earlier ones.",
            panel=Panel.OUTPUT,
        ),
        options.DETAILS,
        options.LIMIT,
        options.ALLOW_EMPTY,
        options.PAGE_FORMAT,
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
    examples=(
        "discover s3://lake/gold",
        "discover s3://lake/_inventory --days 90 --access-log s3://logs/lake/",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE),
)
