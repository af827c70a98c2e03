"""Scans on this machine: processes for local disks, threads for object stores."""

from __future__ import annotations

import gc
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.arrow_imports import hide_numpy_and_pandas
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.scan_table import InternalTableError, ReadSettings, TableScanner, failed_row
from deltaproto.fleet.schemas import staged_schema
from deltaproto.fleet.unchanged import LastScan
from deltaproto.fleet.workers import StoreHealth, Work, WorkerDied, WorkerPool, count_processes
from deltaproto.interrupts import defer_signals, reader_pool, wait_for_first
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
_ALONE = 4
"""chunks of one remote table for each thread at first, so that few tables occupy all threads"""
_AHEAD = 3
_COMPARED_LATER = 40
"""chunks of digests that wait for the last scan to be loaded"""
_GARBAGE = 100_000
"""number of new objects (about ten chunks) after which a worker collects garbage"""


def read_local_tables(
    tables: Iterable[DiscoveredTable],
    settings: ReadSettings,
    parallel: int | None,
    last: LastScan | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield staged rows of tables on local disks as they are read, with `parallel` processes.

    Args:
        last: has the rows of tables that are unchanged. It is loaded after the processes have
            started, while they compute digests.
    """
    source = iter(tables)
    first = list(islice(source, _FEW))
    if not first:
        return
    count = 1 if len(first) < _FEW else count_processes(parallel)
    if len(first) > _VERY_FEW:
        use_fast_decoder()
    last = last or LastScan()
    chunks = _Chunks(chain(first, source), last, count, settings.scan_id)
    if count == 1:
        last.start_loading()
        yield from _read_here(chunks, settings)
        return
    if not last.may_have_rows:
        # Children need it to read tables. Imported here, they inherit it; few read any if most
        # tables are unchanged.
        import pyarrow.compute  # noqa: F401

    while not chunks.finished:
        left: list[list[DiscoveredTable]] = []
        with WorkerPool(count, _start_worker, settings) as workers:
            last.start_loading()
            while not (chunks.finished or workers.lost):
                for chunk, future in _distribute(workers, chunks.take, count):
                    try:
                        answer = future.result()
                    except WorkerDied:
                        left.append(chunk.tables)
                        continue
                    if chunk.compared:
                        yield from chunks.compare(chunk.tables, json.loads(answer))
                    else:
                        yield _batch(answer)
                yield from chunks.unchanged()
        for tables_left in left:
            yield from _read_in_halves(tables_left, settings)


def _read_here(chunks: _Chunks, settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    looker = TableScanner(settings)
    while not chunks.finished:
        while chunk := chunks.take():
            if chunk.compared:
                yield from chunks.compare(chunk.tables, looker.digests(chunk.tables))
            else:
                yield looker.scan(chunk.tables)
        yield from chunks.unchanged()


class _Chunk(NamedTuple):
    """Tables for a worker."""

    tables: list[DiscoveredTable]
    compared: bool = False
    """whether they are compared with the last scan: only the digests of their logs are wanted"""


class _Chunks:
    """Chunks of the tables of a scan. Tables that the last scan may know are in two: first their
    digests are wanted, then those that changed are read.
    """

    def __init__(
        self, source: Iterator[DiscoveredTable], last: LastScan, count: int, scan_id: str
    ) -> None:
        self._source, self._last, self._scan_id = source, last, scan_id
        # Small first chunks give early results, and enough chunks for all processes.
        self._sizes = chain(repeat(_FEW, 2 * count), repeat(_ON_DISK))
        self._digests: list[tuple[list[DiscoveredTable], list[str | None]]] = []
        """tables to compare as soon as the last scan is loaded"""
        self._changed: deque[DiscoveredTable] = deque()
        self._all_taken = False

    @property
    def finished(self) -> bool:
        """Whether all tables were taken or unchanged."""
        return self._all_taken and not self._digests and not self._changed

    def take(self) -> _Chunk | None:
        """Return the next chunk; None if there is none before more tables are compared."""
        size = next(self._sizes)
        if not self._all_taken and len(self._changed) < size:
            if tables := list(islice(self._source, size)):
                return _Chunk(tables, self._last.compares)
            self._all_taken = True
        tables = [self._changed.popleft() for _ in range(min(size, len(self._changed)))]
        return _Chunk(tables) if tables else None

    def compare(
        self, tables: list[DiscoveredTable], digests: list[str | None]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of unchanged tables; later if the last scan is still being loaded."""
        self._digests.append((tables, digests))
        if not self._last.loading or len(self._digests) == _COMPARED_LATER:
            yield from self.unchanged()

    def unchanged(self) -> Iterator[pa.RecordBatch]:
        """Wait for the last scan, and yield the rows of all tables that are unchanged."""
        for tables, digests in self._digests:
            rows, changed = self._last.split(tables, digests, self._scan_id)
            self._changed += changed
            if rows is not None:
                yield rows
        self._digests.clear()


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
    source = chain([first], source)
    sizes = chain(repeat(1, _ALONE * count), repeat(_REMOTE))

    def take() -> _Chunk | None:
        tables = list(islice(source, next(sizes)))
        return _Chunk(tables) if tables else None

    with reader_pool(count) as pool:
        threads = _ThreadWorkers(pool, lambda chunk: looker.scan(chunk.tables))
        for _, future in _distribute(threads, take, count):
            yield future.result()


class _ThreadWorkers(NamedTuple):
    """The interface of `WorkerPool`, with threads."""

    pool: ThreadPoolExecutor
    ask: Callable[[_Chunk], Any]
    lost: bool = False


def _distribute(
    workers: WorkerPool | _ThreadWorkers, take: Callable[[], _Chunk | None], count: int
) -> Iterator[tuple[_Chunk, Future[Any]]]:
    """Keep every worker busy without reading ahead more tables than necessary.

    Ends early, with running chunks incomplete, when a worker dies.
    """
    waiting: dict[Future[Any], _Chunk] = {}
    while True:
        while not workers.lost and len(waiting) < count * _AHEAD and (chunk := take()):
            with defer_signals():
                waiting[workers.pool.submit(workers.ask, chunk)] = chunk
        if not waiting:
            return
        for future in wait_for_first(waiting):
            yield waiting.pop(future), future


def _read_in_halves(
    tables: list[DiscoveredTable], settings: ReadSettings
) -> Iterator[pa.RecordBatch]:
    """Yield rows of tables when one of them may kill every process that reads it."""
    with WorkerPool(1, _start_worker, settings) as workers:
        try:
            yield _batch(workers.ask(_Chunk(tables)))
            return
        except WorkerDied:
            pass
    if len(tables) > 1:
        middle = len(tables) // 2
        yield from _read_in_halves(tables[:middle], settings)
        yield from _read_in_halves(tables[middle:], settings)
        return
    message = "the worker process was killed (out of memory?)"
    error = InternalTableError(message, "read it separately: deltaproto inspect")
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

    def work(chunk: _Chunk) -> bytes:
        if chunk.compared:
            return json.dumps(looker.digests(chunk.tables)).encode()
        return bytes(looker.scan(chunk.tables).serialize())

    return work
