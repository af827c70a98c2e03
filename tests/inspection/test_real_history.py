"""A table whose features came and went in many ways, by Spark and by delta-rs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.tables.storage.through_spark import SparkLogStore
from tests.planning.oracle import newest
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@needs_delta("4.1", "VARIANT and DROP FEATURE rowTracking")
def test_each_way_is_named_with_its_commit(
    delta_spark: DeltaSpark, tmp_path: Path, cli: Any
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    statements = [
        f"create table {table} (id bigint, s string) using delta",
        f"alter table {table} add constraint positive check (id >= 0)",
        f"alter table {table} set tblproperties ('delta.feature.vacuumProtocolCheck'='supported')",
        f"alter table {table} set tblproperties ('delta.enableChangeDataFeed'='true')",
        f"alter table {table} set tblproperties ('delta.enableRowTracking'='true')",
        f"alter table {table} cluster by (id)",
        f"alter table {table} add columns (v variant)",
        f"alter table {table} set tblproperties "
        "('delta.minReaderVersion'='2','delta.minWriterVersion'='5')",
        f"alter table {table} set tblproperties ('delta.isolationLevel'='Serializable')",
        f"alter table {table} drop constraint positive",
        f"alter table {table} drop feature vacuumProtocolCheck",
        f"alter table {table} drop feature rowTracking",
    ]
    landed: dict[str, int] = {}
    for statement in statements:
        delta_spark.sql(statement)
        landed[statement] = newest(path)
    ran = cli("history", path, "--format", "json")
    assert ran.code == 0, ran.err
    events = {event["version"]: event for event in ran.json["events"]}

    def change(number: int) -> dict[str, Any]:
        found: dict[str, Any] = events[landed[statements[number]]]
        return found

    assert change(1)["constraints_added"] == ["positive"]
    assert change(1)["cause"].startswith("checkConstraints: ADD CONSTRAINT")
    assert change(2)["features_added"] == ["vacuumProtocolCheck"]
    assert "delta.feature.vacuumProtocolCheck" in change(2)["cause"]
    assert change(3)["features_added"] == ["changeDataFeed"]
    assert change(4)["enabled"] == ["rowTracking"]
    upgrade = next(e for e in events.values() if "rowTracking" in e["features_added"])
    assert upgrade["operation"] == "UPGRADE PROTOCOL"
    assert "domainMetadata: required by rowTracking" in upgrade["cause"]
    assert change(5)["features_added"] == ["clustering"]
    assert "CLUSTER BY" in change(5)["cause"]
    assert change(6)["features_added"] == ["variantType"]
    assert "column v" in change(6)["cause"]
    assert set(change(7)["features_added"]) == {"columnMapping", "generatedColumns"}
    assert "version numbers" in change(7)["cause"]
    assert change(8)["isolation"] == {"before": None, "after": "Serializable"}
    assert change(9)["constraints_removed"] == ["positive"]
    assert change(10)["features_removed"] == ["vacuumProtocolCheck"]
    assert change(10)["features_added"] == ["checkpointProtection"]
    assert "left behind by DROP FEATURE" in change(10)["cause"]
    assert change(11)["features_removed"] == ["rowTracking"]
    assert "not requested" not in "".join(event["cause"] for event in events.values())
    assert "lost" not in "".join(event["cause"] for event in events.values())


def test_delta_rs_loses_features_and_brings_unasked_ones(tmp_path: Path, cli: Any) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, TableFeatures, write_deltalake

    lossy, generous = str(tmp_path / "lossy"), str(tmp_path / "generous")
    for path in (lossy, generous):
        write_deltalake(path, pa.table({"id": [1]}))
    DeltaTable(lossy).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    DeltaTable(generous).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    newest = cli("history", lossy, "--format", "json").json["events"][0]
    assert newest["features_removed"] == ["appendOnly", "invariants"]
    assert "lost: this commit did not drop it" in newest["cause"]
    newest = cli("history", generous, "--format", "json").json["events"][0]
    assert newest["features_added"] == ["deletionVectors", "variantType"]
    assert "variantType: not requested by this commit" in newest["cause"]


@pytest.mark.spark
@pytest.mark.slow
def test_catalog_names(spark: SparkSession, cli: Any) -> None:
    spark.sql("create table if not exists default.past (id bigint) using delta")
    try:
        ran = cli("history", "default.past", "--format", "json")
        assert ran.code == 0, ran.err
        assert ran.json["table"] == "default.past"
        assert ran.json["events"][0]["operation"] == "CREATE TABLE"
    finally:
        spark.sql("drop table default.past")


@pytest.fixture
def far(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A catalog's table in a file system that only Spark knows."""
    hadoop: Any = spark._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    hadoop.set("fs.viewfs.mounttable.far.link./data", f"file://{tmp_path}")
    spark.sql("create table default.far (id bigint) using delta location 'viewfs://far/data/t'")
    try:
        yield "default.far"
    finally:
        spark.sql("drop table default.far")


@pytest.mark.spark
@pytest.mark.slow
def test_a_log_that_only_spark_reaches(far: str, spark: SparkSession, cli: Any) -> None:
    for number in range(3):
        spark.sql(f"insert into {far} values ({number})")
    spark.sql(f"alter table {far} set tblproperties ('delta.enableChangeDataFeed'='true')")
    spark.sql(f"insert into {far} values (9)")
    ran = cli("history", far, "--format", "json")
    assert ran.code == 0, ran.err
    assert [event["version"] for event in ran.json["events"]] == [4, 0]
    assert ran.json["events"][0]["features_added"] == ["changeDataFeed"]
    assert ran.json["whole"] is True
    asked = ("conflicts", far, "--exception", "MetadataChanged", "--format", "json")
    now = datetime.now(UTC).isoformat()
    assert [s["version"] for s in cli(*asked, "--at", now).json["suspects"]] == [4, 0]
    table = cli("inspect", far, "--activity", "--format", "json").table
    assert table["activity"]["commits"] == 6


@given(sizes=st.lists(st.integers(0, 20 << 20), min_size=1, max_size=200), data=st.data())
def test_commits_are_fetched_in_runs(sizes: list[int], data: st.DataObject) -> None:
    store = SparkLogStore(None, "x://t")  # type: ignore[arg-type]
    names = [f"{version:020d}.json" for version in range(len(sizes))]
    store._paths = {name: (name, size) for name, size in zip(names, sizes, strict=True)}
    newest = data.draw(st.integers(0, len(sizes) - 1))
    run = store._run(names[newest])
    assert list(run) == names[newest - len(run) + 1 : newest + 1][::-1]
    assert 1 <= len(run) <= 64
    assert sum(sizes[newest - len(run) + 2 : newest + 1]) < 16 << 20
    assert store._run("00000000000000000001.checkpoint.parquet") == [
        "00000000000000000001.checkpoint.parquet"
    ]
