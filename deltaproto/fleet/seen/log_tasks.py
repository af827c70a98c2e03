"""Logs of tables and access logs in tasks of similar size, which other processes do.

The results of the tasks are added up in the order of tables and files, so that the result is that
of one process. Besides the result, this process has the results of a few tasks in memory.
"""

from __future__ import annotations

import gc
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain, islice
from typing import Any

from deltaproto.errors import TableError
from deltaproto.fleet.seen.collect import (
    LogOptions,
    TableUses,
    place_of,
    read_here,
    read_table,
)
from deltaproto.fleet.seen.commits import ReadUpTo
from deltaproto.fleet.seen.find_logs import FailedTable, FoundLog
from deltaproto.fleet.seen.log_files import LogFile, Span, has_plain_lines
from deltaproto.fleet.seen.requests import FileToCount, LogCounter, TableMatcher
from deltaproto.fleet.workers import Work, WorkerDied, WorkerPool, count_processes
from deltaproto.location import LocationKind
from deltaproto.protocol.table_state import SparkSettings

_JOB = 128
"""tasks of a job"""
_TABLES = 50
"""tables of a task"""
_FILES = 500
"""files of a task, at most"""
_BYTES = 128 << 20
"""bytes of the files of a task; larger files of plain lines are read in parts"""
_PACKED = (".gz", ".parquet")
_PACKING = 10
"""how many times larger the contents of compressed files are, about"""
_AHEAD = 2
"""tasks of each process that it does or has done, before the next result is used"""
_LOCAL = SparkSettings(None, {}, hadoop={})
Do = Callable[[Any], Any]


class LogTaskReader:
    """Reads logs in tasks. A subclass runs them."""

    def run(self, tasks: Sequence[Any], do: Do) -> Iterator[Any]:
        """Yield what `do` returns for each task, in their order."""
        raise NotImplementedError

    def read_tables(
        self, found: Iterable[FoundLog | FailedTable], options: LogOptions
    ) -> Iterator[TableUses | FailedTable]:
        """Yield what each table's log shows, in their order.

        Tables that a catalog of a Spark session names are read here, where the session is.
        """
        source = iter(found)
        sent = options._replace(storage=dict(options.storage), spark=_LOCAL, counted={})
        while chunk := list(islice(source, _JOB * _TABLES)):
            remote = [each for each in chunk if isinstance(each, FoundLog) and not _by_name(each)]
            starts = range(0, len(remote), _TABLES)
            tasks = [_task(remote[start : start + _TABLES], options.counted) for start in starts]
            done = (each for part in self.run(tasks, partial(_read, sent)) for each in part)
            for each in chunk:
                if isinstance(each, FailedTable):
                    yield each
                else:
                    yield read_table(each, options) if _by_name(each) else next(done)

    def count_files(
        self,
        files: Iterable[FileToCount],
        total: LogCounter,
        matcher: TableMatcher,
        since: int | None,
        seen: Callable[[int], None],
    ) -> None:
        """Add the requests of files to a counter."""
        source = iter(_split_up(files))
        spans: LogCounter | None = None
        while chunk := list(islice(source, _JOB)):
            sent = [task for task in chunk if task[0].file.requests is None]
            done = self.run(sent, partial(_count, matcher, since, total.empty()))
            for task in chunk:
                if task[0].file.requests is not None:
                    self.count_rows(task[0], total, matcher, since, seen)
                    continue
                part: LogCounter = next(done)
                span = task[0].span
                if span is not None:
                    if spans is not None:
                        spans.include(part)
                        part = spans
                    spans = part
                    if span.end is not None:
                        continue
                    part.join_spans()
                    spans = None
                total.include(part)
                seen(total.lines)

    def count_rows(
        self,
        each: FileToCount,
        total: LogCounter,
        matcher: TableMatcher,
        since: int | None,
        seen: Callable[[int], None],
    ) -> None:
        """Add the requests of a table."""
        total.add(each, matcher, since, seen)


