"""Processes that do the same work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from deltaproto.fleet.workers import Work, WorkerDied, WorkerPool, count_processes

pytestmark = pytest.mark.rotating

LARGE = 200_000_000
SECONDS = 30


def begin(given: int) -> Work:
    """Makes a process do what it is told by name."""

    def work(asked: tuple[str, int]) -> bytes:
        name, number = asked
        return ORDERS[name](number + given)

    return work


def _raises(number: int) -> bytes:
    raise ValueError(str(number))


def _raises_of_the_system(_: int) -> bytes:
    raise FileNotFoundError("gone")


def _dies(_: int) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _dies_while_it_answers(_: int) -> bytes:
    answer = bytes(LARGE)
    threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return answer


def _sleeps(number: int) -> bytes:
    time.sleep(number)
    return b""


def _writes_its_id(_: int) -> bytes:
    return str(os.getpid()).encode()


ORDERS: dict[str, Callable[[int], bytes]] = {
    "number": lambda number: str(number).encode(),
    "large": bytes,
    "raises": _raises,
    "raises-of-the-system": _raises_of_the_system,
    "dies": _dies,
    "dies-while-it-answers": _dies_while_it_answers,
    "sleeps": _sleeps,
    "id": _writes_its_id,
}


@pytest.fixture(params=["fork", "spawn"])
def pair(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPool]:
    context = multiprocessing.get_context(request.param)
    monkeypatch.setattr("deltaproto.fleet.workers._start_context", lambda: context)
    with WorkerPool(2, begin, 1) as made:
        yield made


def test_answers_and_errors_come_back(pair: WorkerPool) -> None:
    futures = [pair.pool.submit(pair.ask, ("number", n)) for n in range(50)]
    assert [future.result(SECONDS) for future in futures] == [b"%d" % (n + 1) for n in range(50)]
    with pytest.raises(ValueError, match=r"^8$"):
        pair.ask(("raises", 7))
    # An error of the work's own, not of the pipe.
    with pytest.raises(FileNotFoundError, match="gone"):
        pair.ask(("raises-of-the-system", 0))
    assert len(pair.ask(("large", 1_000_000))) == 1_000_001
    assert not pair.lost


@pytest.mark.parametrize("how", ["dies", "dies-while-it-answers"])
def test_one_that_dies_leaves_the_others_at_work(pair: WorkerPool, how: str) -> None:
    """The standard library's executor hangs where one dies while it answers."""
    deadly = pair.pool.submit(pair.ask, (how, 0))
    with pytest.raises(WorkerDied):
        deadly.result(SECONDS)
    assert pair.lost
    futures = [pair.pool.submit(pair.ask, ("number", n)) for n in range(20)]
    done, late = wait(futures, SECONDS)
    assert not late
    answers = [future.result() for future in done if future.exception() is None]
    assert answers
    assert all(isinstance(future.exception(), WorkerDied | None) for future in done)


def test_an_end_waits_for_nobody(pair: WorkerPool) -> None:
    # Longer than pytest lets a test run.
    asked = [pair.pool.submit(pair.ask, ("sleeps", 3600)) for _ in range(5)]
    while not any(future.running() for future in asked):
        time.sleep(0.01)
    pair.close()
    assert all(future.cancelled() or isinstance(future.exception(), WorkerDied) for future in asked)


def test_an_interruption_is_ours_alone(pair: WorkerPool) -> None:
    ids = {int(pair.ask(("id", 0))) for _ in range(4)}
    for each in ids:
        os.kill(each, signal.SIGINT)
    assert {int(pair.ask(("id", 0))) for _ in range(4)} == ids


def test_they_end_with_us() -> None:
    """With whoever started them, and however that ended."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            made = WorkerPool(2, begin, 0)
            os.write(theirs, b" ".join(made.ask(("id", 0)) for _ in range(4)))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.close(theirs)
    ids = {int(word) for word in os.read(ours, 1_000).split()}
    os.close(ours)
    os.waitpid(child, 0)
    assert ids
    until = time.monotonic() + SECONDS
    while any(_alive(each) for each in ids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_alive(each) for each in ids)


def _alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        # Its threads rule out fork.
        "import deltalake\n"
        "from deltaproto.fleet.workers import WorkerPool\n"
        "from tests.fleet.test_workers import begin\n"
        "print('runs')\n"
        "with WorkerPool(2, begin, 1) as pool:\n"
        "    print(pool.ask(('number', 1)).decode())\n"
    )
    ran = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert (ran.stdout.split(), ran.stderr) == (["runs", "2"], "")


def test_pools_that_start_together_leave_the_main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("spawn")
    monkeypatch.setattr("deltaproto.fleet.workers._start_context", lambda: context)
    main = sys.modules["__main__"]

    def ask(number: int) -> bytes:
        with WorkerPool(1, begin, 1) as pool:
            return pool.ask(("number", number))

    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(ask, range(4))] == [b"1", b"2", b"3", b"4"]
    assert sys.modules["__main__"] is main


def _count(results: Any) -> None:
    results.send((count_processes(), count_processes(5)))


def test_a_daemonic_process_starts_none() -> None:
    # Workers of Celery and of multiprocessing's pool are daemonic, and cannot have children.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_count, args=(theirs,), daemon=True)
    process.start()
    assert ours.poll(SECONDS)
    assert ours.recv() == (1, 1)
    process.join(SECONDS)
    assert count_processes(5) == 5
