"""Verifies a table that a client wrote to, with Spark and with the log reader."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaproto.certification.compare import describe_row_difference
from deltaproto.certification.fixtures.case import ReferenceTable, Row
from deltaproto.certification.fixtures.edit import remove_commits
from deltaproto.certification.fixtures.make import spark_rows
from deltaproto.certification.observe import (
    ObservedVersion,
    are_rows_untouched,
    commits_since,
    describe_state_changes,
    find_violations,
    observe_newest,
    read_live_rows,
)
from deltaproto.certification.operation import expected_changes, rows_after
from deltaproto.clients.measurement import ResultColumn
from deltaproto.counts import counted
from deltaproto.errors import TableError
from deltaproto.tables.engine_errors import spark_first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""Settings for tables with a few rows: one partition is enough, generating code for a plan takes
longer than interpreting it, and checking a stage's size first is a separate job."""
SPARK = {
    **FEW_ROWS,
    "spark.driver.extraJavaOptions": "-Djdk.lang.Process.launchMechanism=VFORK -XX:+UseSerialGC"
    " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    "spark.databricks.delta.delta.log.cacheSize": "8",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
}
"""Settings for a session that reads hundreds of small tables once each: optimizations that cost
more than they save are off, and nothing is cached that is not read again."""
_ROW_IDS = "delta.rowTracking.materializedRowIdColumnName"
_FEED = (ResultColumn.DELETE, ResultColumn.UPDATE, ResultColumn.MERGE, ResultColumn.OVERWRITE)
_ROWS_STAY = (ResultColumn.CONFIGURE, ResultColumn.VACUUM, ResultColumn.OPTIMIZE)
_SAME = {"update_preimage": "delete", "update_postimage": "insert"}


class WriteVerifier:
    """Verifies writes. Spark is the authority on rows, the log reader on everything else.

    If only a table's protocol matters, its rows are read from the files in the log. After a write
    that changed no file, they are not read again.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._row_ids: dict[str, dict[int, int]] = {}

    def faults(
        self,
        case: ReferenceTable,
        operation: ResultColumn,
        before: ObservedVersion,
        table: Path,
        source: Path,
    ) -> list[str]:
        """Describe what is wrong with a table after a successful write; empty if nothing is.

        Args:
            source: the table before the write.
        """
        return list(self._faults(case, operation, before, table, source))

    def committed(self, before: ObservedVersion, table: Path) -> bool:
        """Return True if a failed client has left a commit, or a log that cannot be read."""
        try:
            return observe_newest(table).version != before.version
        except TableError:
            return True

    def _faults(
        self,
        case: ReferenceTable,
        operation: ResultColumn,
        before: ObservedVersion,
        table: Path,
        source: Path,
    ) -> Iterator[str]:
        try:
            after = observe_newest(table)
        except TableError as error:
            yield f"the log is damaged: {error.message}"
            return
        commits = commits_since(table, before.version)
        yield from find_violations(operation, before, after, commits)
        if operation is ResultColumn.CHECKPOINT:
            yield from self._checkpoint(case, before, after, table)
            return
        if operation in _ROWS_STAY and are_rows_untouched(before, after, commits, source, table):
            return
        yield from self._rows(case, operation, table)
        if operation in _FEED and before.on("delta.enableChangeDataFeed"):
            yield from self._changes(case, operation, before, table)
        # Row ids can only be read with the name of their column.
        if before.on("delta.enableRowTracking") and _ROW_IDS in before.configuration:
            yield from self._ids_kept(case, operation, table, source)

    def _rows(self, case: ReferenceTable, operation: ResultColumn, table: Path) -> Iterator[str]:
        try:
            found = self._read(case, table)
        except Exception as error:
            yield f"Spark cannot read the table any more: {spark_first_line(error)}"
            return
        wanted = [_bytes_only(row) for row in rows_after(case, operation)]
        if difference := describe_row_difference(case, [_bytes_only(row) for row in found], wanted):
            yield difference

    def _read(self, case: ReferenceTable, table: Path) -> list[dict[str, Any]]:
        # Only files and rows are used there, and Spark does not support each of those features.
        if case.brief and (rows := read_live_rows(table)) is not None:
            # A column that is missing from every file is null.
            return [{**dict.fromkeys(name for name, _ in case.schema), **row} for row in rows]
        return spark_rows(self._spark, table)

    def _changes(
        self, case: ReferenceTable, operation: ResultColumn, before: ObservedVersion, table: Path
    ) -> Iterator[str]:
        try:
            feed = (
                self._spark.read.format("delta")
                .option("readChangeFeed", "true")
                .option("startingVersion", before.version + 1)
                .load(str(table))
                .select("_change_type", "id")
                .collect()
            )
        except Exception as error:
            yield f"the change data feed cannot be read: {spark_first_line(error)}"
            return
        found = sorted((_SAME.get(kind, kind), number) for kind, number in feed)
        wanted = sorted(
            (_SAME.get(kind, kind), number) for kind, number in expected_changes(case, operation)
        )
        if found != wanted:
            yield (
                f"the change data feed has {counted(len(found), 'change')} instead of {len(wanted)}"
                if len(found) != len(wanted)
                else "the change data feed has other changes"
            )

    def _ids_kept(
        self, case: ReferenceTable, operation: ResultColumn, table: Path, source: Path
    ) -> Iterator[str]:
        try:
            if case.name not in self._row_ids:
                self._row_ids[case.name] = self._ids(source)
            ids = self._ids(table)
        except Exception as error:
            yield f"the row ids cannot be read: {spark_first_line(error)}"
            return
        if len(set(ids.values())) != len(ids) or None in ids.values():
            yield "two rows have the same row id, or one has none"
        known = self._row_ids[case.name]
        rows = {row["id"]: row for row in case.rows}
        stayed = {row["id"] for row in rows_after(case, operation) if rows.get(row["id"]) == row}
        changed = [n for n in sorted(stayed & ids.keys()) if ids[n] != known.get(n)]
        if changed and operation is not ResultColumn.OVERWRITE:
            have = counted(len(changed), "unchanged row has", "unchanged rows have")
            yield f"{have} other row ids"

    def _ids(self, table: Path) -> dict[int, int]:
        found = self._spark.sql(f"select id, _metadata.row_id from delta.`{table}`").collect()
        return {row[0]: row[1] for row in found}

    def _checkpoint(
        self, case: ReferenceTable, before: ObservedVersion, after: ObservedVersion, table: Path
    ) -> Iterator[str]:
        newest = max(after.checkpoints, default=-1)
        if newest < before.version:
            yield "there is no new checkpoint"
            return
        # Data missing from a checkpoint only matters after the commits before it were deleted.
        later = table.with_name(f"{table.name}.later")
        shutil.copytree(table, later)
        remove_commits(later, newest)
        try:
            yield from (
                f"in the checkpoint {what}"
                for what in describe_state_changes(after, observe_newest(later))
            )
        except TableError as error:
            yield f"the checkpoint cannot be read: {error.message}"
            return
        for difference in self._rows(case, ResultColumn.ROWS, later):
            yield f"read from the checkpoint: {difference}"


def _bytes_only(row: Row) -> Mapping[str, Any]:
    """Decode variants from their bytes."""
    return {
        name: value["json"] if isinstance(value, Mapping) and "json" in value else value
        for name, value in row.items()
    }
