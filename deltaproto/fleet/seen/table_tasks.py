"""Reads the logs of tables in tasks of similar size, in other processes or on Spark's executors.

The results are in the order of the tables, so their sum is the same as in one process.
"""

from __future__ import annotations

import gc
import pickle
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain, islice
from typing import Any

from deltaproto.fleet.seen.collect import (
    LogOptions,
    TableUses,
    place_of,
    read_here,
    read_table,
)
from deltaproto.fleet.seen.commits import ReadUpTo
from deltaproto.fleet.seen.find_logs import FailedTable, FoundLog
from deltaproto.fleet.workers import Work, WorkerDied, WorkerPool, count_processes
from deltaproto.interrupts import wait_for
from deltaproto.location import LocationKind
from deltaproto.protocol.table_state import SparkSettings

JOB = 128
"""tasks of a job"""
_TABLES = 50
"""tables of a task"""
_AHEAD = 2
"""tasks per process that may be running or done before the next result is used"""
_LOCAL = SparkSettings(None, {}, hadoop={})
Do = Callable[[Any], Any]
RunTasks = Callable[[Sequence[Any], Do], Iterator[Any]]
"""yields what a function returns for each task, in their order"""


def read_in_tasks(
    found: Iterable[FoundLog | FailedTable], options: LogOptions, run: RunTasks
) -> Iterator[TableUses | FailedTable]:
    """Yield what each table's log shows, in their order.

    Tables that a catalog of a Spark session names are read here, where the session is.
    """
    source = iter(found)
    sent = options._replace(storage=dict(options.storage), spark=_LOCAL, counted={})
    while chunk := list(islice(source, JOB * _TABLES)):
        apart = [each for each in chunk if isinstance(each, FoundLog) and not _by_name(each)]
        starts = range(0, len(apart), _TABLES)
        tasks = [_task(apart[start : start + _TABLES], options.counted) for start in starts]
        done = (each for part in run(tasks, partial(_read, sent)) for each in part)
        for each in chunk:
            if isinstance(each, FailedTable):
                yield each
            else:
                yield read_table(each, options) if _by_name(each) else next(done)


def read_in_processes(
    found: Iterable[FoundLog | FailedTable], options: LogOptions
) -> Iterator[TableUses | FailedTable]:
    """Read many tables in as many processes as there are processors, and few in this one.

    Access logs are not read in processes: adding up what two processes had counted in 1.4 GB of
    requests to 10,000 tables took longer than counting them.
    """
    source = iter(found)
    first = list(islice(source, _TABLES + 1))
    # Threads are enough for object stores, where a table mostly waits for responses.
    remote = any(isinstance(each, FoundLog) and each.remote for each in first)
    tables = chain(first, source)
    if remote or len(first) <= _TABLES:
        return read_here(tables, options)
    return read_in_tasks(tables, options, run_in_processes)


def run_in_processes(tasks: Sequence[Any], do: Do) -> Iterator[Any]:
    """Yield the result of `do` for each task, in their order, even if a process dies."""
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
    return lambda task: dump_result(do(task))


def _result(task: Any, future: Future[bytes], do: Do) -> Any:
    try:
        return load_result(wait_for(future))
    except WorkerDied:
        return do(task)


def dump_result(result: Any) -> bytes:
    """Return a result for `load_result` in another process.

    Results of access logs repeat the same names. Compressed to a tenth of their size, the results
    of all tasks of a job fit into Spark's memory.
    """
    return zlib.compress(pickle.dumps(result), 1)


def load_result(result: bytes) -> Any:
    """Return the result that `dump_result` received."""
    # Loading leaves no garbage, and looking for it takes longer than loading.
    enabled = gc.isenabled()
    gc.disable()
    try:
        # Pickled by our own code, from our own objects.
        return pickle.loads(zlib.decompress(result))  # noqa: S301
    finally:
        if enabled:
            gc.enable()


def _by_name(each: FoundLog) -> bool:
    """Return True for a table that only the session can find."""
    return each.location.kind is LocationKind.NAME


_Tables = tuple[list[FoundLog], dict[str, ReadUpTo]]
"""the tables of a task, with what earlier runs counted"""


def _task(tables: list[FoundLog], counted: Mapping[str, ReadUpTo]) -> _Tables:
    places = map(place_of, tables)
    # Executors have no token of a catalog.
    tables = [each._replace(address=None) for each in tables]
    return tables, {place: counted[place] for place in places if place in counted}


def _read(options: LogOptions, task: _Tables) -> list[TableUses | FailedTable]:
    """Read tables on an executor."""
    tables, counted = task
    return list(read_here(tables, options._replace(counted=counted)))
