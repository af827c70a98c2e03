"""What Delta's own clean-up deletes from logs of random ages."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltaproto.tables.log.files import build_listing
from deltaproto.tables.log.log_retention import analyze_aging
from deltaproto.tables.storage.local import LocalLogStore
from deltaproto.tables.storage.through_spark import SparkLogStore
from tests.support.engines import RUNNING
from tests.tables.log.clean_up import deleted
from tests.tables.log.test_history_on_spark import HOUR_MS, checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
# Long enough for the JVM to get a long.
OLD_MS = 1000 * HOUR_MS


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten versions; checkpoints of every kind, one of two parts and one of them empty."""
    path = str(tmp_path_factory.mktemp("aging") / "t")
    name = f"delta.`{path}`"
    spark.sql(f"create table {name} (id bigint) using delta")
    for version in range(1, 10):
        spark.sql(f"insert into {name} select id from range(0, 4, 1, 2)")
        if version == 6:
            spark.conf.set("spark.databricks.delta.checkpoint.partSize", "8")
        if version in (2, 4, 6, 8):
            checkpoint(spark, path)
        spark.conf.unset("spark.databricks.delta.checkpoint.partSize")
    folder = Path(path, "_delta_log")
    for file in folder.glob("*4.checkpoint.parquet"):
        file.rename(file.with_name(file.name.replace(".checkpoint", ".checkpoint.0a0a0a0a-1")))
    (folder / f"{5:020d}.checkpoint.parquet").touch()
    assert len(list(folder.glob("*6.checkpoint.*"))) > 1
    return path


def clean_up(spark: SparkSession, path: str, retention_ms: int) -> None:
    jvm = spark._jvm
    assert jvm is not None
    none = jvm.scala.Option.empty()
    delta = jvm.org.apache.spark.sql.delta
    log = delta.DeltaLog.forTable(spark._jsparkSession, path)
    minute = delta.TruncationGranularity.MINUTE()
    retention = jvm.scala.Option.apply(retention_ms)
    catalog_table = [none] if RUNNING.at_least("4.1") else []
    log.cleanUpExpiredLogs(log.update(False, none, none), *catalog_table, retention, minute)


@settings(max_examples=40)
# The first run is young, the second old: a gap is left behind the first.
@example(hours=[1 if at == 8 else 5 if at == 20 else 0 for at in range(40)], sort=False)
@given(hours=st.lists(st.integers(0, 9), min_size=40, max_size=40), sort=st.booleans())
def test_a_clean_up_leaves_what_was_said(
    hours: list[int],
    sort: bool,
    spark: SparkSession,
    table: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = str(tmp_path_factory.mktemp("copy") / "t")
    shutil.copytree(table, path)
    now = time.time_ns() // 1_000_000
    files = sorted(Path(path, "_delta_log").glob("0*"))
    ages = sorted(hours, reverse=True) if sort else hours
    # Half an hour from every cut-off, so that the minute it is rounded to plays no part.
    for file, age in zip(files, ages, strict=False):
        os.utime(file, ns=(0, (now - OLD_MS - age * HOUR_MS - HOUR_MS // 2) * 1_000_000))
    entries = LocalLogStore(path).list_dated()
    listing = build_listing(entries)
    gone = deleted(
        analyze_aging(entries, listing), now - OLD_MS - 5 * HOUR_MS, checkpoint_first=False
    )
    clean_up(spark, path, OLD_MS + 5 * HOUR_MS)
    after = build_listing(LocalLogStore(path).list())
    assert sorted(after.commits) == [v for v in sorted(listing.commits) if v not in gone]
    shutil.rmtree(path)


def test_spark_sees_the_times_that_the_disk_has(spark: SparkSession, table: str) -> None:
    through = {e.name: e for e in SparkLogStore(spark, f"file://{table}").list_dated()}
    for entry in LocalLogStore(table).list_dated():
        if entry.size and not entry.name.startswith((".", "_")):
            assert through[entry.name] == entry
