"""Evaluates a policy for the tables of one scan on Spark's executors.

`verdicts` and `findings` are DataFrames to write, join and count; their rows never reach the
driver. `checked` returns everything through the driver, one partition in memory at a time.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from deltaproto.fleet.evaluate import PolicyTally, check_error_row, check_row
from deltaproto.fleet.read_inventory import read_error_rows, tables_query
from deltaproto.fleet.rows_builder import arrow_array
from deltaproto.fleet.scan_history import PastScan
from deltaproto.fleet.schemas import columns_ddl
from deltaproto.fleet.spark_questions import SparkInventoryQueries
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.table_check import TableCheck

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


# Policies and clients contain mapping proxies, and executors return them in results.
copyreg.pickle(MappingProxyType, lambda mapping: (_read_only, (dict(mapping),)))

_TOGETHER = 1000
"""number of tables whose equal verdicts are sent only once"""
_VERDICT = ("location", "table", "client", "version", "path", "access", "verdict", "reason")
_FINDING = (
    "location",
    "table",
    "rule",
    "severity",
    "message",
    "hint",
    "feature",
    "client",
    "evidence",
)
Batches = Iterator["pa.RecordBatch"]


class SparkChecks:
    """Checks the tables of one scan against one policy."""

    def __init__(self, queries: SparkInventoryQueries, scan: PastScan, checker: Checker) -> None:
        self._queries, self._scan, self._checker = queries, scan, checker

    def verdicts(self) -> DataFrame:
        """Return one row per table, client and access: what the client can do, and why not."""
        return self._map_tables(
            _rows_mapper(self._checker, _verdict_schema, _verdict_rows), _verdict_schema()
        )

    def findings(self) -> DataFrame:
        """Return one row per finding of the policy, including those of `inspect`."""
        return self._map_tables(
            _rows_mapper(self._checker, _finding_schema, _finding_rows), _finding_schema()
        )

    def tally(self) -> PolicyTally:
        """Return counts computed on the executors, including tables the scan could not read."""
        import pyarrow as pa

        tally = PolicyTally()
        counts = pa.schema([pa.field("counts", pa.string()), pa.field("use", pa.binary())])
        for row in self._map_tables(_tally_mapper(self._checker), counts).collect():
            tally.merge(row["counts"])
            # Pickled by our own code, from our own objects.
            self._checker.use.merge(pickle.loads(row["use"]))  # noqa: S301
        for each in self._checker.with_policy(check for _, check in self._unreadable()):
            tally.add(each)
        return tally

    def checked(self, more: Iterable[str] = ()) -> Iterator[tuple[Mapping[str, Any], TableCheck]]:
        """Yield every table with its check, followed by those that the scan could not read.

        Args:
            more: columns that the rows must have besides location and table.
        """
        import pyarrow as pa

        packed = pa.schema([pa.field("packed", pa.binary())])
        wanted = ("location", "table", *more)
        found = self._map_tables(_pickle_mapper(self._checker, wanted), packed, more)
        for row in found.toLocalIterator():
            # Pickled by our own code, from our own objects.
            yield from pickle.loads(row["packed"])  # noqa: S301
        yield from self._unreadable()

    def _unreadable(self) -> Iterator[tuple[Mapping[str, Any], TableCheck]]:
        for row in read_error_rows(self._queries, self._scan):
            yield row, check_error_row(row, self._checker)

    def _map_tables(
        self, mapper: Callable[[Batches], Batches], columns: pa.Schema, more: Iterable[str] = ()
    ) -> DataFrame:
        query = tables_query(self._queries, self._scan.scan_id, more=more)
        return self._queries.ask(query).mapInArrow(mapper, columns_ddl(columns))


def _check_batch(checker: Checker, batch: pa.RecordBatch) -> Iterator[TableCheck]:
    return (check_row(row, checker) for row in batch.to_pylist())


def _rows_mapper(
    checker: Checker,
    schema: Callable[[], pa.Schema],
    rows_of: Callable[[TableCheck], Iterable[tuple[Any, ...]]],
) -> Callable[[Batches], Batches]:
    def map_batches(batches: Batches) -> Batches:
        import pyarrow as pa

        columns = schema()
        for batch in batches:
            rows = [row for each in _check_batch(checker, batch) for row in rows_of(each)]
            values = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
            arrays = [arrow_array(v, field.type) for v, field in zip(values, columns, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)

    return map_batches


def _tally_mapper(checker: Checker) -> Callable[[Batches], Batches]:
    def map_batches(batches: Batches) -> Batches:
        import pyarrow as pa

        tally = PolicyTally()
        for batch in batches:
            for each in _check_batch(checker, batch):
                tally.add(each)
                checker.observe(each)
        use = pa.array([pickle.dumps(checker.use)], pa.binary())
        yield pa.RecordBatch.from_pydict({"counts": [tally.dumped()], "use": use})

    return map_batches


def _pickle_mapper(checker: Checker, sent: tuple[str, ...]) -> Callable[[Batches], Batches]:
    def packed(batches: Batches) -> Batches:
        import pyarrow as pa

        for batch in batches:
            found = [
                ({column: row[column] for column in sent}, check_row(row, checker))
                for row in batch.to_pylist()
            ]
            parts = [
                pickle.dumps(found[start : start + _TOGETHER])
                for start in range(0, len(found), _TOGETHER)
            ]
            yield pa.RecordBatch.from_pydict({"packed": pa.array(parts, pa.binary())})

    return packed


@cache
def _verdict_schema() -> pa.Schema:
    import pyarrow as pa

    text = [pa.field(name, pa.string()) for name in _VERDICT]
    return pa.schema([*text, pa.field("because", pa.list_(pa.string()))])


@cache
def _finding_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.string()) for name in _FINDING])


def _verdict_rows(checked: TableCheck) -> Iterator[tuple[Any, ...]]:
    for judged in checked.verdicts:
        verdict = judged.verdict
        yield (
            checked.location,
            checked.table,
            verdict.client,
            verdict.version,
            verdict.path,
            str(verdict.access),
            str(verdict.verdict),
            verdict.reason or None,
            list(verdict.because),
        )


def _finding_rows(checked: TableCheck) -> Iterator[tuple[Any, ...]]:
    for finding in checked.findings:
        values = [getattr(finding, name) for name in _FINDING[2:]]
        yield (checked.location, checked.table, *(None if v is None else str(v) for v in values))
