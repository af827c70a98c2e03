"""Every feature on a real table, made by Spark and seen by all readers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaproto.errors import TableError
from deltaproto.inspection.inspect import compare_readers
from deltaproto.plan_inputs.from_log import survey_log
from deltaproto.policy.context import RuleContext
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ReaderName, TableState
from deltaproto.tables.delta_rs import DeltaRsReader
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.spark import SparkReader
from deltaproto.tables.storage.local import LocalLogStore
from deltaproto.tables.storage.through_spark import SparkLogStore
from tests.support.tables import RECIPES, recipes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FEW = ("oldest", "clustered", "everything")
MOST = tuple(name for name in RECIPES if name not in FEW)


@pytest.fixture(scope="module")
def tables(real_tables: Mapping[str, str]) -> Mapping[str, str]:
    return real_tables


@pytest.fixture(scope="module")
def snapshots(spark: SparkSession, tables: Mapping[str, str]) -> dict[str, Any]:
    """Delta's own snapshot of each table, through the JVM."""
    jvm: Any = spark._jvm
    session = spark._jsparkSession
    delta_log = jvm.org.apache.spark.sql.delta.DeltaLog
    none = jvm.scala.Option.empty()
    return {
        name: delta_log.forTable(session, path).update(False, none, none)
        for name, path in tables.items()
    }


def stored(snapshot: Any) -> Protocol:
    return Protocol.parse(json.loads(snapshot.protocol().json())["protocol"])


@pytest.mark.parametrize("name", recipes())
def test_the_log_reader_sees_deltas_own_protocol(
    name: str, tables: Mapping[str, str], snapshots: dict[str, Any]
) -> None:
    snapshot = snapshots[name]
    for use_checksums in (True, False):
        state = LogReader(use_checksums=use_checksums).read(tables[name])
        assert state.version == snapshot.version()
        assert state.protocol == stored(snapshot)
        action = json.loads(snapshot.metadata().json())["metaData"]
        assert state.metadata == Metadata.stored(action)
        assert state.notes == ()


@pytest.mark.parametrize(
    "name",
    [
        *recipes(FEW),
        *(pytest.param(*r.values, marks=[*r.marks, pytest.mark.slow]) for r in recipes(MOST)),
    ],
)
def test_all_readers_agree(name: str, tables: Mapping[str, str]) -> None:
    answers: dict[ReaderName, TableState | TableError] = {
        ReaderName.LOG: LogReader().read(tables[name]),
        ReaderName.DELTA_RS: DeltaRsReader().read(tables[name]),
        ReaderName.SPARK: SparkReader().read(tables[name]),
    }
    assert list(compare_readers(name, answers)) == []


@pytest.mark.parametrize("name", recipes())
def test_a_real_table_has_its_lowest_protocol(
    name: str, tables: Mapping[str, str], snapshots: dict[str, Any]
) -> None:
    subject = RuleContext(LogReader().read(tables[name]))
    assert subject.violations == ()
    assert subject.lowest == subject.protocol


@pytest.mark.parametrize("name", recipes())
def test_item_9_enabled_is_what_delta_calls_active(
    name: str, spark: SparkSession, tables: Mapping[str, str], snapshots: dict[str, Any]
) -> None:
    jvm: Any = spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    protocol, metadata = snapshots[name].protocol(), snapshots[name].metadata()
    by_metadata = jvm.java.lang.Class.forName(
        "org.apache.spark.sql.delta.FeatureAutomaticallyEnabledByMetadata",
        True,
        protocol.getClass().getClassLoader(),
    )
    judged = 0
    for state in RuleContext(LogReader().read(tables[name])).features:
        feature = delta.TableFeature.featureNameToFeature(state.name).get()
        if by_metadata.isInstance(feature):
            active = feature.metadataRequiresFeatureToBeEnabled(
                protocol, metadata, spark._jsparkSession
            )
            assert state.enabled == active, state.name
            judged += 1
    assert judged or name == "oldest"


PRESENT = {
    "plain": {"appendOnly": False, "invariants": False},
    "not_null": {"invariants": True},
    "constraint": {"checkConstraints": True},
    "generated": {"generatedColumns": True},
    "identity": {"identityColumns": True},
    "mapping_by_id": {"columnMapping": True},
    "vectors_unused": {"deletionVectors": False},
    "vectors_used": {"deletionVectors": True},
    "vectors_off_again": {"deletionVectors": False},
    "row_tracking": {"rowTracking": True, "domainMetadata": True},
    "clustered": {"clustering": True, "domainMetadata": True},
    "clustered_no_more": {"clustering": False},
    "defaults": {"allowColumnDefaults": True},
    "commit_timestamps": {"inCommitTimestamp": True},
    "v2_checkpoint": {"v2Checkpoint": True},
    "widening_unused": {"typeWidening": False},
    "widening_used": {"typeWidening": True},
    "timestamp_ntz": {"timestampNtz": True},
    "variant": {"variantType": True},
    "legacy_2_5": {"columnMapping": False, "changeDataFeed": None, "checkConstraints": False},
}


