"""Deletes the rows of old scans from an inventory, with delta-rs or with Spark."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.scan_history import PastScan, sql_literal
from deltaproto.fleet.schemas import Inventory, inventory_table_sql
from deltaproto.tables.engine_errors import repeat_on_conflict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Delete from `scans` first: unlisted scans are ignored by readers.
_ORDER = (
    Inventory.SCANS,
    Inventory.TABLES,
    Inventory.FEATURES,
    Inventory.FINDINGS,
    Inventory.ERRORS,
)


def find_outdated(
    scans: list[PastScan], stored: Iterable[str], days: int, now: datetime
) -> list[str]:
    """Return the ids of scans that ended more than `days` days ago, oldest first.

    Keeps the newest scan of each extent. Rows of an unfinished scan are included if the scan began
    that long ago.
    """
    limit = now - timedelta(days=days)
    newest = {scan.extent: scan.scan_id for scan in scans}
    kept = {scan.scan_id for scan in scans if scan.ended_at >= limit} | set(newest.values())
    ended = {scan.scan_id for scan in scans}
    old = {each for each in stored if each in ended or _scan_start(each, now) < limit}
    return sorted(old - kept)


def _scan_start(scan_id: str, now: datetime) -> datetime:
    try:
        return datetime.strptime(scan_id[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return now


def delete_old_scans(inventory: InventoryTables, scans: list[PastScan], days: int) -> list[str]:
    """Delete old scans with delta-rs; return their ids.

    Partitions are dropped, no file is rewritten. Files are removed after the tables' retention.

    Raises:
        UsageError: when the inventory cannot be written.
    """
    stored = {each for name in _ORDER for each in inventory.scan_ids(name)}
    ids = find_outdated(scans, stored, days, datetime.now(UTC))
    if ids:
        for name in _ORDER:
            inventory.drop(name, f"scan_id IN ({', '.join(map(sql_literal, ids))})")
    return ids


def delete_old_scans_with_spark(
    session: SparkSession, where: str, scans: list[PastScan], days: int
) -> list[str]:
    """Delete old scans through a Spark session; otherwise like `delete_old_scans`."""
    from deltaproto.tables.session import sql_rows

    names = {name: inventory_table_sql(where.rstrip("/"), name) for name in _ORDER}
    stored: set[str] = set()
    for name in names.values():
        rows = sql_rows(session, f"SELECT DISTINCT scan_id FROM {name}")  # noqa: S608  quoted
        stored |= {row[0] for row in rows}
    ids = find_outdated(scans, stored, days, datetime.now(UTC))
    if ids:
        old = ", ".join(map(sql_literal, ids))
        for name in names.values():
            delete = f"DELETE FROM {name} WHERE scan_id IN ({old})"  # noqa: S608  quoted
            repeat_on_conflict(partial(sql_rows, session, delete))
            sql_rows(session, f"VACUUM {name}")
    return ids
