"""Changes beside a column of a type that Delta Spark does not store, and what Spark does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import parse_engine
from deltaproto.planning.predict.schema import Atomic, Column, Struct
from deltaproto.planning.search.droppable import find_droppable
from deltaproto.protocol.protocol import Protocol
from tests.planning.bare import bare_table
from tests.planning.oracle import agree, execute, look, newest, planned
from tests.recording.delta_spark import DeltaSpark, LiveDeltaSpark
from tests.support.engines import RUNNING, needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPE_CHECK = "spark.databricks.delta.schema.typeCheck.enabled"
REFUSED = (
    "alter table {t} set tblproperties ('delta.appendOnly' = 'true')",
    "alter table {t} set tblproperties ('delta.feature.vacuumProtocolCheck' = 'supported')",
    "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'name')",
    "alter table {t} set tblproperties ('team' = 'a')",
    "alter table {t} unset tblproperties ('delta.x')",
    "alter table {t} add constraint small check (id < 100)",
    "alter table {t} drop constraint positive",
    "alter table {t} cluster by (id)",
    "alter table {t} add columns (n int)",
    "alter table {t} alter column id comment 'x'",
)
"""of a table with an interval column, by Delta Spark 4.4.0"""
ROWS = ("insert into {t} (id) values (2)", "delete from {t} where id = 1")
TRACKED = "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')"
UNSTORED = "DELTA_UNSUPPORTED_DATA_TYPES"


@pytest.mark.parametrize("kind", ["interval day to second", "string collate utf8_lcase"])
def test_metadata_stays_beside_a_type_that_delta_does_not_store(kind: str) -> None:
    schema = Struct((Column("id", Atomic("long")), Column("v", Atomic(kind))))
    table = bare_table(Protocol(1, 3), {"delta.constraints.positive": "id > 0"})
    table = table.with_schema(schema)._replace(partition_columns=())
    for statement in (
        *REFUSED,
        "alter table {t} set tblproperties ('delta.enableRowTracking'='true')",
    ):
        (each,) = parse_script(statement.format(t="t"))
        refusal = each.statement.outcome(table, RUNNING).refusal
        assert refusal is not None, statement
        assert refusal.error == UNSTORED, statement
    for statement in ROWS:
        (each,) = parse_script(statement.format(t="t"))
        assert each.statement.outcome(table, RUNNING).refusal is None, statement


DROPPED = (
    *("rowTracking", "inCommitTimestamp", "materializePartitionColumns", "checkConstraints"),
    *("columnMapping", "deletionVectors", "typeWidening", "vacuumProtocolCheck", "v2Checkpoint"),
)
ENABLED = (
    "'delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true', "
    "'delta.enableMaterializePartitionColumnsFeature' = 'true', "
    "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', "
    "'delta.enableTypeWidening' = 'true', 'delta.checkpointPolicy' = 'v2', "
    "'delta.feature.vacuumProtocolCheck' = 'supported'"
)


def beside_an_interval(delta_spark: DeltaSpark, path: str, properties: str) -> str:
    """A table with a column that Delta only takes while it does not check types."""
    table = f"delta.`{path}`"
    delta_spark.sql(f"set {TYPE_CHECK} = false")
    try:
        delta_spark.sql(
            f"create table {table} (id bigint, v interval day to second) using delta "
            f"tblproperties ({properties})"
        )
        delta_spark.sql(f"alter table {table} add constraint positive check (id > 0)")
        delta_spark.sql(f"insert into {table} (id) values (1)")
    finally:
        delta_spark.sql(f"reset {TYPE_CHECK}")
    return table


@needs_delta("4.4", "what it was measured with")
def test_spark_refuses_metadata_beside_such_a_type(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = beside_an_interval(delta_spark, path, "'delta.appendOnly' = 'false'")
    for statement in (*REFUSED, *ROWS):
        before = look(path)._replace(version=newest(path))
        (each,) = parse_script(statement.format(t=table))
        said = each.statement.outcome(before, RUNNING)
        agree(said, execute(delta_spark, path, statement.format(t=table)))


@needs_delta("4.4", "what it was measured with")
def test_spark_refuses_drops_beside_such_a_type(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = beside_an_interval(delta_spark, path, ENABLED)
    given = planned(path)
    stuck = find_droppable(given.table, RUNNING).undroppable
    assert {*DROPPED} <= {*stuck}
    for statement in (
        *(f"alter table {table} drop feature {name}" for name in DROPPED),
        f"alter table {table} drop feature v2Checkpoint truncate history",
        f"comment on table {table} is 'x'",
        f"restore table {table} to version as of 1",
    ):
        before = planned(path).table._replace(version=newest(path))
        (each,) = parse_script(statement)
        said = each.statement.outcome(before, RUNNING)
        assert said.refusal is not None, statement
        agree(said, execute(delta_spark, path, statement))
        name = statement.partition("drop feature ")[2]
        if name in stuck:
            assert stuck[name].error == said.refusal.error
    plan = plan_downgrade(planned(path), DowngradeRequest(lowest=True, include_enabled=True))
    assert not plan.steps


@pytest.mark.spark
@needs_delta("4.4", "what it was measured with")
def test_spark_refuses_drops_that_change_no_metadata_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    delta_spark, path = LiveDeltaSpark(spark), str(tmp_path / "t")
    names = ("domainMetadata", "vacuumProtocolCheck")
    features = ", ".join(f"'delta.feature.{name}' = 'supported'" for name in names)
    table = beside_an_interval(delta_spark, path, features)
    for statement in (
        f"alter table {table} drop feature domainMetadata",
        f"alter table {table} drop feature vacuumProtocolCheck",
        f"alter table {table} drop feature vacuumProtocolCheck truncate history",
    ):
        (each,) = parse_script(statement)
        said = each.statement.outcome(planned(path).table, RUNNING)
        assert said.refusal is not None
        agree(said, execute(delta_spark, path, statement))


def test_until_4_1_a_drop_commit_needs_no_metadata() -> None:
    schema = Struct((Column("id", Atomic("long")), Column("v", Atomic("time(6)"))))
    table = bare_table(Protocol.carrying({"vacuumProtocolCheck"}), {}).with_schema(schema)
    table = table._replace(traced=frozenset(), aged=frozenset())
    (each,) = parse_script("alter table t drop feature vacuumProtocolCheck truncate history")
    for version, error in (("4.0.1", None), ("4.1.0", UNSTORED), ("4.4.0", UNSTORED)):
        refusal = each.statement.outcome(table, parse_engine(f"delta-spark@{version}")).refusal
        assert (None if refusal is None else refusal.error) == error
