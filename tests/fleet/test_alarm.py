"""The time limit of one table in a scan."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.scan_table import ReadSettings, TableScanner, TimeLimit
from deltaproto.location import Location
from deltaproto.protocol.table_state import TableState
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.storage import LogStore
from tests.support.logs import Log, metadata, protocol

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no interval timers")


def computes_forever() -> None:
    while True:
        pass


def test_a_table_that_takes_too_long_is_one_error_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["before", "slow", "after"]
    for name in names:
        Log(tmp_path / name).commit(0, protocol(1, 2), metadata())
    read = LogReader.read_from

    def slow(reader: LogReader, location: Location, store: LogStore) -> TableState:
        if location.text.endswith("slow"):
            computes_forever()
        return read(reader, location, store)

    monkeypatch.setattr(LogReader, "read_from", slow)
    found = [DiscoveredTable(str(tmp_path / name), str(tmp_path / name)) for name in names]
    rows = TableScanner(ReadSettings("s", {}, seconds=0.2)).scan(found).to_pylist()
    assert [row["error"] and row["error"]["code"] for row in rows] == [None, "timeout", None]
    assert [row["version"] for row in rows] == [0, None, 0]
    assert "longer than 0.2 s" in rows[1]["error"]["message"]


def test_where_nothing_can_be_interrupted_nothing_more_is_read_after_the_limit(
    tmp_path: Path,
) -> None:
    Log(tmp_path / "t").commit(0, protocol(1, 2), metadata())
    found = [DiscoveredTable(str(tmp_path / "t"), str(tmp_path / "t"))]
    rows = []
    thread = threading.Thread(
        target=lambda: rows.extend(
            TableScanner(ReadSettings("s", {}, seconds=-1)).scan(found).to_pylist()
        )
    )
    thread.start()
    thread.join()
    assert rows[0]["error"]["code"] == "timeout"


def test_what_a_library_makes_of_the_interruption_is_still_a_timeout() -> None:
    def wrapped() -> None:
        try:
            computes_forever()
        except BaseException:
            raise OSError("a callback failed") from None

    with TimeLimit(0.05) as alarm, pytest.raises(TableError) as caught:
        alarm.run(wrapped)
    assert caught.value.code is ErrorCode.TIMEOUT


@pytest.mark.parametrize("work", [lambda: 1, lambda: int("x")])
def test_an_alarm_leaves_the_process_as_it_was(work: Callable[[], int]) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with TimeLimit(30) as alarm:
        try:
            alarm.run(work)
        except ValueError:
            pass
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before
