"""Real catalog-managed tables, made with Delta Spark's own in-memory coordinator: no server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.protocol.table_state import SparkSettings
from tests.support import catalog_managed
from tests.support.catalog_managed import PROPERTY, SCHEMA, coordinate, new_name, table_folder
from tests.support.engines import RUNNING, needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Cli = Callable[..., Any]
SETTINGS = SparkSettings()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    needs_delta("4.4", "catalog-managed tables by this coordinator"),
]


@pytest.fixture(scope="module")
def schema(spark: SparkSession) -> Iterator[str]:
    coordinate(spark)
    yield SCHEMA
    spark.sql(f"drop schema {SCHEMA} cascade")


@pytest.fixture
def table(spark: SparkSession, schema: str) -> str:
    """A table with two commits that are staged, and not in its log."""
    name = new_name(schema)
    with catalog_managed.testing(spark):
        spark.sql(f"create table {name} (id int) using delta tblproperties ({PROPERTY})")
    spark.sql(f"insert into {name} values (1)")
    spark.sql(f"alter table {name} set tblproperties ('team' = 'me')")
    return name


def version(spark: SparkSession, table: str) -> int:
    return int(spark.sql(f"describe history {table} limit 1").collect()[0]["version"])


def published(path: Path) -> int:
    return max(int(f.stem) for f in (path / "_delta_log").glob("*.json") if f.stem.isdecimal())


def test_by_name_everything_reads_the_staged_commits(
    spark: SparkSession, table: str, cli: Cli
) -> None:
    path, newest = table_folder(spark, table), version(spark, table)
    assert published(path) < newest
    history = cli("history", table, "--format", "json")
    assert (history.code, history.json["complete"]) == (0, True)
    assert history.json["events"][0]["version"] <= newest
    ran = cli("inspect", table, "--reader", "all", "--activity", "--format", "json")
    (found,) = ran.json["tables"]
    assert found["version"] == newest
    assert found["activity"]["commits"] == newest + 1
    assert {key: each.get("version") for key, each in found["readers"].items()} == {
        "log": newest,
        "spark": newest,
        "delta-rs": None,
    }
    assert not [f for f in found["findings"] if "version" in str(f.get("evidence"))]
    vectors = next(f for f in found["features"] if f["name"] == "deletionVectors")
    assert vectors["droppable"]["kept_by"] == ["catalogManaged"]
    given = load_plan_input(table, {}, SETTINGS, 0.0)
    assert given.complete
    assert given.table.configuration["team"] == "me"


def test_by_path_nothing_claims_to_be_complete(spark: SparkSession, table: str, cli: Cli) -> None:
    path = str(table_folder(spark, table))
    for command in (["history"], ["inspect", "--activity"]):
        ran = cli(*command, path, "--format", "json")
        assert (ran.code, ran.json["complete"]) == (3, False)


def test_a_plan_is_applied_by_name(
    spark: SparkSession, table: str, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    words = ["plan-upgrade", table, "--set", "delta.logRetentionDuration=interval 60 days"]
    assert cli(*words, "--format", "json", "--output", str(file)).code == 0
    ran = cli("apply", str(file), "--yes", "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    (properties,) = spark.sql(f"describe detail {table}").select("properties").collect()
    assert properties[0]["delta.logRetentionDuration"] == "interval 60 days"
    again = cli(*words, "--format", "json")
    assert again.json["steps"] == []


def test_a_plan_is_rehearsed_by_name(
    spark: SparkSession, table: str, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    words = ["plan-downgrade", table, "--drop", "rowTracking", "--history", "keep"]
    assert cli(*words, "--format", "json", "--output", str(file)).code == 0
    before = version(spark, table)
    scratch = str(tmp_path / "scratch")
    ran = cli("rehearse", str(file), "--scratch", scratch, "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    (result,) = ran.json["results"]
    assert [step["state"] for step in result["steps"]] == ["done"] * len(result["steps"])
    assert version(spark, table) == before


SET = "alter table {t} set tblproperties"
STATEMENTS = [
    "optimize {t}",
    "reorg table {t} apply (purge)",
    "vacuum {t}",
    "vacuum {t} dry run",
    "alter table {t} drop feature deletionVectors",
    "alter table {t} drop feature deletionVectors truncate history",
    "alter table {t} drop feature catalogManaged",
    "alter table {t} drop feature inCommitTimestamp",
    "alter table {t} drop feature vacuumProtocolCheck",
    "alter table {t} drop feature rowTracking",
    "alter table {t} drop feature v2Checkpoint",
    f"{SET} ('delta.enableInCommitTimestamps' = 'true')",
    f"{SET} ('delta.enableInCommitTimestamps' = 'false')",
    "alter table {t} unset tblproperties ('delta.enableInCommitTimestamps')",
    f"{SET} ('delta.feature.catalogManaged' = 'supported')",
    f"{SET} ('delta.enableDeletionVectors' = 'false')",
    f"{SET} ('delta.enableChangeDataFeed' = 'true')",
    f"{SET} ('delta.checkpointPolicy' = 'classic')",
    "alter table {t} cluster by (id)",
    "alter table {t} add constraint positive check (id > 0)",
    "alter table {t} add columns (s string)",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statements_do_what_is_predicted(sql: str, spark: SparkSession, table: str) -> None:
    before = version(spark, table)
    given = load_plan_input(table, {}, SETTINGS, 0.0)
    statement = sql.format(t=table)
    (parsed,) = parse_script(statement)
    said = predict_statement(parsed.statement, given.table, RUNNING)
    error = None
    try:
        spark.sql(statement).collect()
    except Exception as raised:
        named = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(raised))
        error = named[1] if named else str(raised)[:200]
    made = version(spark, table) - before
    after = load_plan_input(table, {}, SETTINGS, 0.0)
    assert error == (said.refusal.error if said.refusal else None)
    assert said.fewest <= made <= said.most
    assert after.table.protocol == said.table.protocol
    assert {*said.table.configuration} <= {*after.table.configuration}
