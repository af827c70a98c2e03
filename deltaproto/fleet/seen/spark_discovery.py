"""`discover` on Spark: the executors do the tasks of `log_tasks`.

Uses only public DataFrame API, so that it works over Spark Connect, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from deltaproto.errors import DeltaprotoError, UsageError
from deltaproto.fleet.seen.log_tasks import Do, LogTaskReader, load_result
from deltaproto.fleet.seen.requests import FileToCount, LogCounter, TableMatcher
from deltaproto.fleet.seen.system_tables import SystemTable
from deltaproto.fleet.spark_engine import find_cause
from deltaproto.redaction import Redactor
from deltaproto.tables.engine_errors import is_connection_lost, lost_engine_error, spark_message
from deltaproto.tables.session import open_query

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

Batches = Iterator["pa.RecordBatch"]
Mapper = Callable[[Batches], Batches]


class SparkLogReader(LogTaskReader):
    """Reads logs on the executors of one session.

    All methods raise UsageError when the executors fail, and EngineError when Spark disconnects.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def count_rows(
        self,
        each: FileToCount,
        total: LogCounter,
        matcher: TableMatcher,
        since: int | None,
        seen: Callable[[int], None],
    ) -> None:
        """Add the requests of a table; the executors count those that the session finds by name."""
        if (query := each.file.query) is None:
            super().count_rows(each, total, matcher, since, seen)
            return
        part = total.empty()
        sent = each._replace(file=each.file._replace(requests=partial(iter, ()), query=None))
        mapper = _rows_mapper(partial(_count_batches, matcher, since, part, sent, query.table))
        for done in self._results(lambda: open_query(self._session, query.sql), mapper):
            part.include(done)
        # A table without rows is read to its end as well.
        part.files = [each.file.key] if each.counts else []
        total.include(part)
        seen(total.lines)

    def run(self, tasks: Sequence[Any], do: Do) -> Iterator[Any]:
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
        """Yield rows, of which one partition is in memory; all tasks run at the same time."""
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

    return pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})


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
