"""Looking at one table after the other for a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.errors import DeltaprotoError, ExitCode, TableError
from deltaproto.fleet.alarm import Alarm
from deltaproto.fleet.found import Found
from deltaproto.fleet.gather import Gathered
from deltaproto.fleet.judge import Judge, Judgement
from deltaproto.fleet.patience import patiently
from deltaproto.tables.interface import TableState
from deltaproto.tables.location import Location, at
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.redact import Redactor
from deltaproto.tables.storage import open_log
from deltaproto.tables.storage.deadline import Deadline, within

if TYPE_CHECKING:
    import pyarrow as pa


def failed(scan_id: str, found: Found, error: DeltaprotoError) -> pa.RecordBatch:
    """The staged row of one table that could not be read."""
    gathered = Gathered(scan_id)
    gathered.add_error(found.table, found.uri, error)
    return gathered.batch()


class Defect(DeltaprotoError):
    """A defect of ours on one table, which must not cost the others their answer."""

    exit_code = ExitCode.UNREADABLE
    code = "internal"


class Settings(NamedTuple):
    """How tables are read; the same on every machine and in every process of a scan."""

    scan_id: str
    storage_options: Mapping[str, str]
    seconds: float = 60.0
    """for one table"""


class Looker:
    """Reads tables with the log reader, and gathers what it sees. Never raises on a table."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._reader = LogReader(settings.storage_options)
        self._judge = Judge()

    def look(self, tables: Sequence[Found]) -> pa.RecordBatch:
        """A staged row for each of the tables."""
        gathered = Gathered(self._settings.scan_id)
        with Alarm(self._settings.seconds) as alarm:
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
                return failed(self._settings.scan_id, tables[0], self._defect(error))
        import pyarrow as pa

        return pa.concat_batches([self.look([found]) for found in tables])

    def _defect(self, error: Exception) -> Defect:
        said = f"internal error, {type(error).__name__}: {error}"
        return Defect(
            Redactor(self._settings.storage_options)(said),
            "report it; `deltaproto inspect --debug` on this table shows where",
        )

    def _one(self, found: Found, gathered: Gathered, alarm: Alarm) -> None:
        # What is interrupted must leave `gathered` as it was.
        gathered.add(*alarm.within(partial(self._judged, found, alarm.works)))

    def _judged(self, found: Found, limited: bool) -> tuple[TableState, Judgement]:
        location = at(found.location, found.table)
        if location.path is None:
            state = self._remote(location, found)
        else:
            store = open_log(location, {})
            if not limited:
                store = within(store, Deadline(self._settings.seconds))
            state = self._reader.read_from(location, store)
        return state, self._judge.judge(state)

    def _remote(self, location: Location, found: Found) -> TableState:
        deadline = Deadline(self._settings.seconds)

        def read(tried: int) -> TableState:
            listed = None if tried else found.listed
            store = open_log(location, self._settings.storage_options, listed)
            return self._reader.read_from(location, within(store, deadline))

        return patiently(read, deadline)
