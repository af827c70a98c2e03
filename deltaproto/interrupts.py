"""Waiting for threads in a way that Ctrl-C and other signals can interrupt safely."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

_R = TypeVar("_R")
_T = TypeVar("_T")
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
# A signal delivered to another thread does not wake the main thread, where Python handles it.
_POLL_SECONDS = 0.2
_THREADS = 16
READER_THREADS = "reader"
"""how the names of threads begin that the process may end without"""


def wait_for_first(futures: Iterable[Future[_R]]) -> set[Future[_R]]:
    """Return the futures that are done, as soon as there is one. There must be at least one.

    A signal takes effect within a fraction of a second, whichever thread receives it, and leaves
    no lock of a future held.
    """
    waiting = set(futures)
    done: set[Future[_R]] = set()
    while not done:
        with defer_signals():
            done = wait(waiting, _POLL_SECONDS, FIRST_COMPLETED).done
    return done


def wait_for(future: Future[_R]) -> _R:
    """Return the result of a future, or raise what its work raised. Waits like `wait_for_first`."""
    wait_for_first([future])
    return future.result()


def map_in_threads(
    pool: ThreadPoolExecutor, work: Callable[[_T], _R], items: Iterable[_T]
) -> Iterator[_R]:
    """Yield what `work` returns for each item, in their order. Waits like `wait_for_first`.

    Work that has not begun when the iterator is closed is canceled.
    """
    futures: list[Future[_R]] = []
    try:
        with defer_signals():
            futures += [pool.submit(work, item) for item in items]
        for future in futures:
            yield wait_for(future)
    finally:
        with defer_signals():
            for future in futures:
                future.cancel()


def work_ahead(
    work: Callable[[_T], _R], items: Iterable[_T], waits: Callable[[_T], bool]
) -> Iterator[tuple[_T, Callable[[], _R]]]:
    """Yield each item with a function that returns what `work` returns for it, or raises.

    Args:
        waits: returns True if work on an item mostly waits, as for the answers of a store. It is
            then done in threads, at most 16 items ahead; otherwise when the function is called.
    """
    waiting: deque[tuple[_T, Callable[[], _R], bool]] = deque()
    with reader_pool(_THREADS) as pool:
        for item in items:
            if waits(item):
                with defer_signals():
                    future = pool.submit(work, item)
                waiting.append((item, partial(wait_for, future), True))
            else:
                waiting.append((item, partial(work, item), False))
            while waiting and (not waiting[0][2] or len(waiting) > _THREADS):
                yield waiting.popleft()[:2]
        while waiting:
            yield waiting.popleft()[:2]


def interruptible(work: Callable[[], _R]) -> _R:
    """Return what `work` returns, or raise what it raises.

    For work that may wait long outside Python, where no signal takes effect. The main thread gives
    it to another one: an interruption does not wait for it, and the process ends while it runs.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    with reader_pool(1) as pool:
        with defer_signals():
            future = pool.submit(work)
        return wait_for(future)


@contextmanager
def reader_pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads for work that may be given up: an exception does not wait for them."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=READER_THREADS)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown(wait=False)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Handle signals only when the block ends, if the main thread runs it.

    An exception that a handler raises while a lock is acquired would leave it held, and a thread
    that needs it would wait forever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[tuple[int, Any]] = []
    before: dict[int, Any] = {}
    for number in (getattr(signal, name, None) for name in _SIGNALS):
        if number is not None and callable(handler := signal.getsignal(number)):
            before[number] = handler
            signal.signal(number, lambda *given: received.append(given))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in received[:1]:
            before[number](number, frame)
