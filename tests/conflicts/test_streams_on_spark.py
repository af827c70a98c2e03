"""Streaming reads of a table while its protocol and metadata change, on a real Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Change(NamedTuple):
    properties: str
    """what the table has before"""
    statement: str
    survives: bool
    """the running query goes on"""
    restarts: bool = True
    """a query that failed goes on after a restart"""


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
    "drop-vectors": Change(VECTORS, "drop feature deletionVectors", True),
    "add-column": Change("'a'='1'", "add columns (z int)", False),
    "rename-column": Change(MAPPED, "rename column s to text", False, restarts=False),
    "drop-mapping": Change(MAPPED, "drop feature columnMapping", False, restarts=False),
}


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


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    change: Change = request.param
    path = tmp_path / "source"
    spark.sql(
        f"create table delta.`{path}` (id bigint, s string) using delta "
        f"tblproperties ({change.properties})"
    )
    spark.sql(f"insert into delta.`{path}` values (1, 'a')")
    return path


@pytest.mark.parametrize(
    ("source", "name"), [(CHANGES[n], n) for n in CHANGES], ids=CHANGES, indirect=["source"]
)
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
        row = ", ".join(["2", "'b'", "3"][:columns])
        spark.sql(f"insert into delta.`{source}` values ({row})")
        assert query.survives() is change.survives
        if not change.survives:
            query.stop()
            query.start()
            assert query.survives() is change.restarts
    finally:
        query.stop()


@pytest.mark.parametrize("source", [CHANGES["enable-vectors"]], indirect=True)
def test_with_schema_tracking_each_change_stops_the_read_once(
    source: Path, spark: SparkSession, tmp_path: Path
) -> None:
    query = Query(spark, source, tmp_path, tracked=True)
    query.start()
    try:
        assert query.survives()
        spark.sql(f"alter table delta.`{source}` set tblproperties ({VECTORS})")
        spark.sql(f"insert into delta.`{source}` values (2, 'b')")
        assert not query.survives()
        query.start()
        assert query.survives()
    finally:
        query.stop()
