"""Tables of a Hive metastore (embedded Derby), and of a catalog beside it, by name.

The setting that asks for Hive is static, so all of it is in processes of its own: one makes the
tables, a later one runs the commands. What it finds is what the metastore kept.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.connect_server import Answer, child
from tests.support.engines import RUNNING, needs_drop
from tests.support.spark_settings import SMALL_TABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.heavy]
ORDERS = (
    "sales.orders",
    "spark_catalog.sales.orders",
    "`sales`.`orders`",
    "spark_catalog.`SALES`.Orders",
)
ODD = "other.APP.`odd name.x`"
REFUSED = {
    "sales.seen": "not-a-delta-table",
    "sales.logs": "not-a-delta-table",
    "sales.old": "not-a-delta-table",
    "sales.gone": "not-a-delta-table",
    "sales.hollow": "not-a-delta-table",
    ODD: "not-a-delta-table",
    "sales.nobody": "not-found",
    "nobody.orders": "not-found",
    "nowhere.sales.orders": "not-found",
    "sales.`odd name.x`": "not-found",
}
LISTED = {
    "sales": 2,
    "spark_catalog.sales": 2,
    "spark_catalog": 2,
    "spark_catalog.sales.orders": 1,
    "spark_catalog.sales.seen": 0,
    "spark_catalog.sales.old": 0,
    "other": 0,
    ODD: 0,
}
"""what a scan of a name finds to read"""
UNKNOWN = ("nobody", "sales.orders", "sales.nobody", "nowhere.sales", "a.b.c.d")
BY_NAME = "spark_catalog.`sales`.orders"
JSON = ("--format", "json")
# Where the driver of Spark's Derby is.
DERBY = "iapi.jdbc" if RUNNING.at_least("4.0") else "jdbc"
CLIENT = ("--client", "delta-spark@2.2.0")


class Hive(NamedTuple):
    """A warehouse, and what was answered about it."""

    folder: Path
    answers: dict[tuple[str, ...], Answer]

    def told(self, *words: str) -> Answer:
        """The answer to a command line."""
        return self.answers[words]

    def json(self, *words: str) -> dict[str, Any]:
        """The same, in JSON."""
        document: dict[str, Any] = json.loads(self.told(*words).out)
        return document


def settings(folder: Path) -> dict[str, str]:
    """What a user gives with --spark-conf."""
    beside = "spark.sql.catalog.other"
    return {
        **SMALL_TABLES,
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        ),
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        # A catalog whose names may be anything; those of a metastore are letters, digits and _.
        beside: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{beside}.url": f"jdbc:derby:;databaseName={folder}/other;create=true",
        f"{beside}.driver": f"org.apache.derby.{DERBY}.AutoloadedDriver",
    }


def statements(folder: Path) -> Iterator[str]:
    """The tables."""
    yield "create schema sales"
    yield (
        "create table sales.orders (id bigint, s string) using delta "
        "tblproperties ('delta.enableDeletionVectors'='true')"
    )
    yield "insert into sales.orders select id, 'x' from range(0, 20, 1, 1)"
    yield "delete from sales.orders where id = 3"
    for name, place in (("outside", "out side"), ("gone", "gone"), ("hollow", "hollow")):
        yield f"create table sales.{name} (id bigint) using delta location '{folder}/{place}'"
    yield "create view sales.seen as select * from sales.orders"
    yield "create table sales.logs (id bigint) using parquet"
    yield f"create table sales.same (id bigint) using parquet location '{folder}/lake/same'"
    yield "create table sales.old (id bigint) stored as orc"
    yield f"create table {ODD} (id int)"


def lines(folder: Path) -> Iterator[tuple[str, ...]]:
    """The commands, in order."""
    for name in (*ORDERS, *REFUSED):
        yield "inspect", name, *JSON
    yield "inspect", "spark_catalog.sales.outside", "--reader", "all", *JSON
    yield "history", BY_NAME, *JSON
    yield "history", "sales.gone", *JSON
    yield "check", BY_NAME, *CLIENT, *JSON
    for name in (*LISTED, *UNKNOWN):
        yield "scan", "--catalog", name, *JSON
    yield "scan", "--catalog", "sales", "--inventory", f"{folder}/inventory", *JSON
    for name in ("spark_catalog", "spark_catalog.sales"):
        # Two tables of the folder are in the catalog: one under another format.
        words = ("scan", "--catalog", name, f"{folder}/lake", f"{folder}/out side")
        yield *words, "--inventory", f"{folder}/compared", *JSON
    yield "plan-downgrade", BY_NAME, "--drop", "deletionVectors", *JSON
    yield (
        *("plan-upgrade", BY_NAME, "--set", "delta.appendOnly=true", *JSON),
        *("--output", f"{folder}/plan.json"),
    )
    yield "runbook", f"{folder}/plan.json"
    yield "apply", f"{folder}/plan.json", "--yes", *JSON
    yield "inspect", BY_NAME, *JSON


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Hive:
    folder, here = tmp_path_factory.mktemp("hive"), tmp_path_factory.mktemp("here")
    conf = settings(folder)
    child("tests.support.statements", {"conf": conf, "statements": [*statements(folder)]}, here)
    shutil.rmtree(folder / "gone")
    shutil.rmtree(folder / "hollow" / "_delta_log")
    for name in ("same", "alone"):
        write_deltalake(folder / "lake" / name, pa.table({"id": [1]}))
    given = [word for item in conf.items() for word in ("--spark-conf", "=".join(item))]
    asked = list(lines(folder))
    told = child("tests.support.command_lines", [[*words, *given] for words in asked], here)
    # Derby's own log; neither a warehouse nor a metastore.
    assert [path.name for path in here.iterdir()] == ["derby.log"]
    return Hive(folder, {words: Answer(*each) for words, each in zip(asked, told, strict=True)})


@pytest.mark.parametrize("name", ORDERS)
def test_one_table_by_every_name(hive: Hive, name: str) -> None:
    assert hive.told("inspect", name, *JSON).code == 0
    (table,) = hive.json("inspect", name, *JSON)["tables"]
    assert (table["table"], table["reader"], table["version"]) == (name, "spark", 2)
    assert table["location"] == f"file:{hive.folder}/warehouse/sales.db/orders"
    assert table["protocol"]["readerFeatures"] == ["deletionVectors"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_delta_table_is_told(hive: Hive, name: str) -> None:
    assert hive.told("inspect", name, *JSON).code == 3
    (entry,) = hive.json("inspect", name, *JSON)["tables"]
    assert (entry["table"], entry["error"]["code"]) == (name, REFUSED[name])
    assert "\n" not in entry["error"]["message"]
    assert entry["error"]["hint"]


def test_every_reader_finds_a_table_with_a_space_in_its_path(hive: Hive) -> None:
    words = ("inspect", "spark_catalog.sales.outside", "--reader", "all", *JSON)
    assert hive.told(*words).code == 0
    (table,) = hive.json(*words)["tables"]
    assert {answer["version"] for answer in table["readers"].values()} == {0}
    assert not table["findings"]


def test_history_and_check_by_name(hive: Hive) -> None:
    events = hive.json("history", BY_NAME, *JSON)
    assert events["table"] == BY_NAME
    assert "deletionVectors" in events["events"][-1]["features_added"]
    gone = hive.told("history", "sales.gone", *JSON)
    assert (gone.code, json.loads(gone.out)["error"]["code"]) == (3, "not-a-delta-table")
    verdicts = hive.json("check", BY_NAME, *CLIENT, *JSON)["verdicts"]
    assert {each["table"] for each in verdicts} == {BY_NAME}
    assert {each["verdict"] for each in verdicts} == {"refused"}


@pytest.mark.parametrize("name", LISTED)
def test_a_scan_reads_the_delta_tables_of_a_name(hive: Hive, name: str) -> None:
    words = ("scan", "--catalog", name, *JSON)
    scan = hive.json(*words)
    assert scan["tables"] == LISTED[name], scan
    # Two of the schema's names stand for folders without a log.
    broken = 2 if "." not in name.removeprefix("spark_catalog.sales") and name != "other" else 0
    # A name without Delta tables is an error of its own.
    errors = broken + (not LISTED[name])
    assert scan["errors"] == errors
    assert hive.told(*words).code == (3 if errors else 0)


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_name_that_the_catalog_does_not_know(hive: Hive, name: str) -> None:
    answer = hive.told("scan", "--catalog", name, *JSON)
    assert (answer.code, json.loads(answer.out)["error"]["code"]) == (2, "usage")


def test_the_inventory_keeps_names_and_places(hive: Hive) -> None:
    kept = DeltaTable(str(hive.folder / "inventory" / "tables")).to_pyarrow_table().to_pylist()
    assert {row["table"]: row["location"] for row in kept} == {
        "spark_catalog.sales.orders": f"file://{hive.folder}/warehouse/sales.db/orders",
        "spark_catalog.sales.outside": f"file://{hive.folder}/out%20side",
    }
    errors = DeltaTable(str(hive.folder / "inventory" / "errors")).to_pyarrow_table().to_pylist()
    assert {row["table"] for row in errors} == {
        "spark_catalog.sales.gone",
        "spark_catalog.sales.hollow",
    }


def test_a_table_without_an_entry(hive: Hive) -> None:
    scans = {
        hive.json(*words)["scan_id"]: words[2]
        for words in hive.answers
        if f"{hive.folder}/compared" in words
    }
    findings = DeltaTable(f"{hive.folder}/compared/findings").to_pyarrow_table().to_pylist()
    compared = [row for row in findings if row["rule"] in ("DP501", "DP502")]
    # A schema is not the whole catalog.
    assert {(scans[row["scan_id"]], row["rule"], row["table"]) for row in compared} == {
        ("spark_catalog", "DP502", f"{hive.folder}/lake/alone"),
        *(
            (name, "DP501", f"spark_catalog.sales.{table}")
            for name in ("spark_catalog", "spark_catalog.sales")
            for table in ("gone", "hollow")
        ),
    }
    (alone,) = (row for row in compared if row["rule"] == "DP502")
    assert alone["message"].startswith("catalog spark_catalog has no entry for this location")


@needs_drop("deletionVectors")
def test_a_plan_by_name_is_carried_out(hive: Hive) -> None:
    down = hive.json("plan-downgrade", BY_NAME, "--drop", "deletionVectors", *JSON)
    assert (down["table"], down["blocked"]) == (BY_NAME, [])
    plan = json.loads((hive.folder / "plan.json").read_text())
    for statement in (*(s["sql"] for s in down["steps"]), *(s["sql"] for s in plan["steps"])):
        assert statement is None or "`spark_catalog`.`sales`.`orders`" in statement
    runbook = hive.told("runbook", f"{hive.folder}/plan.json")
    assert runbook.code == 0
    assert plan["steps"][0]["sql"] in runbook.out
    applied = hive.told("apply", f"{hive.folder}/plan.json", "--yes", *JSON)
    (result,) = json.loads(applied.out)["results"]
    assert (applied.code, result["status"], result["version"]) == (0, "done", 3)
    (table,) = hive.json("inspect", BY_NAME, *JSON)["tables"]
    assert table["configuration"]["delta.appendOnly"] == "true"
