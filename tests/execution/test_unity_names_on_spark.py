"""Plans by a name of Unity Catalog: applied by a session that has the name, refused by others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Ran
from tests.fleet.test_scan_catalogs import _alone as _alone
from tests.support.catalog_managed import table_folder
from tests.support.engines import needs_delta
from tests.support.unity_server import UnityServer, unity_server
from tests.tables.test_catalog_managed_on_spark import schema as schema
from tests.tables.test_catalog_managed_on_spark import table as table
from tests.tables.test_catalog_managed_on_spark import version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Cli = Callable[..., Ran]
SET = ("--set", "delta.logRetentionDuration=interval 60 days", "--format", "json")
MANAGED = {"delta.feature.catalogManaged": "supported"}
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    needs_delta("4.4", "catalog-managed tables by this coordinator"),
]


@pytest.fixture
def unity(monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    monkeypatch.delenv("UC_TOKEN", raising=False)
    with unity_server() as running:
        yield running


def publish(unity: UnityServer, spark: SparkSession, name: str, table: str) -> str:
    """Let the server have a catalog-managed table of the session, with its staged commits."""
    folder = table_folder(spark, table)
    staged = {}
    for file in (folder / "_delta_log" / "_staged_commits").glob("*.json"):
        first = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
        staged[int(file.name.split(".")[0])] = first["commitInfo"]["inCommitTimestamp"]
    entry = unity.add(name, f"file://{folder}", table_type="MANAGED", properties=MANAGED)
    unity.commits[entry["table_id"]] = (version(spark, table), staged)
    return f"uc://{unity.authority}/{name}"


def test_a_session_with_the_name(
    spark: SparkSession, table: str, unity: UnityServer, cli: Cli, tmp_path: Path
) -> None:
    name = publish(unity, spark, f"spark_catalog.{table}", table)
    plan, before = str(tmp_path / "plan.json"), version(spark, table)
    planned = cli("plan-upgrade", name, *SET, "--output", plan)
    assert (planned.code, cli("rehearse", plan).code) == (0, 0)
    assert version(spark, table) == before
    ran = cli("apply", plan, "--yes", "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    (properties,) = spark.sql(f"describe detail {table}").select("properties").collect()
    assert properties[0]["delta.logRetentionDuration"] == "interval 60 days"
    unity.tables.clear()
    publish(unity, spark, f"spark_catalog.{table}", table)
    assert cli("plan-upgrade", name, *SET).json["steps"] == []


def test_a_rollout_of_an_inventory(
    spark: SparkSession, table: str, unity: UnityServer, cli: Cli, tmp_path: Path
) -> None:
    name = publish(unity, spark, f"spark_catalog.{table}", table)
    inventory, plans = str(tmp_path / "inventory"), str(tmp_path / "plans")
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nrollout: {waves: [100%]}\ntables:\n  '**':\n    require_properties:\n"
        "      delta.logRetentionDuration: interval 60 days\n"
    )
    assert cli("scan", f"uc://{unity.authority}", "--inventory", inventory).code == 0
    planned = cli("plan", inventory, "--policy", str(policy), "--out", plans)
    assert planned.code == 0, planned.out + planned.err
    ran = cli("apply", plans, "--policy", str(policy), "--yes")
    assert ran.code == 0, ran.out + ran.err
    (properties,) = spark.sql(f"describe detail {table}").select("properties").collect()
    assert properties[0]["delta.logRetentionDuration"] == "interval 60 days"
    unity.tables.clear()
    publish(unity, spark, f"spark_catalog.{table}", table)
    status = cli("status", plans, "--format", "json").json["rollout"]
    assert [each["table"] for each in status["waves"][0]["tables"]] == [name]
    assert status["status"] == "done"


def test_sessions_without_the_name(
    spark: SparkSession, table: str, unity: UnityServer, cli: Cli, tmp_path: Path
) -> None:
    before = version(spark, table)
    # Another table of the session has the name.
    spark.sql("create table managed.same (id int) using delta")
    other = spark.sql("describe detail managed.same").collect()[0]["location"]
    for catalog, cause in (
        ("main", "main"),
        ("spark_catalog", f"spark_catalog.managed.same is at {other.replace('file:', 'file://')}"),
    ):
        unity.tables.clear()
        name = publish(unity, spark, f"{catalog}.managed.same", table)
        plan = str(tmp_path / "plan.json")
        assert cli("plan-upgrade", name, *SET, "--output", plan).code == 0
        for words in (("rehearse", plan), ("apply", plan, "--yes"), ("apply", plan, "--dry-run")):
            ran = cli(*words)
            shown = " ".join((ran.out + ran.err).split())
            assert ran.code == 3, shown
            assert cause in shown
            assert f"use a Spark session whose catalog {catalog} is uc://{unity.authority}" in shown
            # A catalog-managed table must not be changed by its path.
            assert "by its location" not in shown
        # What a session without the catalog shows does not accuse the entry.
        (found,) = cli("inspect", name, "--reader", "spark", "--format", "json").json["tables"]
        assert not [each for each in found.get("findings", ()) if each["rule"] >= "DP5"]
    assert version(spark, table) == before


def test_an_external_table_can_be_planned_by_its_location(
    spark: SparkSession, unity: UnityServer, cli: Cli, tmp_path: Path
) -> None:
    folder, plan = tmp_path / "t", str(tmp_path / "plan.json")
    spark.range(1).write.format("delta").save(str(folder))
    unity.add("main.s.t", f"file://{folder}")
    name = f"uc://{unity.authority}/main.s.t"
    assert cli("plan-upgrade", name, *SET, "--output", plan).code == 0
    ran = cli("apply", plan, "--yes", "--format", "json")
    assert ran.code == 3
    assert f"or plan an external table by its location, file://{folder}" in ran.out
    assert cli("plan-upgrade", str(folder), *SET, "--output", plan).code == 0
    assert cli("apply", plan, "--yes").code == 0
