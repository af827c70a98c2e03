"""Processes and threads of a scan."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pytest

from deltaproto.fleet import local_engine, workers
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.scan_table import ReadSettings, TableScanner
from deltaproto.fleet.unchanged import LastScan
from tests.fleet.fleets import make_fleet, two_folders

pytestmark = pytest.mark.rotating

SETTINGS = ReadSettings("s", {})


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> list[DiscoveredTable]:
    made = make_fleet(tmp_path_factory.mktemp("fleet"), seed=17, count=90)
    return [DiscoveredTable(str(path), str(path)) for path in made]


@pytest.fixture
def forked_for_ten_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "_FEW", 10)
    monkeypatch.setattr(local_engine, "_ON_DISK", 10)
    monkeypatch.setattr(workers, "_THREADED", ())
    monkeypatch.setattr("threading.active_count", lambda: 1)


def test_commands_import_neither_numpy_nor_pandas(tmp_path: Path) -> None:
    make_fleet(tmp_path / "lake", seed=2, count=3)
    lake, inventory = str(tmp_path / "lake"), str(tmp_path / "inventory")
    commands = [
        ["scan", lake],
        ["scan", lake, "--inventory", inventory],
        ["scan", lake, "--inventory", inventory],
        ["check", inventory, "--client", "trino@476"],
        ["drift", inventory],
        ["report", inventory],
        ["plan-downgrade", inventory, "--lowest"],
        ["discover", inventory],
    ]
    for words in commands:
        ran = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "deltaproto", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode in (0, 1), (words, ran.stderr)
        imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
        assert "pyarrow.lib" in imported, words
        # An import that fails is listed too.
        assert not [name for name in imported if name.startswith(("numpy.", "pandas."))], words
        assert "deltaproto.plan_inputs.from_log" not in imported or words[0] == "plan-downgrade"
        assert "multiprocessing" not in imported or words[0] == "discover"


@pytest.mark.skipif(sys.platform != "linux", reason="where processes are forked")
def test_a_scan_that_shows_its_progress_forks(tmp_path: Path) -> None:
    # Processes that are spawned import everything again, which takes a fifth of a scan.
    lake, inventory, notes = (str(tmp_path / name) for name in ("lake", "inventory", "notes"))
    two_folders(Path(lake), 150, 60)
    script = (
        "import sys; from deltaproto.fleet import workers; from deltaproto.cli import main\n"
        "def start(begin=workers._start_context):\n"
        "    context = begin()\n"
        "    print(context.get_start_method(), file=open(sys.argv[1], 'a'))\n"
        "    return context\n"
        "workers._start_context = start\n"
        "sys.exit(main(sys.argv[2:]))"
    )
    command = [sys.executable, "-c", script, notes, "scan", lake, "--inventory", inventory]
    screens = []
    for words in ([], [], ["--full"]):
        screen, terminal = pty.openpty()
        with subprocess.Popen([*command, *words], stdout=terminal, stderr=terminal) as running:
            os.close(terminal)
            shown = b""
            # Linux ends the reading of a terminal that nobody writes to any more with EIO.
            with suppress(OSError):
                while chunk := os.read(screen, 65536):
                    shown += chunk
        os.close(screen)
        assert running.returncode == 0
        screens.append(shown.decode())
    assert Path(notes).read_text().split() == ["fork"] * 3
    assert ["left" in shown for shown in screens] == [False, True, True], "a count is expected"


def test_pyspark_gets_numpy_and_pandas() -> None:
    script = (
        "import sys; from deltaproto.arrow_imports import hide_numpy_and_pandas\n"
        "hide_numpy_and_pandas()\n"
        "try: import numpy\n"
        "except ModuleNotFoundError as error: assert error.name == 'numpy'\n"
        "import pyarrow; assert 'numpy' not in sys.modules\n"
        "import pyspark, numpy, pandas\n"
        "print(pandas.DataFrame({'a': [1]}).shape)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "(1, 1)\n"


@pytest.mark.skipif(sys.platform != "linux", reason="children inherit what the test has changed")
@pytest.mark.usefixtures("forked_for_ten_tables")
@pytest.mark.parametrize("killers", [1, 3])
def test_a_process_that_is_killed_costs_one_table(
    fleet: list[DiscoveredTable], monkeypatch: pytest.MonkeyPatch, killers: int
) -> None:
    deadly = {fleet[25 * (number + 1)].table for number in range(killers)}
    one = TableScanner._one

    def dies(looker: TableScanner, found: DiscoveredTable, *rest: object) -> None:
        if found.table in deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        one(looker, found, *rest)  # type: ignore[arg-type]

    whole = {row["table"]: row for row in TableScanner(SETTINGS).scan(fleet).to_pylist()}
    monkeypatch.setattr(TableScanner, "_one", dies)
    rows = [
        row
        for batch in local_engine.read_local_tables(iter(fleet), SETTINGS, 2)
        for row in batch.to_pylist()
    ]
    assert sorted(row["table"] for row in rows) == sorted(whole)
    for row in rows:
        if row["table"] in deadly:
            assert row["error"]["code"] == "internal"
            assert "was killed" in row["error"]["message"]
        else:
            assert row == whole[row["table"]]


class Forgotten(LastScan):
    """A last scan that knows none of the tables, which shows when they are compared."""

    compares = True

    def split(
        self, tables: Sequence[DiscoveredTable], digests: Sequence[str | None], scan_id: str
    ) -> tuple[pa.RecordBatch | None, list[DiscoveredTable]]:
        assert len(tables) == len(digests)
        return None, list(tables)


@pytest.mark.skipif(sys.platform != "linux", reason="children inherit what the test has changed")
@pytest.mark.usefixtures("forked_for_ten_tables")
@pytest.mark.parametrize("parallel", [1, 2])
@pytest.mark.parametrize("killed", [False, True])
def test_each_table_that_is_compared_is_read_once(
    fleet: list[DiscoveredTable], monkeypatch: pytest.MonkeyPatch, parallel: int, killed: bool
) -> None:
    digests, main = TableScanner.digests, os.getpid()

    def dies(looker: TableScanner, tables: list[DiscoveredTable]) -> list[str | None]:
        if killed and fleet[25] in tables and os.getpid() != main:
            os.kill(os.getpid(), signal.SIGKILL)
        return digests(looker, tables)

    monkeypatch.setattr(TableScanner, "digests", dies)
    rows = [
        row
        for batch in local_engine.read_local_tables(iter(fleet), SETTINGS, parallel, Forgotten())
        for row in batch.to_pylist()
    ]
    whole = TableScanner(SETTINGS).scan(fleet).to_pylist()
    assert sorted(rows, key=itemgetter("table")) == sorted(whole, key=itemgetter("table"))


def test_few_tables_need_no_processes(
    fleet: list[DiscoveredTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(local_engine, "WorkerPool", none)
    (batch,) = local_engine.read_local_tables(iter(fleet), SETTINGS, 2)
    assert batch.num_rows == len(fleet)


def test_memory_holds_the_chunks_under_way(
    fleet: list[DiscoveredTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engine, "_FEW", 5)
    monkeypatch.setattr(local_engine, "_ON_DISK", 5)
    taken = 0

    def counted() -> object:
        nonlocal taken
        for found in fleet:
            taken += 1
            yield found

    batches = local_engine.read_local_tables(counted(), SETTINGS, 2)  # type: ignore[arg-type]
    seen = next(batches).num_rows
    assert taken <= seen + 5 * 2 * local_engine._AHEAD
    assert seen + sum(batch.num_rows for batch in batches) == len(fleet)


def test_what_nobody_waits_for_is_not_looked_at(
    fleet: list[DiscoveredTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    look, begun, permits, closing = TableScanner.scan, 0, threading.Semaphore(1), threading.Event()

    def gated(looker: TableScanner, tables: list[DiscoveredTable]) -> object:
        nonlocal begun
        begun += 1
        if not permits.acquire(blocking=False):
            assert closing.wait(60)
        return look(looker, tables)

    class Pool(ThreadPoolExecutor):
        """Lets the tasks under way finish only after the waiting ones are canceled."""

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            closing.set()
            super().shutdown(wait=wait)

    monkeypatch.setattr(TableScanner, "scan", gated)
    monkeypatch.setattr(local_engine, "ThreadPoolExecutor", Pool)
    batches = local_engine.read_remote_tables(iter(fleet), SETTINGS, 2)
    assert isinstance(batches, Generator)
    next(batches)
    batches.close()
    # The first chunk, and one that each of the two threads has begun.
    assert begun <= 3