@pytest.mark.parametrize("name", recipes(PRESENT))
def test_what_is_present_without_looking_in_files(name: str, tables: Mapping[str, str]) -> None:
    states = {s.name: s.present for s in RuleContext(LogReader().read(tables[name])).features}
    assert {key: states[key] for key in PRESENT[name]} == PRESENT[name]


@pytest.mark.parametrize(
    "name", recipes(["vectors_used", "vectors_unused", "row_tracking", "everything"])
)
def test_looking_in_files_agrees_with_the_checksum(name: str, tables: Mapping[str, str]) -> None:
    quick = LogReader().read(tables[name]).traces
    slow = LogReader(use_checksums=False, look_in_files=True).read(tables[name]).traces
    both = quick.keys() & slow.keys()
    assert both
    assert {trace: quick[trace] for trace in both} == {trace: slow[trace] for trace in both}


def test_change_files_are_found_in_the_log(tables: Mapping[str, str]) -> None:
    subject = RuleContext(LogReader(look_in_files=True).read(tables["change_data_feed"]))
    (state,) = (s for s in subject.features if s.name == "changeDataFeed")
    assert (state.enabled, state.present) == (True, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "vectors_used", "clustered", "everything"])
def test_every_state_of_the_log_gives_the_same_answer(
    name: str, spark: SparkSession, tables: Mapping[str, str], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tables[name], copy)
    expected = LogReader().read(tables[name])
    for checksum in (copy / "_delta_log").glob("*.crc"):
        checksum.unlink()
    without_checksums = LogReader().read(str(copy))
    jvm: Any = spark._jvm
    delta_log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(copy))
    none = jvm.scala.Option.empty()
    delta_log.checkpoint(delta_log.update(False, none, none), none)
    with_checkpoint = LogReader(use_checksums=False).read(str(copy))
    for commit in sorted((copy / "_delta_log").glob("*.json"))[:-1]:
        if len(commit.stem) == 20:
            commit.unlink()
    cleaned = LogReader(use_checksums=False).read(str(copy))
    for state in (without_checksums, with_checkpoint, cleaned):
        assert state.version == expected.version
        assert state.protocol == expected.protocol
        assert state.metadata == expected.metadata
        assert state.domains == expected.domains
        assert state.clustering_columns == expected.clustering_columns


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["a b", "a%20b", "täble", "back`tick", "plus+&=#"])
def test_odd_paths_mean_the_same_table_to_spark(
    folder: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / folder
    spark.range(3).write.format("delta").save(str(path))
    log, seen = LogReader().read(str(path)), SparkReader().read(str(path))
    assert (log.metadata.id, log.protocol) == (seen.metadata.id, seen.protocol)


@pytest.mark.slow
def test_delta_rs_never_answers_for_a_sibling(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.format("delta").save(str(tmp_path / "a b"))
    spark.sql(f"create table delta.`{tmp_path}/a%20b` (x int) using delta")
    with pytest.raises(TableError, match="another table"):
        DeltaRsReader().read(str(tmp_path / "a%20b"))


@pytest.mark.slow
def test_a_catalog_name_is_read_through_spark(spark: SparkSession, cli: Any) -> None:
    spark.sql("create table if not exists default.named (id bigint) using delta")
    try:
        ran = cli("inspect", "default.named", "--format", "json")
        assert ran.code == 0, ran.err
        assert (ran.table["reader"], ran.table["version"]) == ("spark", 0)
        compared = cli("inspect", "default.named", "--reader", "all", "--format", "json")
        assert compared.table["table"] == "default.named"
        assert compared.table["reader"] == "log"
        assert compared.table["readers"].keys() == {"log", "delta-rs", "spark"}
        assert all("error" not in answer for answer in compared.table["readers"].values())
    finally:
        spark.sql("drop table default.named")


@pytest.mark.slow
def test_sparks_refusals_have_codes(spark: SparkSession, tmp_path: Path, cli: Any) -> None:
    (tmp_path / "parquet").mkdir()
    spark.range(3).write.mode("overwrite").parquet(str(tmp_path / "parquet"))
    for table, code in (
        (str(tmp_path / "nowhere"), "not-a-delta-table"),
        (str(tmp_path / "parquet"), "not-a-delta-table"),
        ("default.nowhere", "not-found"),
    ):
        ran = cli("inspect", table, "--reader", "spark", "--format", "json")
        assert ran.code == 3
        assert ran.table["error"]["code"] == code, ran.table
    # The last one has no catalog, as a new user's.
    assert "catalogImplementation=hive" in ran.table["error"]["hint"]


def test_sidecars_are_read_through_spark_too(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.sql(
        f"create table delta.`{table}` (id bigint) using delta tblproperties "
        "('delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='2')"
    )
    for number in range(3):
        spark.sql(f"insert into delta.`{table}` values ({number})")
    assert list((table / "_delta_log" / "_sidecars").glob("*.parquet"))
    (table / "_delta_log" / f"{0:020}.json").unlink()
    here = survey_log(LocalLogStore(str(table)))
    assert survey_log(SparkLogStore(spark, f"file://{table}")).census == here.census
    assert here.census.files == 3
