"""Worker processes that read tables, and retries on transient errors."""

from __future__ import annotations

import os
import queue
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from deltaproto.errors import DeltaprotoError, ErrorCode, ExitCode, TableError
from deltaproto.tables.storage.interface import Deadline

# Only imported where processes start: scans of few tables have none.
if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_MAX_TRIES = 6
_GONE_AFTER = 10
"""number of places in a row that fail before a store counts as gone"""
_PAUSE_SECONDS = 0.1
# Stores that throttle or drop a response, and logs that are cleaned up while they are read.
_TRANSIENT = (ErrorCode.STORAGE, ErrorCode.TIMEOUT, ErrorCode.CORRUPT_LOG)
_CORRUPT_IF_REPEATED = ErrorCode.CORRUPT_LOG
"""errors that count as corruption if they repeat"""
T = TypeVar("T")


class StoreGoneError(DeltaprotoError):
    """The error of an object store that no longer answers. It ends a scan, which can be resumed."""

    exit_code = ExitCode.UNREADABLE
    code = str(ErrorCode.STORAGE)


class StoreHealth:
    """Detects an unreachable object store: several places in a row failed after all retries."""

    def __init__(self) -> None:
        self._failed = 0
        self._lock = threading.Lock()

    def answered(self) -> None:
        """Record any response, even a refusal."""
        self._failed = 0

    def failed(self, error: TableError) -> None:
        """Record a place that failed after all retries.

        Raises:
            StoreGoneError: when it is the last of several in a row.
        """
        if error.code is not ErrorCode.STORAGE:
            return
        with self._lock:
            self._failed += 1
        self.check(error.message)

    def check(self, message: str = "several requests failed in a row") -> None:
        """Raise StoreGoneError if the store is unreachable."""
        if self._failed >= _GONE_AFTER:
            raise StoreGoneError(
                f"the object store no longer answers: {message}",
                "check the store and the network; with --inventory, the tables already read are "
                "kept: run the same command with --resume to continue",
            )


def with_retries(
    ask: Callable[[int], T], deadline: Deadline, health: StoreHealth | None = None
) -> T:
    """Return the result of `ask`, which receives the number of the attempt, from 0.

    Raises:
        TableError: the error of the last attempt.
        StoreGoneError: when `health` shows that the store is unreachable.
    """
    repeated: set[str] = set()
    health = health or StoreHealth()
    for tried in range(_MAX_TRIES):
        health.check()
        try:
            result = ask(tried)
            health.answered()
            return result
        except TableError as error:
            over = error.final or tried == _MAX_TRIES - 1 or deadline.left <= 0
            if error.code not in _TRANSIENT:
                health.answered()
                raise
            if over or error.message in repeated:
                health.failed(error)
                raise
            if error.code is _CORRUPT_IF_REPEATED:
                repeated.add(error.message)
        # Use random delays, because requests that failed together must not be retried together.
        time.sleep(_PAUSE_SECONDS * 2**tried * random.uniform(0.5, 1.5))  # noqa: S311
    raise AssertionError


Work = Callable[[Any], bytes]
Begin = Callable[[Any], Work]
"""creates the work function in the process; must be a module-level function"""
# These modules start threads that do not survive fork().
_THREADED = ("deltalake", "obstore", "pyspark")
_ONE_AT_A_TIME = threading.Lock()


def count_processes(wanted: int | None = None) -> int:
    """Return how many processes to start, by default one for each processor; 1: none.

    A daemonic process, such as a worker of Celery, cannot start any.
    """
    import multiprocessing

    if multiprocessing.current_process().daemon:
        return 1
    if wanted:
        return wanted
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerDied(Exception):
    """The process died before returning a result."""


class WorkerPool:
    """A number of processes that all run the same function.

    Args:
        begin: called once in each process, with `given`.
    """

    def __init__(self, count: int, begin: Begin, argument: Any) -> None:
        context = _start_context()
        self.lost = False
        """whether a process died"""
        self._processes: list[Any] = []
        self._ends: list[Connection] = []
        self._idle: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        with _interrupts_blocked(), _caller_hidden():
            for _ in range(count):
                ours, theirs = context.Pipe()
                self._ends.append(ours)
                # A forked child inherits our pipe ends, which would hide our exit from the others.
                inherited = self._ends if context.get_start_method() == "fork" else ()
                process = context.Process(
                    target=_serve, args=(theirs, inherited, begin, argument), daemon=True
                )
                process.start()
                theirs.close()
                self._processes.append(process)
                self._idle.put(ours)
        self.pool = ThreadPoolExecutor(count, thread_name_prefix="worker")
        """threads that each wait for one result"""

    def ask(self, argument: Any) -> bytes:
        """Process `argument` in an idle worker.

        Raises:
            WorkerDied: when the process dies before it returns.
            Exception: any exception that the work raises.
        """
        pipe = self._idle.get()
        try:
            pipe.send(argument)
            raised = pipe.recv()
            answer = b"" if raised is not None else pipe.recv_bytes()
        except (EOFError, OSError):
            self.lost = True
            raise WorkerDied from None
        finally:
            self._idle.put(pipe)
        if raised is not None:
            raise raised
        return answer

    def close(self) -> None:
        """End the processes; pending calls fail."""
        for process in self._processes:
            process.kill()
        self.pool.shutdown(cancel_futures=True)
        for process in self._processes:
            process.join()
        for end in self._ends:
            end.close()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(pipe: Connection, inherited: Sequence[Connection], begin: Begin, argument: Any) -> None:
    for end in inherited:
        end.close()
    work = begin(argument)
    # EOF means the parent exited.
    with suppress(EOFError, ConnectionError):
        while True:
            request = pipe.recv()
            try:
                answer = work(request)
            except Exception as error:
                pipe.send(error)
                continue
            pipe.send(None)
            pipe.send_bytes(answer)


def _start_context() -> Any:
    """Use fork where it is safe, because it starts fast; otherwise spawn."""
    import multiprocessing

    threaded = threading.active_count() > 1 or any(name in sys.modules for name in _THREADED)
    if "fork" in multiprocessing.get_all_start_methods() and not threaded:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


@contextmanager
def _caller_hidden() -> Iterator[None]:
    """Keep spawned processes from importing the calling program, which would run again in each."""
    with _ONE_AT_A_TIME:
        caller = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = caller


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block interruptions for child processes started in the block; ours are only delayed."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # A terminal, a canceled job or a service manager signals the whole process group.
    blocked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
