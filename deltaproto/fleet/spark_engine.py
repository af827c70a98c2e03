"""Scans as Spark jobs: the same reader on the executors, the inventory written by Spark.

Each job covers a few thousand table names, spread over the executors, which read logs as `look`
does. Its results are one commit in a Delta table that belongs to the scan, the staging, so that
a failed scan resumes after its last job. At the end, each of the inventory's tables gets one
commit. Only names and counts pass through the driver, and what is compared with catalogs.

Uses only public DataFrame API and SQL, so that it works over Spark Connect, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from deltaproto.errors import UsageError
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.catalog_rows import CatalogFinding, finding_rows, findings_of_row
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.scan import Tally
from deltaproto.fleet.scan_table import ReadSettings, TableScanner
from deltaproto.fleet.schemas import (
    KEYS,
    OTHER_NAMES,
    Inventory,
    columns_ddl,
    inventory_schema,
    inventory_table_sql,
    staged_schema,
)
from deltaproto.fleet.staging import SPARK_STAGING_FOLDER, is_running
from deltaproto.interrupts import wait_for
from deltaproto.redaction import Redactor
from deltaproto.sql.quoting import quote_identifier
from deltaproto.tables.catalogs.interface import CatalogTable
from deltaproto.tables.engine_errors import (
    is_connection_lost,
    repeat_on_conflict,
    spark_message,
)
from deltaproto.tables.session import expect_rows, remove_folder, sql_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_JOB = 20_000
"""number of tables per job"""
_TASK = 200
"""minimum number of tables per task"""
_MOST_TASKS = 2_000
_NAMES = "table string, path string, uri string, catalog string, type string"
_OTHER_NAMES = "location string, preferred string, others array<string>"
# The lowest protocol, regardless of session defaults: every client can read the inventory.
_LOWEST_PROTOCOL = (
    "'delta.minReaderVersion'='1','delta.minWriterVersion'='2',"
    "'delta.enableDeletionVectors'='false','delta.enableRowTracking'='false',"
    "'delta.columnMapping.mode'='none'"
)


class SparkEngine:
    """Reads tables on the executors of one session, and writes the inventory with it.

    Args:
        inventory: folder or URI, as the session reaches it.
        resumes: whether the scan has staged rows already.
    """

    def __init__(
        self, session: SparkSession, inventory: str, settings: ReadSettings, *, resumes: bool
    ) -> None:
        self._session, self._inventory = session, inventory.rstrip("/")
        self._settings, self.resumes = settings, resumes
        self._staging = f"{self._inventory}/{SPARK_STAGING_FOLDER}/{settings.scan_id}"

    def scan(self, tables: Iterable[DiscoveredTable], tasks: int | None) -> Iterator[int]:
        """Stage the results of the tables; yield the number of tables after each job.

        Raises:
            UsageError: when Spark cannot read them or write the staging.
        """
        source = iter(tables)
        while chunk := list(islice(source, _JOB)):
            names = [
                (
                    *(found.table, found.location, found.uri, found.catalog),
                    None if found.entry is None else found.entry.type,
                )
                for found in chunk
            ]
            expect_rows(self._session, len(names))
            frame = self._session.createDataFrame(names, _NAMES)
            if self.resumes:
                done = self._staged().selectExpr("location as uri")
                frame = frame.join(done, "uri", "left_anti")
            spread = tasks or min(max(len(names) // _TASK, 1), _MOST_TASKS)
            seen = frame.repartition(spread).mapInArrow(
                _reading_mapper(self._settings), columns_ddl(staged_schema())
            )
            self._append(seen, self._staging, ())
            yield len(chunk)

    def stage(self, batch: pa.RecordBatch) -> None:
        """Stage rows built on the driver, each once."""
        frame = self._session.createDataFrame(batch.to_pylist(), columns_ddl(staged_schema()))
        if self.resumes:
            done = self._staged().select("location")
            frame = frame.join(done, "location", "left_anti").select(frame.columns)
        self._append(frame, self._staging, ())

    def publish(
        self,
        scan: Mapping[str, Any],
        tally: Tally,
        names: Sequence[tuple[str, tuple[str, ...]]] = (),
        compared: Sequence[CatalogFinding] = (),
    ) -> None:
        """Make the scan visible: its rows first, then its row in `scans`; each once.

        Args:
            tally: counts of all staged rows. A table that gets no rows gets no commit.
            names: URI and names of the tables with several names, the preferred one first.
            compared: findings that no staged row has.

        Raises:
            UsageError: when the inventory cannot be written.
        """
        rows_of = {
            Inventory.SCANS: 0,
            Inventory.TABLES: tally.tables,
            Inventory.FEATURES: tally.features.total(),
            Inventory.FINDINGS: tally.findings.total(),
            Inventory.ERRORS: tally.errors.total(),
        }
        # Each table is a few small jobs and a commit, and mostly waits: for a plan, or a file.
        with ThreadPoolExecutor(len(rows_of)) as pool:
            work = [
                pool.submit(self._publish, name, count, names, compared)
                for name, count in rows_of.items()
            ]
            for done in work:
                wait_for(done)
        row = tuple(scan[column] for column in inventory_schema(Inventory.SCANS).names)
        frame = self._session.createDataFrame([row], columns_ddl(inventory_schema(Inventory.SCANS)))
        self._append(frame, self._uri(Inventory.SCANS), self._once(Inventory.SCANS))

    def _publish(
        self,
        name: Inventory,
        count: int,
        names: Sequence[tuple[str, tuple[str, ...]]],
        compared: Sequence[CatalogFinding],
    ) -> None:
        self._create(name)
        if not count:
            return
        staged, keys = self._with_all_names(names), map(quote_identifier, KEYS)
        match name:
            case Inventory.TABLES:
                rows = staged.where("error IS NULL").select(*inventory_schema(name).names)
            case Inventory.ERRORS:
                # Null is what scans of older releases have, which stored no names.
                known = f"coalesce({OTHER_NAMES}, array()) as {OTHER_NAMES}"
                rows = staged.where("error IS NOT NULL").selectExpr(*keys, "error.*", known)
            case _:
                rows = staged.selectExpr(*keys, f"inline({name})")
        if name is Inventory.FINDINGS and compared:
            more = [tuple(row.values()) for row in finding_rows(self._settings.scan_id, compared)]
            rows = rows.union(
                self._session.createDataFrame(more, columns_ddl(inventory_schema(name)))
            )
        self._append(rows, self._uri(name), self._once(name))

    def clear(self) -> None:
        """Delete the staging, after everything was added to the inventory."""
        if remove_folder(self._session, self._staging):
            return
        # Spark Connect cannot remove a folder; a few files of its log remain.
        name = f"delta.{quote_identifier(self._staging)}"
        key = "spark.databricks.delta.retentionDurationCheck.enabled"
        before = self._session.conf.get(key, None)
        with suppress(Exception):
            self._session.conf.set(key, "false")
            sql_rows(self._session, f"DELETE FROM {name}")  # noqa: S608  quoted
            sql_rows(self._session, f"VACUUM {name} RETAIN 0 HOURS")
        if before is None:
            self._session.conf.unset(key)
        else:
            self._session.conf.set(key, before)

    def tally(self) -> Tally:
        """Return counts of all staged rows, computed on the executors."""
        tally = Tally()
        rows = self._staged().mapInArrow(_tally_batches, "counts string").collect()
        for row in rows:
            tally.merge(row["counts"])
        return tally

    def partition_columns(self) -> Iterator[tuple[str, list[str] | None]]:
        """Yield the location and partition columns of each staged table; None if unreadable."""
        rows = self._staged().select("location", "partition_columns").collect()
        return ((row["location"], row["partition_columns"]) for row in rows)

    def catalog_findings(self, entries: CatalogEntries) -> list[CatalogFinding]:
        """Return the findings that compare the staged tables with their catalog entries."""
        if not entries:
            return []
        from deltaproto.fleet.reconcile import COLUMNS, Reconciliation

        compared = Reconciliation(entries)
        rows = self._staged().selectExpr(
            *map(quote_identifier, COLUMNS), "error.code as code", "size(findings) as own"
        )
        return [
            found
            for row in rows.toLocalIterator()
            if compared.concerns(row["location"])
            for found in findings_of_row(compared, row.asDict(), max(row["own"] or 0, 0))
        ]

    def _staged(self) -> DataFrame:
        return self._session.read.format("delta").load(self._staging)

    def _with_all_names(self, names: Sequence[tuple[str, tuple[str, ...]]]) -> DataFrame:
        """Return the staged rows with the preferred name of each table, and its other names."""
        staged = self._staged()
        if not names:
            return staged
        rows = [(uri, preferred, others) for uri, (preferred, *others) in names]
        frame = self._session.createDataFrame(rows, _OTHER_NAMES)
        columns = {name: quote_identifier(name) for name in staged.columns}
        columns["table"] = "coalesce(preferred, `table`) as `table`"
        columns[OTHER_NAMES] = f"others as {OTHER_NAMES}"
        return staged.join(frame, "location", "left").selectExpr(*columns.values())

    def _uri(self, name: Inventory) -> str:
        return f"{self._inventory}/{name}"

    def _once(self, name: Inventory) -> tuple[tuple[str, str], ...]:
        # Delta skips an append whose application and version it has already committed.
        return (("txnAppId", f"deltaproto-{self._settings.scan_id}-{name}"), ("txnVersion", "1"))

    def _create(self, name: Inventory) -> None:
        columns = columns_ddl(inventory_schema(name))
        create = (
            f"CREATE TABLE IF NOT EXISTS {inventory_table_sql(self._inventory, name)} ({columns}) "
            f"USING delta PARTITIONED BY (scan_id) TBLPROPERTIES ({_LOWEST_PROTOCOL})"
        )
        with suppress(Exception):
            sql_rows(self._session, create)
            return
        # Another scan may have created it at the same time; then it exists now.
        self._do(lambda: sql_rows(self._session, create))

    def _append(self, frame: DataFrame, uri: str, options: tuple[tuple[str, str], ...]) -> None:
        writer = frame.write.format("delta").mode("append").option("mergeSchema", "true")
        for key, value in options:
            writer = writer.option(key, value)
        self._do(lambda: repeat_on_conflict(lambda: writer.save(uri)))

    def _do(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except Exception as error:
            if is_connection_lost(spark_message(error)):
                raise
            raise UsageError(
                f"Spark cannot scan into {self._inventory}: {Redactor()(find_cause(error))}",
                "check that Spark may write there, and that its executors have deltaproto",
            ) from None


def find_cause(error: Exception) -> str:
    """Return the cause of an error, even if it was raised in Python on an executor."""
    text = spark_message(error) + "\n" + str(error)
    raised = re.findall(r"^(?:\w+\.)*\w+(?:Error|Exception): .+$", text, re.MULTILINE)
    if "Python worker" in text and raised:
        return str(raised[-1])
    return spark_message(error).strip().partition("\n")[0]


def find_unfinished_scans(
    session: SparkSession, inventory: str, marked: Iterable[str] = ()
) -> dict[str, bool]:
    """Return the unpublished scans, newest first, and whether rows of them are staged.

    Ignores scans that another process on this machine is running.

    Args:
        marked: ids of scans that were begun, with or without staged rows.
    """
    where = inventory.rstrip("/")
    # Spark ignores names with an underscore unless the path contains them literally.
    first = f"{where}/{SPARK_STAGING_FOLDER}/*/_delta_log/{0:020}.json"
    try:
        files = session.read.format("binaryFile").load(first).select("path").collect()
    except Exception:
        files = []
    staged_ids = {row["path"].split("/")[-3] for row in files}
    unfinished = {each for each in (*staged_ids, *marked) if not is_running(where, each)}
    with suppress(Exception):
        scans = session.read.format("delta").load(f"{where}/{Inventory.SCANS}")
        unfinished -= {row["scan_id"] for row in scans.select("scan_id").collect()}
    return {each: each in staged_ids for each in sorted(unfinished, reverse=True)}


def _reading_mapper(
    settings: ReadSettings,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        looker = TableScanner(settings)
        for batch in batches:
            rows = batch.to_pylist()
            if rows:
                yield looker.scan([_discovered(row) for row in rows])

    return read


def _discovered(row: Mapping[str, Any]) -> DiscoveredTable:
    name, path, type_ = row["table"], row["path"], row["type"]
    entry = None if type_ is None else CatalogTable(name, path, type_)
    return DiscoveredTable(name, path, entry=entry, catalog=row["catalog"])


def _tally_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    tally = Tally()
    for batch in batches:
        tally.add(batch.cast(staged_schema()))
    yield pa.RecordBatch.from_pydict({"counts": [tally.dumped()]})
