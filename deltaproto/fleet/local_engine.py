"""A scan on this machine: processes for local disks, threads for object stores."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

from deltaproto.fleet.found import Found
from deltaproto.fleet.look import Defect, Looker, Settings, failed
from deltaproto.fleet.schemas import staged

if TYPE_CHECKING:
    import pyarrow as pa

THREADS = 32
"""for object stores, where a table is waiting for answers most of the time"""
_FEW = 200
"""tables that are not worth a process; and what a worker takes at first"""
_ON_DISK, _REMOTE = 500, 8
"""tables that a worker takes at a time"""
_AHEAD = 3
_GARBAGE = 100_000
"""new objects, about those of ten chunks, after which a worker looks for garbage"""
# Whoever has these has threads that a forked child would find dead.
_THREADED = ("deltalake", "obstore", "pyspark")
_looker: Looker | None = None


def on_disk(
    tables: Iterable[Found], settings: Settings, parallel: int | None
) -> Iterator[pa.RecordBatch]:
    """Staged rows of tables on local disks, as they come; `parallel` processes."""
    _fast_json()
    count = parallel or _processors()
    source = iter(tables)
    first = list(islice(source, _FEW))
    if count == 1 or len(first) < _FEW:
        looker = Looker(settings)
        while first:
            yield looker.look(first)
            first = list(islice(source, _FEW))
        return
    source = chain(first, source)
    import pyarrow as pa

    # Forked children need it too.
    import pyarrow.compute

    left: list[Found] = [*first]
    while left:
        left = []
        with _processes(count, settings) as pool:
            # The first answers come soon, and a small fleet has enough for all processes.
            sizes = chain(repeat(_FEW, 2 * count), repeat(_ON_DISK))
            for chunk, future in _spread(pool, _serialized, source, count, sizes):
                try:
                    yield pa.ipc.read_record_batch(pa.py_buffer(future.result()), staged())
                except BrokenProcessPool:
                    left += chunk
        # A process died, and with it its pool. The others' tables come out well.
        for found in left:
            yield _alone(found, settings)


def on_objects(
    tables: Iterable[Found], settings: Settings, parallel: int | None
) -> Iterator[pa.RecordBatch]:
    """Staged rows of tables on object stores, as they come; `parallel` threads."""
    _fast_json()
    count, looker = parallel or THREADS, Looker(settings)
    with ThreadPoolExecutor(count) as pool:
        for _, future in _spread(pool, looker.look, iter(tables), count, repeat(_REMOTE)):
            yield future.result()


def _spread(
    pool: Executor,
    work: Callable[[list[Found]], Any],
    source: Iterator[Found],
    count: int,
    sizes: Iterator[int],
) -> Iterator[tuple[list[Found], Future[Any]]]:
    """Keep every worker busy, and take in no more tables than that needs."""
    waiting: dict[Future[Any], list[Found]] = {}
    while True:
        try:
            while len(waiting) < count * _AHEAD and (chunk := list(islice(source, next(sizes)))):
                waiting[pool.submit(work, chunk)] = chunk
        except BrokenProcessPool:
            broken: Future[Any] = Future()
            broken.set_exception(BrokenProcessPool())
            yield chunk, broken
            yield from ((taken, future) for future, taken in waiting.items())
            return
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            yield waiting.pop(future), future


def _alone(found: Found, settings: Settings) -> pa.RecordBatch:
    """One table in a process of its own: a process died, and one of its tables was the cause."""
    import pyarrow as pa

    with _processes(1, settings) as pool:
        try:
            data = pool.submit(_serialized, [found]).result()
        except BrokenProcessPool:
            said = "the process that read it was killed, perhaps for want of memory"
            error = Defect(said, "look at it alone: deltaproto inspect")
            return failed(settings.scan_id, found, error)
    return pa.ipc.read_record_batch(pa.py_buffer(data), staged())


def _processes(count: int, settings: Settings) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        count, mp_context=_context(), initializer=_begin, initargs=(settings,)
    )


def _context() -> Any:
    """Forked children start at once; where a fork is not safe, they come from a clean server."""
    threaded = threading.active_count() > 1 or any(name in sys.modules for name in _THREADED)
    if "fork" in multiprocessing.get_all_start_methods() and not threaded:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


class _NoPandas:
    """Arrow would import pandas in each process, for half a second, to see that no value is its."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _begin(settings: Settings) -> None:
    global _looker
    _fast_json()
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas())
    # What the parent had made is nobody's garbage, and tables leave next to none.
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    _looker = Looker(settings)


def _fast_json() -> None:
    # Once it is imported, the log reader uses it.
    import msgspec  # noqa: F401


def _serialized(tables: list[Found]) -> bytes:
    assert _looker is not None
    return bytes(_looker.look(tables).serialize())


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