class ProcessLogReader(LogTaskReader):
    """Reads many tables in as many processes as this machine has processors, and few in this one.

    Access logs are no work for it: to add up what two processes counted in 1.4 GB of requests to
    10,000 tables took longer than to count them.
    """

    def read_tables(
        self, found: Iterable[FoundLog | FailedTable], options: LogOptions
    ) -> Iterator[TableUses | FailedTable]:
        source = iter(found)
        first = list(islice(source, _TABLES + 1))
        # Threads are enough for object stores, where a table mostly waits for responses.
        remote = any(isinstance(each, FoundLog) and each.remote for each in first)
        read = read_here if remote or len(first) <= _TABLES else super().read_tables
        return read(chain(first, source), options)

    def run(self, tasks: Sequence[Any], do: Do) -> Iterator[Any]:
        count = min(count_processes(), len(tasks))
        if count < 2:
            yield from map(do, tasks)
            return
        with WorkerPool(count, _start_worker, do) as workers:
            waiting: deque[tuple[Any, Future[bytes]]] = deque()
            for task in tasks:
                waiting.append((task, workers.pool.submit(workers.ask, task)))
                if len(waiting) > count * _AHEAD:
                    yield _result(*waiting.popleft(), do)
            while waiting:
                yield _result(*waiting.popleft(), do)


def _start_worker(do: Do) -> Work:
    return lambda task: pickle.dumps(do(task))


def _result(task: Any, future: Future[bytes], do: Do) -> Any:
    try:
        return load_result(future.result())
    except WorkerDied:
        return do(task)


def load_result(result: bytes) -> Any:
    """Return what another process pickled."""
    # Loading leaves no garbage, and looking for it takes longer than loading.
    enabled = gc.isenabled()
    gc.disable()
    try:
        # Pickled by our own code, from our own objects.
        return pickle.loads(result)  # noqa: S301
    finally:
        if enabled:
            gc.enable()


def _by_name(each: FoundLog) -> bool:
    """Return True for a table that only the session can find."""
    return each.location.kind is LocationKind.NAME


_Tables = tuple[list[FoundLog], dict[str, ReadUpTo]]
"""the tables of a task, and what earlier runs counted of them"""


def _task(tables: list[FoundLog], counted: Mapping[str, ReadUpTo]) -> _Tables:
    places = map(place_of, tables)
    return tables, {place: counted[place] for place in places if place in counted}


def _read(options: LogOptions, task: _Tables) -> list[TableUses | FailedTable]:
    """Read tables on an executor."""
    tables, counted = task
    return list(read_here(tables, options._replace(counted=counted)))


def _count(
    matcher: TableMatcher, since: int | None, empty: LogCounter, files: Iterable[FileToCount]
) -> LogCounter:
    """Count files, or a part of one, on an executor."""
    counter = empty.empty()
    for each in files:
        counter.add(each, matcher, since)
    return counter


def _split_up(files: Iterable[FileToCount]) -> Iterator[list[FileToCount]]:
    """Yield the files of each task, or the part of a large file, in order; a table alone."""
    task: list[FileToCount] = []
    size = 0
    for each in files:
        spans = list(_spans(each))
        weight = _weight(each.file)
        if task and (spans or each.file.requests is not None or size + weight > _BYTES):
            yield task
            task, size = [], 0
        if spans:
            yield from ([each._replace(span=span)] for span in spans)
        elif each.file.requests is not None:
            yield [each]
        else:
            task.append(each)
            size += weight
            if len(task) == _FILES:
                yield task
                task, size = [], 0
    if task:
        yield task


def _weight(file: LogFile) -> int:
    size = file.size or 0
    return size * _PACKING if file.name.endswith(_PACKED) else size


def _spans(each: FileToCount) -> Iterator[Span]:
    """Yield the parts in which a large file is read; none for a file that is read as a whole."""
    size = each.file.size or 0
    if each.file.requests is not None or size < 2 * _BYTES:
        return
    try:
        if not has_plain_lines(each.file):
            return
    except TableError:
        # The task that reads the file reports it.
        return
    starts = range(0, size, _BYTES)
    for start in starts:
        yield Span(start, None if start == starts[-1] else start + _BYTES)
