"""Waiting for threads while a signal arrives."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from deltaproto.interrupts import (
    defer_signals,
    map_in_threads,
    reader_pool,
    wait_for,
    wait_for_first,
    work_ahead,
)


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal whose handler raises KeyboardInterrupt."""
    number: signal.Signals = request.param
    before = signal.signal(number, signal.default_int_handler)
    yield number
    signal.signal(number, before)


@pytest.mark.parametrize("again", [False, True])
def test_an_interrupted_wait_leaves_no_lock_held(number: signal.Signals, again: bool) -> None:
    """A thread that sets the result would wait for it forever."""
    future: Future[int] = Future()
    condition: Any = future._condition
    acquire = condition.acquire

    def interrupted(*given: object) -> bool:
        taken: bool = acquire(*given)
        signal.raise_signal(number)
        if again:
            signal.raise_signal(number)
        return taken

    condition.acquire = interrupted
    with pytest.raises(KeyboardInterrupt):
        wait_for_first([future])
    condition.acquire = acquire
    assert in_another_thread(lambda: condition.acquire(blocking=False))
    assert signal.getsignal(number) is signal.default_int_handler


def in_another_thread(call: Any) -> Any:
    """Return what a call returns in another thread; a lock may be taken twice in the same one."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("wait", [lambda future: wait_for_first([future]), wait_for])
def test_a_signal_that_another_thread_takes_ends_the_wait(
    number: signal.Signals, wait: Callable[[Future[int]], object]
) -> None:
    def take() -> None:
        signal.pthread_kill(threading.get_ident(), number)

    thread = threading.Thread(target=take)

    def wait_for_nothing() -> None:
        thread.start()
        wait(Future())

    with pytest.raises(KeyboardInterrupt):
        wait_for_nothing()
    thread.join()


def test_an_interrupted_map_begins_no_more_work(number: signal.Signals) -> None:
    begun, over = list[int](), threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        if item == 1:
            signal.pthread_kill(threading.get_ident(), number)
            over.wait()
        return item

    found = list[int]()
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(KeyboardInterrupt):
            found.extend(map_in_threads(pool, work, range(9)))
        over.set()
    assert (found, begun) == ([0], [0, 1])


def test_a_map_raises_what_the_work_raised() -> None:
    def work(item: int) -> int:
        if item == 2:
            raise ValueError(item)
        return -item

    found = list[int]()
    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match="2"):
        found.extend(map_in_threads(pool, work, range(4)))
    assert found == [0, -1]


def test_futures_that_are_done_are_returned() -> None:
    done, waiting = Future[int](), Future[int]()
    done.set_result(1)
    assert wait_for_first([waiting, done]) == {done}


def test_other_threads_wait_without_handlers() -> None:
    done: Future[int] = Future()
    done.set_result(1)
    assert in_another_thread(lambda: wait_for_first([done])) == {done}


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with defer_signals():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_work_that_waits_is_done_ahead_and_the_rest_when_it_is_asked_for() -> None:
    begun: list[int] = []
    together = threading.Barrier(2)

    def work(item: int) -> int:
        if item % 2:
            together.wait(60)
        begun.append(item)
        return -item

    found = work_ahead(work, [1, 2, 3, 4], lambda item: item % 2 == 1)
    # The second item that waits begins before the first result is taken.
    assert [(item, result()) for item, result in found] == [(1, -1), (2, -2), (3, -3), (4, -4)]
    assert sorted(begun) == [1, 2, 3, 4]


def test_an_error_of_work_is_raised_where_its_result_is_asked_for() -> None:
    def work(item: int) -> int:
        return 1 // item

    (_, first), (_, second), (_, third) = work_ahead(work, [1, 0, 0], lambda item: item < 1)
    assert first() == 1
    for broken in (second, third):
        with pytest.raises(ZeroDivisionError):
            broken()


def test_items_are_taken_at_most_as_far_ahead_as_there_are_threads() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    found = work_ahead(lambda item: item, items(), lambda _: True)
    for _ in range(3):
        next(found)
    assert len(taken) < 40
    found.close()


def test_an_exception_does_not_wait_for_threads_that_read() -> None:
    asked, answer, ended = threading.Event(), threading.Event(), threading.Event()

    def read() -> None:
        asked.set()
        answer.wait(60)
        ended.set()

    def interrupted() -> None:
        with reader_pool(1) as pool:
            pool.submit(read)
            asked.wait(60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not ended.is_set()
    answer.set()
    assert ended.wait(60)
