"""One scan on Spark, from discovery to its row in the inventory."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from deltaproto.errors import UsageError
from deltaproto.fleet.discovered import Passed, UnreadablePlace
from deltaproto.fleet.discovery import discover
from deltaproto.fleet.rows_builder import unseen_rows
from deltaproto.fleet.scan import Progress, Scan, ScanRequest, new_id, none_to_resume, row, tables
from deltaproto.fleet.scan_table import ReadSettings
from deltaproto.fleet.spark_engine import SparkEngine, unfinished
from deltaproto.fleet.staging import spark_lock
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_THREADS = 32


def scan_with_spark(request: ScanRequest, spark: SparkSettings, progress: Progress) -> Scan:
    """Like `scan`, on the executors of a Spark session; `parallel` is the number of tasks.

    Raises:
        UsageError: when a root, a list or the inventory cannot be used.
        Held: when another process is running the scan to resume.
        EngineError: when Spark is not available.
    """
    if request.inventory is None:
        raise UsageError(
            "--engine spark needs --inventory", "Spark stores its results in the inventory"
        )
    began, clock = datetime.now(UTC), time.monotonic()
    session = spark_session(spark)
    where = request.inventory.location.path or request.inventory.location.uri
    scan_id = unfinished(session, where) if request.resume else new_id(began)
    if scan_id is None:
        raise none_to_resume()
    folder = request.inventory.location.path
    # Spark may run on another machine, with a different folder at this path.
    shared = folder is not None and (spark.remote is None or os.path.isdir(folder))
    with spark_lock(folder, scan_id) if folder and shared else nullcontext():
        return _scanned(request, session, where, scan_id, began, clock, progress)


def _scanned(
    request: ScanRequest,
    session: SparkSession,
    where: str,
    scan_id: str,
    began: datetime,
    clock: float,
    progress: Progress,
) -> Scan:
    settings = ReadSettings(scan_id, request.storage_options, request.seconds)
    engine = SparkEngine(session, where, settings, resumes=request.resume)
    resumed = 0
    if request.resume:
        before = engine.tally()
        resumed = before.tables + before.errors.total()
    unseen: list[UnreadablePlace] = []
    looked = 0
    passed = Passed()
    for found in discover(request.source, request.storage_options, _THREADS, passed):
        for count in engine.look(tables(found, unseen, set()), request.parallel):
            looked += count
            progress(looked)
    if unseen:
        engine.stage(unseen_rows(scan_id, unseen))
    tally = engine.tally()
    seconds = time.monotonic() - clock
    engine.publish(row(request, scan_id, tally, began, seconds, engine="spark"))
    engine.clear()
    return Scan(scan_id, seconds, tally, resumed, passed.notes())
