"""The copy into a new table, as planned and as Spark does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.plan import Plan
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.log.reader import LogReader
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING
from tests.support.logs import Log, commit_info, metadata, protocol
from tests.support.tables import copy_table, recipes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOALS = {
    "everything": DowngradeRequest(to=(1, 2), rewrite=True),
    "clustered": DowngradeRequest(drop=("clustering",), rewrite=True),
    "generated": DowngradeRequest(drop=("generatedColumns",), rewrite=True),
    "identity": DowngradeRequest(to=(1, 2), rewrite=True),
    "timestamp_ntz": DowngradeRequest(drop=("timestampNtz",), rewrite=True),
    "variant": DowngradeRequest(to=(1, 2), rewrite=True),
    "iceberg": DowngradeRequest(drop=("icebergCompatV2",), rewrite=True),
    "change_data_feed": DowngradeRequest(to=(1, 3), rewrite=True),
    "defaults": DowngradeRequest(drop=("allowColumnDefaults",), rewrite=True),
}


def planned(path: str, asked: DowngradeRequest) -> Plan:
    given = load_plan_input(path, {}, SparkSettings(), 0.0)._replace(engine=RUNNING)
    return plan_downgrade(given, asked)


@pytest.mark.parametrize("name", recipes(GOALS))
def test_the_copy_has_the_protocol_that_was_planned(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = copy_table(delta_spark, name, str(tmp_path / "t"))
    plan = planned(path, GOALS[name])
    assert [str(step.action) for step in plan.steps] == ["rewrite-table", "swap"]
    assert plan.steps[0].sql is not None
    delta_spark.sql(plan.steps[0].sql)
    assert LogReader().read(f"{path}__new").protocol == plan.protocol_after

    def rows(spark: SparkSession) -> list[list[str]]:
        old, new = (spark.read.format("delta").load(each) for each in (path, f"{path}__new"))
        columns = [column for column in old.columns if column not in ("v", "at")]
        return [sorted(map(str, each.select(columns).collect())) for each in (old, new)]

    before, after = delta_spark.run("read the rows of both", rows)
    assert before == after


def test_a_slash_at_the_end_of_a_path_is_no_part_of_its_name(tmp_path: Path) -> None:
    log = Log(tmp_path / "t").commit(0, commit_info(), protocol(1, 4), metadata())
    given = load_plan_input(log.table, {}, SparkSettings(), 0.0)
    given = given._replace(sql=f"delta.`{log.table}//`")
    plan = plan_downgrade(given, DowngradeRequest(to=(1, 2), rewrite=True))
    assert str(plan.steps[0].sql).startswith(f"CREATE TABLE delta.`{log.table}__new` ")


@pytest.mark.slow
@pytest.mark.spark
def test_a_catalog_table_is_swapped_by_renames(spark: SparkSession) -> None:
    spark.sql("create schema if not exists copies")
    spark.sql("create table copies.orders (id bigint) using delta cluster by (id)")
    try:
        spark.sql("insert into copies.orders values (1)")
        plan = planned("copies.orders", DowngradeRequest(drop=("clustering",), rewrite=True))
        for step in plan.steps:
            assert step.sql is not None
            spark.sql(step.sql)
        after = load_plan_input("copies.orders", {}, SparkSettings(), 0.0)
        assert after.table.protocol == plan.protocol_after
        assert spark.table("copies.orders").count() == 1
    finally:
        spark.sql("drop schema copies cascade")
