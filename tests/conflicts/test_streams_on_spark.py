"""Streaming reads of a table while its protocol and metadata change, on a real Spark."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Change(NamedTuple):
    properties: str
    """what the table has before"""
    statement: str
    survives: bool
    """the running query goes on"""
    restarts: bool = True
    """a query that failed goes on after a restart"""
    since: str = "3.1"
    """the first Delta Spark whose statement does so"""


VECTORS = "'delta.enableDeletionVectors'='true'"
MAPPED = "'delta.columnMapping.mode'='name'"
CHANGES = {
    "set-property": Change("'a'='1'", "set tblproperties ('team'='a')", True),
    "enable-vectors": Change("'a'='1'", f"set tblproperties ({VECTORS})", True),
    "enable-change-feed": Change(
        "'a'='1'", "set tblproperties ('delta.enableChangeDataFeed'='true')", True
    ),
    "enable-mapping": Change("'a'='1'", f"set tblproperties ({MAPPED})", True),
    "add-feature": Change(
        "'a'='1'", "set tblproperties ('delta.feature.v2Checkpoint'='supported')", True
    ),
    "drop-vectors": Change(VECTORS, "drop feature deletionVectors", True, since="4.0"),
    "add-column": Change("'a'='1'", "add columns (z int)", False),
    "rename-column": Change(MAPPED, "rename column s to text", False, restarts=False),
    "drop-column": Change(MAPPED, "drop column s", False, restarts=False),
    "drop-mapping": Change(
        MAPPED, "drop feature columnMapping", False, restarts=False, since="4.0"
    ),
}

ROW = ["2", "'b'", "3"]


class Query:
    """A streaming read that is fed batch by batch."""

    def __init__(self, spark: SparkSession, source: Path, work: Path, *, tracked: bool) -> None:
        self._spark, self._source, self._work, self._tracked = spark, source, work, tracked
        self._running: Any = None

    def start(self) -> None:
        reader = self._spark.readStream.format("delta")
        if self._tracked:
            reader = reader.option("schemaTrackingLocation", f"{self._work}/checkpoint/schema")
        self._running = (
            reader.load(str(self._source))
            .writeStream.format("noop")
            .option("checkpointLocation", f"{self._work}/checkpoint")
            .start()
        )

    def survives(self) -> bool:
        """True when the query takes everything that is there without failing."""
        from pyspark.errors import StreamingQueryException

        try:
            self._running.processAllAvailable()
        except StreamingQueryException:
            return False
        return True

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table of one row for all properties that one has before a change."""
    folder, found = tmp_path_factory.mktemp("made"), {}
    for properties in {change.properties: None for change in CHANGES.values()}:
        found[properties] = path = folder / str(len(found))
        spark.sql(
            f"create table delta.`{path}` (id bigint, s string) using delta "
            f"tblproperties ({properties})"
        )
        spark.sql(f"insert into delta.`{path}` values (1, 'a')")
    return found


def changes(names: Iterable[str]) -> list[ParameterSet]:
    """Tables and the names of changes to them."""
    return [
        pytest.param(CHANGES[n], n, id=n, marks=needs_delta(CHANGES[n].since, CHANGES[n].statement))
        for n in names
    ]


@pytest.fixture
def source(made: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    change: Change = request.param
    return shutil.copytree(made[change.properties], tmp_path / "source")


@pytest.mark.parametrize(("source", "name"), changes(CHANGES), indirect=["source"])
def test_a_plain_read_over_each_change(
    source: Path, name: str, spark: SparkSession, tmp_path: Path
) -> None:
    change = CHANGES[name]
    query = Query(spark, source, tmp_path, tracked=False)
    query.start()
    try:
        assert query.survives()
        spark.sql(f"alter table delta.`{source}` {change.statement}")
        columns = len(spark.table(f"delta.`{source}`").columns)
        spark.sql(f"insert into delta.`{source}` values ({', '.join(ROW[:columns])})")
        assert query.survives() is change.survives
        if not change.survives:
            query.stop()
            query.start()
            assert query.survives() is change.restarts
    finally:
        query.stop()


# How often a schema-tracked read has to be started again, and whether it must be told to go on.
TRACKED = {
    "set-property": 0,
    "enable-vectors": 1,
    "enable-change-feed": 1,
    "enable-mapping": 1,
    "add-feature": 1,
    "drop-vectors": 2,
    "add-column": 1,
    "rename-column": 1,
    "drop-column": 1,
    "drop-mapping": 2,
}
UNSAFE = ("rename-column", "drop-column", "drop-mapping")
GO_ON = "spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop"


@pytest.mark.parametrize(("source", "name"), changes(TRACKED), indirect=["source"])
def test_with_schema_tracking_a_read_goes_on_after_some_restarts(
    source: Path, name: str, spark: SparkSession, tmp_path: Path
) -> None:
    query = Query(spark, source, tmp_path, tracked=True)
    query.start()
    try:
        assert query.survives()
        spark.sql(f"alter table delta.`{source}` {CHANGES[name].statement}")
        columns = len(spark.table(f"delta.`{source}`").columns)
        spark.sql(f"insert into delta.`{source}` values ({', '.join(ROW[:columns])})")
        if name in UNSAFE:
            assert restarts(query, at_most=3) is None
            query.stop()
            spark.conf.set(GO_ON, "always")
            query.start()
            assert restarts(query, at_most=3) is not None
        else:
            assert restarts(query, at_most=3) == TRACKED[name]
    finally:
        spark.conf.unset(GO_ON)
        query.stop()


@pytest.mark.parametrize(("source", "name"), changes(UNSAFE), indirect=["source"])
def test_told_to_go_on_a_tracked_read_takes_renames_and_drops(
    source: Path, name: str, spark: SparkSession, tmp_path: Path
) -> None:
    query = Query(spark, source, tmp_path, tracked=True)
    spark.conf.set(GO_ON, "always")
    query.start()
    try:
        assert query.survives()
        spark.sql(f"alter table delta.`{source}` {CHANGES[name].statement}")
        columns = len(spark.table(f"delta.`{source}`").columns)
        spark.sql(f"insert into delta.`{source}` values ({', '.join(ROW[:columns])})")
        assert restarts(query, at_most=3) == TRACKED[name]
    finally:
        spark.conf.unset(GO_ON)
        query.stop()


def restarts(query: Query, at_most: int) -> int | None:
    """How often it had to be started again to take everything; None when that did not help."""
    for count in range(at_most + 1):
        if query.survives():
            return count
        query.stop()
        query.start()
    return None
