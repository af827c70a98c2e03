"""Reads tables one after the other for a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.errors import DeltaprotoError, ExitCode, TableError
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.evaluate import SharedEvaluation, TableEvaluator
from deltaproto.fleet.rows_builder import RowsBuilder
from deltaproto.fleet.time_limit import TimeLimit
from deltaproto.fleet.workers import with_retries
from deltaproto.location import Location, location_at
from deltaproto.protocol.table_state import TableState
from deltaproto.redaction import Redactor
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.storage import open_log
from deltaproto.tables.storage.interface import Deadline, limit_reads

if TYPE_CHECKING:
    import pyarrow as pa


def failed_row(scan_id: str, found: DiscoveredTable, error: DeltaprotoError) -> pa.RecordBatch:
    """Return the staged row of one table that could not be read."""
    gathered = RowsBuilder(scan_id)
    gathered.add_error(found.table, found.uri, error)
    return gathered.batch()


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


class TableScanner:
    """Reads tables with the log reader, and collects the results. Never raises for a table."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._reader = LogReader(settings.storage_options)
        self._judge = TableEvaluator()

    def look(self, tables: Sequence[DiscoveredTable]) -> pa.RecordBatch:
        """Return a staged row for each of the tables."""
        gathered = RowsBuilder(self._settings.scan_id)
        with TimeLimit(self._settings.seconds) as alarm:
            for found in tables:
                try:
                    self._one(found, gathered, alarm)
                except TableError as error:
                    gathered.add_error(found.table, found.uri, error)
                except Exception as error:
                    gathered.add_error(found.table, found.uri, self._defect(error))
        try:
            return gathered.batch()
        except Exception as error:
            if len(tables) == 1:
                return failed_row(self._settings.scan_id, tables[0], self._defect(error))
        import pyarrow as pa

        return pa.concat_batches([self.look([found]) for found in tables])

    def _defect(self, error: Exception) -> InternalTableError:
        said = f"internal error, {type(error).__name__}: {error}"
        return InternalTableError(
            Redactor(self._settings.storage_options)(said),
            "report it; run `deltaproto inspect --debug` on this table for details",
        )

    def _one(self, found: DiscoveredTable, gathered: RowsBuilder, alarm: TimeLimit) -> None:
        # An interrupted table must leave `gathered` unchanged.
        gathered.add(*alarm.within(partial(self._judged, found, alarm.works)))

    def _judged(self, found: DiscoveredTable, limited: bool) -> tuple[TableState, SharedEvaluation]:
        location = location_at(found.location, found.table)
        if location.path is None:
            state = self._remote(location, found)
        else:
            store = open_log(location, {})
            if not limited:
                store = limit_reads(store, Deadline(self._settings.seconds))
            state = self._reader.read_from(location, store)
        return state, self._judge.judge(state)

    def _remote(self, location: Location, found: DiscoveredTable) -> TableState:
        deadline = Deadline(self._settings.seconds)

        def read(tried: int) -> TableState:
            listed = None if tried else found.listed
            store = open_log(location, self._settings.storage_options, listed)
            return self._reader.read_from(location, limit_reads(store, deadline))

        return with_retries(read, deadline)
