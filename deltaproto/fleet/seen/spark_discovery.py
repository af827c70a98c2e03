"""`discover` on Spark: the executors read the logs of tables and access logs as this machine does.

The driver lists tables and files, and splits them into tasks of similar size. It adds up the
results of the tasks in the order of tables and files, so the result is the same as in one process.
Besides the result, the driver has the results of one task in memory.

Uses only public DataFrame API, so that it works over Spark Connect, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from deltaproto.errors import DeltaprotoError, TableError, UsageError
from deltaproto.fleet.seen.collect import LogOptions, TableUses
from deltaproto.fleet.seen.find_logs import FailedTable, FoundLog
from deltaproto.fleet.seen.log_files import LogFile, RowsQuery, Span, has_plain_lines
from deltaproto.fleet.seen.requests import FileToCount, LogCounter
from deltaproto.fleet.seen.system_tables import SystemTable
from deltaproto.fleet.seen.table_matcher import TableMatcher
from deltaproto.fleet.seen.table_tasks import JOB, dump_result, load_result, read_in_tasks
from deltaproto.fleet.spark_engine import find_cause
from deltaproto.redaction import Redactor
from deltaproto.tables.engine_errors import is_connection_lost, lost_engine_error, spark_message
from deltaproto.tables.session import open_query

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

_FILES = 500
"""files of a task, at most"""
_BYTES = 128 << 20
"""bytes of the files of a task; larger files of plain lines are read in parts"""
_PACKED = (".gz", ".parquet")
_PACKING = 10
"""how many times larger the contents of compressed files are, about"""
Batches = Iterator["pa.RecordBatch"]
Mapper = Callable[[Batches], Batches]


class SparkLogReader:
    """Reads logs on the executors of one session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def read_tables(
        self, found: Iterable[FoundLog | FailedTable], options: LogOptions
    ) -> Iterator[TableUses | FailedTable]:
        """Yield what each table's log shows, in their order.

        Tables that a catalog of the session names are read on the driver, which has the session.

        Raises:
            UsageError: when the executors fail.
            EngineError: when Spark disconnects.
        """
        yield from read_in_tasks(found, options, self._run)

    def count_files(
        self,
        files: Iterable[FileToCount],
        total: LogCounter,
        matcher: TableMatcher,
        since: int | None,
        seen: Callable[[int], None],
    ) -> None:
        """Add the requests of files to a counter. Raises like `read_tables`."""
        source = iter(_split_up(files))
        spans: LogCounter | None = None
        while chunk := list(islice(source, JOB)):
            sent = [task for task in chunk if task[0].file.requests is None]
            done = self._run(sent, partial(_count, matcher, since, total.empty()))
            for task in chunk:
                if task[0].file.query is not None:
                    self._count_rows(task[0], task[0].file.query, total, matcher, since)
                    seen(total.lines)
                    continue
                if task[0].file.requests is not None:
                    total.add(task[0], matcher, since, seen)
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

    def _count_rows(
        self,
        each: FileToCount,
        query: RowsQuery,
        total: LogCounter,
        matcher: TableMatcher,
        since: int | None,
    ) -> None:
        """Add the requests of a table that the session finds by name."""
        part = total.empty()
        sent = each._replace(file=each.file._replace(requests=partial(iter, ()), query=None))
        mapper = _rows_mapper(partial(_count_batches, matcher, since, part, sent, query.table))
        for done in self._results(lambda: open_query(self._session, query.sql), mapper):
            part.include(done)
        # A table without rows is read to its end as well.
        part.files = [each.file.key] if each.counts else []
        total.include(part)

    def _run(self, tasks: Sequence[Any], do: Callable[[Any], Any]) -> Iterator[Any]:
        """Yield the result of `do` for each task, in their order. Raises like `read_tables`."""
        if tasks:
            count, packed = len(tasks), [pickle.dumps(task) for task in tasks]
            # Each partition has one number: that of its task.
            numbers = partial(self._session.range, 0, count, 1, count)
            yield from self._results(numbers, _tasks_mapper(packed, do))

    def _results(self, rows: Callable[[], DataFrame], mapper: Mapper) -> Iterator[Any]:
        try:
            frame = rows().mapInArrow(mapper, "result binary")
            for row in self._iterated(frame):
                yield load_result(row["result"])
        except DeltaprotoError:
            raise
        except Exception as error:
            if is_connection_lost(spark_message(error)):
                raise lost_engine_error(error) from None
            raise UsageError(
                f"Spark cannot read the logs: {Redactor()(find_cause(error))}",
                "check that its executors have deltaproto, and enough memory",
            ) from None

    def _iterated(self, frame: DataFrame) -> Iterator[Row]:
        """Yield rows with one partition in memory at a time; all tasks run in parallel."""
        if getattr(self._session, "_jvm", None) is None:
            # Spark Connect runs all tasks, and streams their rows. A server may refuse to persist.
            yield from frame.toLocalIterator()
            return
        frame = frame.persist()
        try:
            # The iterator runs one task at a time, so all of them run before.
            frame.count()
            yield from frame.toLocalIterator()
        finally:
            frame.unpersist()


def _tasks_mapper(tasks: list[bytes], do: Callable[[Any], Any]) -> Mapper:
    def mapped(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                # Pickled by our own code, from our own objects.
                yield _packed(do(pickle.loads(tasks[number])))  # noqa: S301

    return mapped


def _rows_mapper(do: Callable[[Batches], Any]) -> Mapper:
    def mapped(batches: Batches) -> Batches:
        yield _packed(do(batches))

    return mapped


def _packed(result: Any) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"result": pa.array([dump_result(result)], pa.binary())})


def _count(
    matcher: TableMatcher, since: int | None, empty: LogCounter, files: Iterable[FileToCount]
) -> LogCounter:
    """Count files, or a part of one, on an executor."""
    counter = empty.empty()
    for each in files:
        counter.add(each, matcher, since)
    return counter


def _count_batches(
    matcher: TableMatcher,
    since: int | None,
    empty: LogCounter,
    each: FileToCount,
    table: SystemTable,
    batches: Batches,
) -> LogCounter:
    """Count the rows of one partition of a table on an executor."""
    counter = empty.empty()
    rows = (row for batch in batches for row in batch.to_pylist())
    counter.add_requests(each, table.parsed(rows), matcher, since)
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
    """Yield the parts in which to read a large file; nothing for a file that is read as a whole."""
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
