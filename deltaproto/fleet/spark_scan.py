"""One scan on Spark, from discovery to its row in the inventory."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from deltaproto.errors import DeltaprotoError, EngineError, UsageError
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.catalog_rows import note_other_names
from deltaproto.fleet.discovered import SkippedPlaces, UnreadablePlace
from deltaproto.fleet.discovery import discover_tables
from deltaproto.fleet.rows_builder import unreadable_place_rows
from deltaproto.fleet.scan import (
    ScanProgress,
    ScanRequest,
    ScanResult,
    new_scan_id,
    nothing_to_resume_error,
    readable_tables,
    scan_row,
)
from deltaproto.fleet.scan_table import ReadSettings
from deltaproto.fleet.spark_engine import SparkEngine, find_unfinished_scans
from deltaproto.fleet.staging import (
    SPARK_STAGING_FOLDER,
    hold_spark_lock,
    newest_of_extent,
    unfinished_scans,
)
from deltaproto.fleet.unchanged import expected_count
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.engine_errors import is_connection_lost, lost_engine_error, spark_message
from deltaproto.tables.session import expect_rows, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_THREADS = 32


def scan_with_spark(
    request: ScanRequest, spark: SparkSettings, progress: ScanProgress
) -> ScanResult:
    """Run a scan on the executors of a Spark session; `parallel` is the number of tasks.

    Raises:
        UsageError: when a root, a list or the inventory cannot be used.
        ScanLockedError: when another process is running the scan to resume.
        EngineError: when Spark is not available, disconnects or stops responding.
    """
    if request.inventory is None:
        raise UsageError(
            "--engine spark needs --inventory", "pass one: Spark stores its results there"
        )
    began, clock = datetime.now(UTC), time.monotonic()
    session = spark_session(spark)
    where = request.inventory.location.path_or_uri
    local = request.inventory.location.path
    # On another machine, Spark may see a different folder at this path.
    shared = local is None or spark.remote is None or os.path.isdir(local)
    folder = request.inventory.staging_folder(here=shared)
    scan_id: str | None = new_scan_id(began)
    staged: dict[str, bool] = {}
    if request.resume:
        marked = [scan.scan_id for scan in unfinished_scans(folder, (SPARK_STAGING_FOLDER,))]
        staged = find_unfinished_scans(session, where, marked)
        scan_id = newest_of_extent(folder, list(staged), request.extent)
    if scan_id is None:
        raise nothing_to_resume_error()
    with hold_spark_lock(folder, scan_id, request.extent):
        engine = SparkEngine(
            session,
            where,
            ReadSettings(scan_id, request.storage_options, request.seconds),
            resumes=staged.get(scan_id, False),
        )
        try:
            return _run_scan(request, session, engine, scan_id, began, clock, progress)
        except DeltaprotoError:
            raise
        except Exception as error:
            if not is_connection_lost(spark_message(error)):
                raise
            hint = "start it, and continue with --resume: the tables read so far are kept"
            raise EngineError(lost_engine_error(error).message, hint) from None


def _run_scan(
    request: ScanRequest,
    session: SparkSession,
    engine: SparkEngine,
    scan_id: str,
    began: datetime,
    clock: float,
    progress: ScanProgress,
) -> ScanResult:
    expected = partial(expected_count, request.inventory, request.extent)
    resumed = 0
    if engine.resumes:
        before = engine.tally()
        resumed = before.tables + before.errors.total()
    unseen: list[UnreadablePlace] = []
    looked = 0
    skipped, entries = SkippedPlaces(), CatalogEntries()
    for found in discover_tables(
        request.source, request.storage_options, _THREADS, skipped, entries
    ):
        for count in engine.scan(readable_tables(found, unseen, set()), request.parallel):
            looked += count
            progress(looked, expected)
    if unseen:
        engine.stage(unreadable_place_rows(scan_id, unseen))
    expect_rows(session, resumed + looked)
    tally = engine.tally()
    skipped.check_partitions(engine.partition_columns)
    note_other_names(entries, skipped)
    compared = engine.catalog_findings(entries)
    tally.add_findings(each.finding for each in compared)
    seconds = time.monotonic() - clock
    row = scan_row(request, scan_id, tally, skipped, began, seconds, engine="spark")
    engine.publish(row, tally, [*entries.renamed()], compared)
    engine.clear()
    return ScanResult(
        scan_id,
        seconds,
        tally,
        resumed,
        skipped.notes(),
        selection=request.source.selection,
        not_searched=skipped.not_searched(),
    )
