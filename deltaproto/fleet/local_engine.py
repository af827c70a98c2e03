"""Scans on this machine: processes for local disks, threads for object stores."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.arrow_imports import hide_numpy_and_pandas
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.scan_table import InternalTableError, ReadSettings, TableScanner, failed_row
from deltaproto.fleet.schemas import staged_schema
from deltaproto.fleet.workers import StoreHealth, Work, WorkerDied, WorkerPool, count_processes
from deltaproto.protocol.decoding import use_fast_decoder

if TYPE_CHECKING:
    import pyarrow as pa

THREADS = 32
"""threads for object stores, where a table mostly waits for responses"""
_FEW = 200
"""number of tables too small for a process; also a worker's first chunk"""
_VERY_FEW = 20
"""number of tables for which the fast JSON library takes longer to import than it saves"""
_ON_DISK, _REMOTE = 500, 8
"""tables per chunk of a worker"""
_AHEAD = 3
_GARBAGE = 100_000
"""number of new objects (about ten chunks) after which a worker collects garbage"""


def read_local_tables(
    tables: Iterable[DiscoveredTable],
    settings: ReadSettings,
    parallel: int | None,
    expecting: Callable[[Iterable[DiscoveredTable]], Iterator[DiscoveredTable]] = iter,
) -> Iterator[pa.RecordBatch]:
    """Yield staged rows of tables on local disks as they are read, with `parallel` processes.

    Args:
        expecting: adds what the last scan knows of each table. Nothing is taken from its result
            before the processes have started.
    """
    count = count_processes(parallel)
    source = iter(tables)
    first = list(islice(source, _FEW))
    if not first:
        return
    if len(first) > _VERY_FEW:
        use_fast_decoder()
    source = expecting(chain(first, source))
    if count == 1 or len(first) < _FEW:
        looker = TableScanner(settings)
        while some := list(islice(source, _FEW)):
            yield looker.look(some)
        return
    # Forked children need it; imported here, they inherit it.
    import pyarrow.compute  # noqa: F401

    # Small first chunks give early results, and enough chunks for all processes.
    sizes = chain(repeat(_FEW, 2 * count), repeat(_ON_DISK))
    pending: list[DiscoveredTable] = []
    while True:
        left: list[list[DiscoveredTable]] = []
        with WorkerPool(count, _start_worker, settings) as workers:
            for chunk, future in _distribute(workers, chain(pending, source), count, sizes):
                try:
                    yield _batch(future.result())
                except WorkerDied:
                    left.append(chunk)
        for chunk in left:
            yield from _read_in_halves(chunk, settings)
        pending = list(islice(source, _FEW))
        if not pending:
            return


def read_remote_tables(
    tables: Iterable[DiscoveredTable], settings: ReadSettings, parallel: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield staged rows of tables on object stores as they are read, with `parallel` threads.

    Raises:
        StoreGoneError: when several tables in a row fail because the store does not answer.
    """
    source = iter(tables)
    first = next(source, None)
    if first is None:
        return
    use_fast_decoder()
    count, looker = parallel or THREADS, TableScanner(settings, StoreHealth())
    threads = _ThreadWorkers(ThreadPoolExecutor(count), looker.look)
    try:
        for _, future in _distribute(threads, chain([first], source), count, repeat(_REMOTE)):
            yield future.result()
    finally:
        threads.pool.shutdown(cancel_futures=True)


class _ThreadWorkers(NamedTuple):
    """The interface of `WorkerPool`, with threads."""

    pool: ThreadPoolExecutor
    ask: Callable[[list[DiscoveredTable]], Any]
    lost: bool = False


def _distribute(
    workers: WorkerPool | _ThreadWorkers,
    source: Iterator[DiscoveredTable],
    count: int,
    sizes: Iterator[int],
) -> Iterator[tuple[list[DiscoveredTable], Future[Any]]]:
    """Keep every worker busy without reading ahead more tables than necessary.

    Ends early, with running chunks incomplete, when a worker dies.
    """
    waiting: dict[Future[Any], list[DiscoveredTable]] = {}
    while True:
        while (
            not workers.lost
            and len(waiting) < count * _AHEAD
            and (chunk := list(islice(source, next(sizes))))
        ):
            waiting[workers.pool.submit(workers.ask, chunk)] = chunk
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            yield waiting.pop(future), future


def _read_in_halves(
    tables: list[DiscoveredTable], settings: ReadSettings
) -> Iterator[pa.RecordBatch]:
    """Yield rows of tables, one of which may kill every process that reads it."""
    with WorkerPool(1, _start_worker, settings) as workers:
        try:
            yield _batch(workers.ask(tables))
            return
        except WorkerDied:
            pass
    if len(tables) > 1:
        middle = len(tables) // 2
        yield from _read_in_halves(tables[:middle], settings)
        yield from _read_in_halves(tables[middle:], settings)
        return
    message = "the worker process was killed (out of memory?)"
    error = InternalTableError(message, "read it alone: deltaproto inspect")
    yield failed_row(settings.scan_id, tables[0], error)


def _batch(data: bytes) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.ipc.read_record_batch(pa.py_buffer(data), staged_schema())


def _start_worker(settings: ReadSettings) -> Work:
    use_fast_decoder()
    hide_numpy_and_pandas()
    # Inherited objects are never collected; per-table garbage is negligible.
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    looker = TableScanner(settings)
    return lambda tables: bytes(looker.look(tables).serialize())
