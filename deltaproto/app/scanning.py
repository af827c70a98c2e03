"""Scans of many tables."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaproto.app.arguments import NONE, connection_options, require_ranges, require_texts
from deltaproto.app.inventory import Inventory, with_spark
from deltaproto.app.result import Result
from deltaproto.counts import counted
from deltaproto.errors import (
    DeltaprotoError,
    ExitCode,
    ResultError,
    UsageError,
)
from deltaproto.fleet.discovered import FolderSelection
from deltaproto.fleet.discovery import DiscoverySource, list_session_catalogs
from deltaproto.fleet.inventory import InventoryTables, open_inventory_tables
from deltaproto.fleet.scan import ScanRequest, run_scan
from deltaproto.fleet.scan import ScanResult as _ScanResult
from deltaproto.fleet.scan_history import MAY_BE_BEHIND
from deltaproto.fleet.schemas import require_inventory_folder
from deltaproto.fleet.settings_file import NUMBER_LIMITS
from deltaproto.policy.finding import Severity
from deltaproto.protocol.table_state import SparkSettings

if TYPE_CHECKING:
    from deltaproto.render.document.blocks import Document

_LOG = logging.getLogger("deltaproto.scan")


@dataclass(frozen=True, repr=False)
class ScanResult(Result):
    """A finished scan. Without an inventory, only its counts are left."""

    scan: _ScanResult
    """the counts as a record"""
    inventory: Inventory | None
    """the inventory with the results; None if nothing was saved"""

    @property
    def scan_id(self) -> str:
        """The id of the scan in the inventory."""
        return self.scan.scan_id

    @property
    def tables(self) -> int:
        """The number of tables that were read."""
        return self.scan.tally.tables

    @property
    def errors(self) -> int:
        """The number of tables and places that could not be read."""
        return self.scan.tally.errors.total()

    @property
    def incomplete(self) -> int:
        """The number of tables that may have newer commits, which only their catalog knows."""
        return self.scan.tally.incomplete

    @property
    def features(self) -> Mapping[str, int]:
        """The number of tables that support each feature, most frequent first."""
        from deltaproto.render.terminal import largest_first

        return dict(largest_first(self.scan.tally.features))

    @property
    def protocols(self) -> Mapping[tuple[int, int], int]:
        """The number of tables with each pair of reader and writer version."""
        return dict(sorted(self.scan.tally.protocols.items()))

    @property
    def seconds(self) -> float:
        """The duration."""
        return self.scan.seconds

    @property
    def _place(self) -> str | None:
        return None if self.inventory is None else self.inventory.location

    def _failure(self) -> DeltaprotoError | None:
        tally = self.scan.tally
        if self.errors:
            table, message, hint = tally.first_errors[0]
            unread = counted(self.errors, "table or place", "tables or places")
            text = f"{unread} could not be read; {table}: {message.removeprefix(f'{table}: ')}"
            return ResultError(self, ExitCode.UNREADABLE, text, hint)
        if self.incomplete:
            tables = counted(self.incomplete, "table")
            text = f"{tables} {MAY_BE_BEHIND}"
            return ResultError(self, ExitCode.UNREADABLE, text)
        found = tally.findings[str(Severity.ERROR)]
        if found:
            text = f"the scan has {counted(found, 'finding')} of severity error"
            return ResultError(self, ExitCode.FINDINGS, text, "see `inventory.findings()`")
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of `scan`."""
        from deltaproto.render.scan import Afterwards, scan_fields

        return scan_fields(self.scan, Afterwards(), self._place)

    def _document(self) -> Document:
        from deltaproto.render.scan import Afterwards, scan_document

        return scan_document(self.scan, Afterwards(), self._place)

    def __repr__(self) -> str:
        tables, errors = counted(self.tables, "table"), counted(self.errors, "error")
        return f"<ScanResult {self.scan_id}: {tables}, {errors}>"


def scan(
    roots: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    *,
    inventory: str | os.PathLike[str] | None = None,
    catalogs: Sequence[str] = (),
    lists: Sequence[str] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    engine: str = "local",
    parallel: int | None = None,
    timeout: float = 60.0,
    resume: bool = False,
    full: bool = False,
    allow_empty: bool = False,
    on_progress: Callable[[int], object] | None = None,
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> ScanResult:
    """Find all tables below the roots, read their protocols, and save them to an inventory.

    Tables that cannot be read never stop a scan; they are counted, and are in the inventory.

    Args:
        roots: folders, URIs and catalogs (`uc://HOST`); tables are found at any depth below them.
        inventory: the folder or URI of the inventory; None: count only, and save nothing.
        catalogs: catalogs and schemas of a Spark session.
        lists: files with one table per line.
        include: only tables in folders with these names or paths.
        exclude: folders to skip.
        engine: local, or spark for a cluster.
        parallel: processes (disks), threads (object stores) or tasks (Spark).
        timeout: give up on a table after this many seconds.
        resume: resume the last unfinished scan of the same roots.
        full: also read tables whose log is unchanged since the last scan of the same roots.
        allow_empty: a root without tables is not an error.
        on_progress: a function that is called with the number of tables read so far.

    Raises:
        UsageError: when a root, a list or the inventory cannot be used.
        EngineError: when Spark is needed and not available.
    """
    by = connection_options(None, storage_options, spark_remote, spark_conf)
    named = [roots] if isinstance(roots, str | os.PathLike) else roots
    places = tuple(os.fspath(each) for each in named)
    wanted = require_texts(catalogs, "catalogs")
    if not (places or lists or wanted):
        raise UsageError("nothing to scan", "pass roots, lists or catalogs")
    require_ranges(NUMBER_LIMITS, parallel=parallel, timeout=timeout)
    where = None if inventory is None else os.fspath(inventory)
    if resume and where is None:
        raise UsageError("resume needs inventory", "pass the inventory of the scan to resume")
    spark = by.spark.reaching(*places, where or "")
    source = DiscoverySource(
        places,
        require_texts(lists, "lists"),
        FolderSelection(require_texts(include, "include"), require_texts(exclude, "exclude")),
        where,
        wanted,
        list_session_catalogs(wanted, lambda: spark),
        allow_empty,
    )
    opened = None if where is None else _open_inventory(where, by.storage_options)
    request = ScanRequest(source, by.storage_options, opened, parallel, timeout, resume, full=full)
    done = _run(request, spark if with_spark(engine) else None, on_progress)
    if where is None:
        return ScanResult(done, None)
    found = Inventory(
        where,
        engine=engine,
        storage_options=by.storage_options,
        spark_remote=spark_remote,
        spark_conf=spark_conf,
    )
    return ScanResult(done, found)


def _open_inventory(name: str, storage_options: Mapping[str, str]) -> InventoryTables:
    require_inventory_folder(name, storage_options)
    return open_inventory_tables(name, storage_options)


def _run(
    request: ScanRequest, spark: SparkSettings | None, on_progress: Callable[[int], object] | None
) -> _ScanResult:
    """Scan with Spark, or locally if `spark` is None, and log the outcome."""

    def progress(read: int, _: Callable[[], int | None]) -> None:
        if on_progress is not None:
            on_progress(read)

    if spark is None:
        done = run_scan(request, progress)
    else:
        from deltaproto.fleet.spark_scan import scan_with_spark

        done = scan_with_spark(request, spark, progress)
    for note in done.notes:
        _LOG.warning("%s", note)
    _LOG.info("scan %s: %d tables in %.1f s", done.scan_id, done.tally.tables, done.seconds)
    return done
