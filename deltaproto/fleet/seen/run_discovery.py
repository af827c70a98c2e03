"""A run of `discover`: read the logs, and add what no earlier run counted to the inventory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import NamedTuple

from deltaproto.errors import UsageError
from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.schemas import Inventory
from deltaproto.fleet.seen.collect import (
    Discovery,
    LogOptions,
    ReadTables,
    add_access_logs,
    discover_writers,
    require_requests,
)
from deltaproto.fleet.seen.find_logs import find_logs
from deltaproto.fleet.seen.requests import CountFiles, count_here
from deltaproto.fleet.seen.stored_uses import read_stored, store_run
from deltaproto.fleet.seen.table_tasks import read_in_processes
from deltaproto.fleet.seen.uses import SeenUses

_MOST_ATTEMPTS = 10

Progress = Callable[[str], AbstractContextManager[Callable[[int], None]]]
"""returns a function that receives the count of the named items as they are read"""


class DiscoveryRequest(NamedTuple):
    """What to read."""

    names: Sequence[str]
    """tables, folders, catalogs and inventories"""
    access_logs: Sequence[str]
    """files, folders and URIs"""
    options: LogOptions
    allow_empty: bool = False
    on_spark: bool = False
    """whether the executors of a Spark session read the logs"""


class _Engine(NamedTuple):
    """What reads the logs."""

    read_tables: ReadTables = read_in_processes
    count_files: CountFiles = count_here


def run_discovery(
    request: DiscoveryRequest, inventory: InventoryTables | None, progress: Progress
) -> Discovery:
    """Find out who used the tables.

    Args:
        inventory: the inventory to which the counts are added; None: do not save them. If another
        run adds counts meanwhile, the rest is counted again.

    Raises:
        UsageError: when the inventory cannot be written, or the executors fail.
        TableError: when the inventory cannot be read, or has values that no run writes.
        EngineError: when Spark does not start, or disconnects.
    """
    engine = _engine(request)
    if inventory is None:
        return _join(*_read(request, request.options, progress, engine))
    options, findings = request.options._replace(storing=True), None
    for _ in range(_MOST_ATTEMPTS):
        began = datetime.now(UTC)
        stored = read_stored(inventory, pseudonymize=options.pseudonymize)
        if stored is not None:
            options = options._replace(counted=stored.counted, counted_files=stored.files)
        readers, writers = _read(request, options, progress, engine)
        # Later attempts do not read old files that the other run counted.
        findings = readers.findings if findings is None else findings
        if store_run(inventory, stored, began, readers, writers):
            break
        inventory.refresh(Inventory.CLIENTS_SEEN)
    else:
        raise UsageError(
            f"{inventory.uri(Inventory.CLIENTS_SEEN)}: other runs of discover keep adding to it",
            "run one `discover` of this inventory at a time",
        )
    found = _join(readers, writers)._replace(findings=findings)
    if stored is None:
        return found
    return stored.added_to(found, inventory.uri(Inventory.CLIENTS_SEEN))


def _engine(request: DiscoveryRequest) -> _Engine:
    if not request.on_spark:
        return _Engine()
    from deltaproto.fleet.seen.spark_discovery import SparkLogReader
    from deltaproto.tables.session import spark_session

    reader = SparkLogReader(spark_session(request.options.spark))
    return _Engine(reader.read_tables, reader.count_files)


def _join(readers: Discovery, writers: SeenUses) -> Discovery:
    """Return the sum of all uses."""
    for each in (readers.uses, readers.unstored):
        if each is not None:
            writers.include(each)
    return readers._replace(uses=writers)


def _read(
    request: DiscoveryRequest, options: LogOptions, progress: Progress, engine: _Engine
) -> tuple[Discovery, SeenUses]:
    """Return the results with the uses from requests, and separately the uses from commits."""
    with progress("tables") as seen:
        logs = find_logs(request.names, options.storage, allow_empty=request.allow_empty)
        writers = discover_writers(logs, options, seen, engine.read_tables)
    with progress("lines") as seen:
        readers = writers._replace(uses=SeenUses(pseudonymize=options.pseudonymize))
        readers = add_access_logs(readers, request.access_logs, options, seen, engine.count_files)
        if not request.allow_empty:
            readers = require_requests(readers)
        return readers, writers.uses
