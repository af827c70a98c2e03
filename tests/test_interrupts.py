"""Waiting for threads while a signal arrives."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from deltaproto.interrupts import defer_signals, wait_for_first


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


def test_a_signal_that_another_thread_takes_ends_the_wait(number: signal.Signals) -> None:
    def take() -> None:
        signal.pthread_kill(threading.get_ident(), number)

    thread = threading.Thread(target=take)

    def wait_for_nothing() -> None:
        thread.start()
        wait_for_first([Future()])

    with pytest.raises(KeyboardInterrupt):
        wait_for_nothing()
    thread.join()


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
