"""Tables that a Spark catalog knows, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from deltaproto.errors import ErrorCode, UsageError
from deltaproto.fleet.catalogs import _parse_information, find_catalog_tables
from deltaproto.fleet.discovered import DiscoveredTable, UnreadablePlace
from tests.conftest import Ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Cli = Callable[..., Ran]


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A schema of Delta tables, other tables, and views."""
    folder = tmp_path_factory.mktemp("shop")
    outside = folder / "out side" / "orders"
    comment = "two\nLocation: file:/tmp/elsewhere\nProvider: parquet"
    for statement in (
        f"create schema shop location '{folder}/warehouse'",
        f"create table shop.orders (id bigint) using delta location '{outside}'",
        f"create table shop.again using delta location '{outside}'",
        f"create table shop.items (id bigint) using delta comment '{comment}'",
        "create table shop.odd (`Location` string, `Provider` string) using delta",
        "create table shop.logs (id bigint) using parquet",
        "create view shop.seen as select * from shop.orders",
    ):
        spark.sql(statement)
    spark.range(1).createOrReplaceTempView("passing")
    yield folder
    spark.catalog.dropTempView("passing")
    spark.sql("drop schema shop cascade")


def names(spark: SparkSession, *asked: str) -> list[str]:
    found = list(find_catalog_tables(spark, asked))
    assert all(isinstance(each, DiscoveredTable) for each in found)
    return sorted(each.table for each in found if isinstance(each, DiscoveredTable))


def test_delta_tables_and_nothing_else(spark: SparkSession, shop: Path) -> None:
    expected = [f"spark_catalog.shop.{name}" for name in ("again", "items", "odd", "orders")]
    assert names(spark, "shop") == expected
    assert names(spark, "spark_catalog.shop") == expected
    assert set(expected) <= set(names(spark, "spark_catalog"))
    assert names(spark, "spark_catalog.shop.items") == ["spark_catalog.shop.items"]
    assert names(spark, "`spark_catalog`.`shop`.`odd`") == ["spark_catalog.shop.odd"]
    others = ("spark_catalog.shop.logs", "spark_catalog.shop.seen")
    nothing = list(find_catalog_tables(spark, others))
    assert [each.error.code for each in nothing if isinstance(each, UnreadablePlace)] == [
        ErrorCode.NO_TABLES
    ] * len(others)
    assert len(nothing) == len(others)
    for unknown in ("nowhere", "spark_catalog.nowhere", "a.b.c.d", "a..b"):
        with pytest.raises(UsageError):
            list(find_catalog_tables(spark, (unknown,)))


def test_each_location_is_the_tables(spark: SparkSession, shop: Path) -> None:
    for found in find_catalog_tables(spark, ("shop",)):
        assert isinstance(found, DiscoveredTable)
        detail = spark.sql(f"describe detail {found.table}").collect()[0]
        assert found.uri == detail["location"].replace("file:/", "file:///", 1).replace(" ", "%20")


def types(spark: SparkSession) -> dict[str, tuple[str | None, str | None]]:
    found = find_catalog_tables(spark, ("shop",))
    tables = [each for each in found if isinstance(each, DiscoveredTable)]
    return {each.table.rpartition(".")[2]: (each.catalog, each.type) for each in tables}


