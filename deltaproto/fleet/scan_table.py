"""Reads tables one at a time for a scan."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from deltaproto.errors import DeltaprotoError, ErrorCode, ExitCode, TableError
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.evaluate import SharedEvaluation, TableEvaluator
from deltaproto.fleet.rows_builder import RowsBuilder
from deltaproto.fleet.unchanged import log_digest
from deltaproto.fleet.workers import StoreGoneError, StoreHealth, with_retries
from deltaproto.location import Location, location_at
from deltaproto.protocol.table_state import TableState
from deltaproto.redaction import Redactor
from deltaproto.tables.catalogs.described import log_columns_digest
from deltaproto.tables.log.catalog_managed import RatifiedLog
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.storage import LogStore, open_log
from deltaproto.tables.storage.interface import (
    Deadline,
    FolderEntry,
    limit_reads,
    timed_out_error,
)

if TYPE_CHECKING:
    import pyarrow as pa


def failed_row(scan_id: str, found: DiscoveredTable, error: DeltaprotoError) -> pa.RecordBatch:
    """Return the staged row of one table that could not be read."""
    gathered = RowsBuilder(scan_id)
    gathered.add_error(found.table, found.uri, error)
    return gathered.batch()


def _with_entry_hint(found: DiscoveredTable, error: TableError) -> TableError:
    """Return the error with a hint about the table's entry, if a catalog has its location."""
    if found.entry is None or error.code is not ErrorCode.NOT_FOUND:
        return error
    hint = "restore the folder, correct the location in the catalog, or drop the entry"
    return TableError(ErrorCode.NOT_FOUND, error.message, hint)


class InternalTableError(DeltaprotoError):
    """An internal error on one table, which must not stop the others."""

    exit_code = ExitCode.UNREADABLE
    code = "internal"


class ReadSettings(NamedTuple):
    """Settings for reading tables; the same in every process of a scan."""

    scan_id: str
    storage_options: Mapping[str, str]
    seconds: float = 60.0
    """time limit for one table"""
    saved: bool = True
    """whether the rows are saved, so that the next scan can use them for unchanged tables"""


class TableScanner:
    """Reads tables with the log reader, and collects the results. Never raises for a table.

    Args:
        health: state of the object store; once it is unreachable, `look` raises StoreGoneError.
    """

    def __init__(self, settings: ReadSettings, health: StoreHealth | None = None) -> None:
        self._settings, self._health = settings, health
        self._reader = LogReader(settings.storage_options)
        self._judge = TableEvaluator()

    def digests(self, tables: Sequence[DiscoveredTable]) -> list[str | None]:
        """Return the digest of each table's log; None where it cannot be read in time."""
        found: list[str | None] = []
        with TimeLimit(self._settings.seconds) as alarm:
            for table in tables:
                digest = None
                with suppress(TableError):
                    digest = alarm.run(partial(log_digest, table))
                found.append(digest)
        return found

    def scan(self, tables: Sequence[DiscoveredTable]) -> pa.RecordBatch:
        """Return a staged row for each of the tables."""
        gathered = RowsBuilder(self._settings.scan_id)
        with TimeLimit(self._settings.seconds) as alarm:
            for found in tables:
                try:
                    self._one(found, gathered, alarm)
                except TableError as error:
                    gathered.add_error(found.table, found.uri, _with_entry_hint(found, error))
                except StoreGoneError:
                    raise
                except Exception as error:
                    gathered.add_error(found.table, found.uri, self._defect(error))
        try:
            return gathered.batch()
        except Exception as error:
            if len(tables) == 1:
                return failed_row(self._settings.scan_id, tables[0], self._defect(error))
        import pyarrow as pa

        return pa.concat_batches([self.scan([found]) for found in tables])

    def _defect(self, error: Exception) -> InternalTableError:
        message = f"internal error, {type(error).__name__}: {error}"
        return InternalTableError(
            Redactor(self._settings.storage_options)(message),
            "report it; run `deltaproto inspect --debug` on this table for details",
        )

    def _one(self, found: DiscoveredTable, gathered: RowsBuilder, alarm: TimeLimit) -> None:
        # An interrupted table must leave `gathered` unchanged.
        read = alarm.run(partial(self._judged, found, alarm.works))
        gathered.add(*read, (found.catalog, found.type, _columns_digest(found, read[0])))

    def _judged(
        self, found: DiscoveredTable, limited: bool
    ) -> tuple[TableState, SharedEvaluation, str | None]:
        """Read and evaluate one table, and return the digest of its log before."""
        listed: list[FolderEntry] = []
        digest = log_digest(found, listed) if self._settings.saved else None
        location = location_at(found.location, found.table)
        if location.path is None:
            state = self._remote(location, found)
        else:
            store = open_log(location, {}, tuple(listed) or None)
            if not limited:
                store = limit_reads(store, Deadline(self._settings.seconds))
            state = self._reader.read_from(location, _with_commits(store, found))
        return state, self._judge.evaluate(state), digest

    def _remote(self, location: Location, found: DiscoveredTable) -> TableState:
        deadline = Deadline(self._settings.seconds)

        def read(tried: int) -> TableState:
            listed = None if tried else found.listed
            options = self._settings.storage_options
            if found.storage_options is not None:
                options = {**found.storage_options(), **options}
            store = open_log(location, options, listed)
            limited = limit_reads(store, deadline)
            return self._reader.read_from(location, _with_commits(limited, found))

        return with_retries(read, deadline, self._health)


def _columns_digest(found: DiscoveredTable, state: TableState) -> str | None:
    if found.entry is None:
        return None
    return log_columns_digest(state.metadata.schema, state.metadata.partition_columns)


def _with_commits(store: LogStore, found: DiscoveredTable) -> LogStore:
    return store if found.commits is None else RatifiedLog(store, found.commits)


T = TypeVar("T")


class _AlarmInterrupt(BaseException):
    """Not an `Exception`, so that handlers of damaged files do not catch it."""


class TimeLimit:
    """Limits the duration of each call of `within`, between `__enter__` and `__exit__`.

    Only the main thread can be interrupted. In other threads, and on systems without interval
    timers, `works` is False and there is no limit. Uses one timer, and no thread or process.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running = self._rang = False
        self._before: Any = None
        self.works = False

    def __enter__(self) -> TimeLimit:
        main = threading.current_thread() is threading.main_thread()
        self.works = hasattr(signal, "setitimer") and main
        if self.works:
            self._before = signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(self, *_: object) -> None:
        if self.works:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            self.works = False

    def run(self, work: Callable[[], T]) -> T:
        """Return the result of `work`.

        Raises:
            TableError: timeout, when it takes too long.
        """
        if not self.works:
            return work()
        self._running, self._rang = True, False
        try:
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
            return work()
        except BaseException:
            # A library that calls back into Python may wrap the interruption in its own exception.
            if self._rang:
                raise timed_out_error(self._seconds) from None
            raise
        finally:
            # Keep this order: a signal in between must not interrupt the next table.
            self._running = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._running:
            self._rang = True
            raise _AlarmInterrupt