def test_without_the_extended_list(
    spark: SparkSession, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, kinds = names(spark, "shop"), types(spark)
    assert kinds["items"] == ("spark", "managed")
    assert kinds["orders"] == ("spark", "external")
    # Not every catalog knows SHOW TABLE EXTENDED.
    monkeypatch.setattr("deltaproto.fleet.catalogs._show_table_extended", lambda *_: {})
    assert names(spark, "shop") == told
    assert types(spark) == kinds


def test_settings_that_a_server_does_not_show(
    spark: SparkSession, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(*_: object) -> None:
        raise RuntimeError("[CONFIG_NOT_AVAILABLE] Configuration is not available.")

    monkeypatch.setattr(type(spark.conf), "get", hidden)
    assert {catalog for catalog, _ in types(spark).values()} == {None}


def test_a_scan_of_a_catalog(spark: SparkSession, shop: Path, cli: Cli, tmp_path: Path) -> None:
    root, inventory = str(shop / "out side"), str(tmp_path / "i")
    words = ("--catalog", "shop", "--inventory", inventory, "--format", "json")
    assert cli("scan", root, *words).json["tables"] == 3
    rows = DeltaTable(f"{inventory}/tables").to_pyarrow_table().to_pylist()
    kept = {row["table"]: row["location"] for row in rows}
    # One location under two names and a path is one table, and it keeps a name.
    assert sum("orders" in location for location in kept.values()) == 1
    assert all(table.startswith("spark_catalog.shop.") for table in kept)
    several = {row["table"]: row["other_names"] for row in rows if row["other_names"]}
    assert several == {"spark_catalog.shop.again": ["spark_catalog.shop.orders"]}
    # A table that the user names keeps that name, with each engine.
    orders = ("--catalog", "spark_catalog.shop.orders", *words)
    on_spark = cli("scan", *orders, "--engine", "spark")
    assert on_spark.json["tables"] == 3
    newest = [
        row
        for row in DeltaTable(f"{inventory}/tables").to_pyarrow_table().to_pylist()
        if row["scan_id"] == on_spark.json["scan_id"]
    ]
    several = {row["table"]: row["other_names"] for row in newest if row["other_names"]}
    assert several == {"spark_catalog.shop.orders": ["spark_catalog.shop.again"]}
    features = DeltaTable(f"{inventory}/features").to_pyarrow_table().to_pylist()
    mine = [row for row in features if row["scan_id"] == on_spark.json["scan_id"]]
    assert {row["table"] for row in mine} == {row["table"] for row in newest}
    findings = DeltaTable(f"{inventory}/findings").to_pyarrow_table().to_pylist()
    compared = [row for row in findings if row["rule"] == "DP505"]
    # One in the scan of each engine, under the name that it shows.
    assert [row["table"] for row in sorted(compared, key=lambda row: row["scan_id"])] == [
        "spark_catalog.shop.again",
        "spark_catalog.shop.orders",
    ]
    assert on_spark.json["findings"] == sum(
        row["scan_id"] == on_spark.json["scan_id"] for row in findings
    )
    checked = cli(
        "check", inventory, "--engine", "spark", "--client", "trino@476", "--format", "json"
    )
    assert "DP505" in {each["rule"] for each in checked.json["findings"]}
    assert {(row["catalog"], row["table_type"]) for row in newest} == {
        ("spark", "managed"),
        ("spark", "external"),
    }
    # Databricks turns nothing on outside Unity Catalog, and these tables are certainly outside.
    scan = ("--scan", on_spark.json["scan_id"], "--format", "json")
    forecast = cli("forecast", inventory, *scan, "--client", "trino@476")
    assert (forecast.code, forecast.json["complete"]) == (0, True)
    assert on_spark.json["drift"] is None
    # A catalog in memory has the tables of this session only: others may be in a real one.
    DeltaTable.create(str(shop / "lake" / "alone"), DeltaTable(f"{inventory}/scans").schema())
    whole = cli("scan", str(shop / "lake"), "--catalog", "spark_catalog", "--format", "json")
    assert "DP502" not in {each["rule"] for each in whole.json["by_rule"]}
    assert cli("scan", "--catalog", "nowhere").code == 2


@pytest.mark.parametrize("line", ["Location: a", "Type: VIEW", "Provider: parquet"])
def test_what_people_write_is_not_taken_for_facts(line: str) -> None:
    text = f"Type: MANAGED\nProvider: delta\nComment: x\n{line}\nLocation: file:/t\nSchema: root\n"
    assert _parse_information(text) == {
        "Type": "MANAGED",
        "Provider": "delta",
        "Location": "file:/t",
    }
