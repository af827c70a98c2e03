"""The client of Hive metastores, on a real one from pyspark's jars."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from deltaproto.fleet.catalog_roots import list_tables
from deltaproto.location import locate
from deltaproto.tables.catalogs.hive import HiveMetastore
from deltaproto.tables.catalogs.interface import CatalogFailure, CatalogTable, Tally
from tests.conftest import Ran
from tests.support.hive_metastore import Writer, metastore
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.retries import FakeClock
from tests.support.spark_settings import SMALL_TABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.heavy]
Cli = Callable[..., Ran]
DELTA = {"spark.sql.sources.provider": "delta"}
MANY = 1000


class Hive(NamedTuple):
    port: int
    writer: Writer
    folder: Path

    @property
    def url(self) -> str:
        return f"hms://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    folder = tmp_path_factory.mktemp("hive")
    with metastore(folder) as port:
        yield Hive(port, Writer(port), folder)


def listed(
    hive: Hive, name: str = ""
) -> tuple[dict[str, CatalogTable], list[CatalogFailure], HiveMetastore]:
    client = HiveMetastore(f"127.0.0.1:{hive.port}", clock=FakeClock().clock())
    found = list(list_tables(client, locate(f"{hive.url}/{name}")))
    tables = {each.name: each for each in found if isinstance(each, CatalogTable)}
    return tables, [each for each in found if isinstance(each, CatalogFailure)], client


def make(folder: Path) -> Path:
    Log(folder).commit(0, commit_info(), protocol(1, 2), metadata(), add())
    return folder


def test_what_a_metastore_has(hive: Hive, tmp_path: Path) -> None:
    hive.writer.database("sales", tmp_path)
    path = {"path": f"file:{tmp_path}/a b%20c"}
    place = f"file:{tmp_path}/ours-__PLACEHOLDER__"
    hive.writer.table("sales", "ours", place, DELTA, path)
    hive.writer.table("sales", "owned", f"file:{tmp_path}/owned", DELTA, kind="MANAGED_TABLE")
    hive.writer.table("sales", "logs", f"file:{tmp_path}/logs", {})
    hive.writer.table("sales", "seen", f"file:{tmp_path}/x", {}, kind="VIRTUAL_VIEW")
    tables, failures, client = listed(hive, "sales")
    assert {name: (each.location, each.type, each.owner) for name, each in tables.items()} == {
        # Hadoop's paths are not encoded.
        "sales.ours": (f"{tmp_path}/a b%20c", "external", "ann"),
        "sales.owned": (f"{tmp_path}/owned", "managed", "ann"),
    }
    assert not failures
    assert (client.counts[Tally.VIEWS], client.counts[Tally.OTHER_FORMATS]) == (1, 1)
    assert set(listed(hive)[0]) >= set(tables)
    assert set(listed(hive, "SALES.Ours")[0]) == {"sales.ours"}
    for name, code in (
        ("sales.seen", "not-a-delta-table"),
        ("sales.nobody", "not-found"),
        ("nobody.ours", "not-found"),
        ("nobody", "not-found"),
    ):
        tables, failures, _ = listed(hive, name)
        assert (tables, [str(each.error.code) for each in failures]) == ({}, [code]), name


def test_a_thousand_tables(hive: Hive, tmp_path: Path) -> None:
    hive.writer.database("many", tmp_path)
    for number in range(MANY):
        made = make(tmp_path / f"t{number}")
        place = {"path": f"file:{made}"}
        hive.writer.table("many", f"t{number:04}", f"file:{made}-__PLACEHOLDER__", DELTA, place)
    words = [sys.executable, "-m", "deltaproto", "scan", f"{hive.url}/many"]
    ran = subprocess.run(
        [*words, "--inventory", str(tmp_path / "i"), "--no-progress"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("1,000 tables"), ran.stdout


def test_a_table_dropped_while_it_is_scanned(hive: Hive, cli: Cli, tmp_path: Path) -> None:
    hive.writer.database("brief", tmp_path)
    for name in ("kept", "gone"):
        made = make(tmp_path / name)
        hive.writer.table("brief", name, f"file:{made}", DELTA)
    name = f"{hive.url}/brief.kept"
    assert cli("inspect", name).code == 0
    hive.writer.drop("brief", "gone")
    ran = cli("scan", f"{hive.url}/brief", "--format", "json")
    assert (ran.code, ran.json["tables"]) == (0, 1)
    assert cli("inspect", f"{hive.url}/brief.gone", "--format", "json").code == 3


SPARK = """
import sys
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session
port, folder, small = sys.argv[1], sys.argv[2], dict(p.split("=", 1) for p in sys.argv[3:])
spark = spark_session(SparkSettings(conf={
    **small,
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}",
    "spark.sql.warehouse.dir": f"{folder}/warehouse",
}))
for statement in (
    f"create schema shop location '{folder}/shop dir'",
    "create table shop.owned (id bigint) using delta",
    f"create table shop.outside (id bigint) using delta location '{folder}/out side'",
    f"create table shop.encoded (id bigint) using delta location '{folder}/a%20b'",
    f"create table shop.letters (id bigint) using delta location '{folder}/naïve'",
    "create table shop.logs (id bigint) using parquet",
    "create table shop.old (id bigint) stored as orc",
    "create view shop.seen as select * from shop.owned",
):
    spark.sql(statement)
for name in ("owned", "outside", "encoded", "letters"):
    print(name, spark.sql(f"describe detail shop.{name}").collect()[0]["id"])
"""


def test_the_tables_that_spark_creates(hive: Hive, cli: Cli, tmp_path: Path) -> None:
    small = [f"{name}={value}" for name, value in SMALL_TABLES.items()]
    words = [sys.executable, "-c", SPARK, str(hive.port), str(tmp_path), *small]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-3000:]
    created = dict(line.split() for line in ran.stdout.splitlines() if line.count(" ") == 1)
    assert len(created) == 4
    tables, failures, client = listed(hive, "shop")
    assert (set(tables), failures) == ({f"shop.{name}" for name in created}, [])
    assert (client.counts[Tally.VIEWS], client.counts[Tally.OTHER_FORMATS]) == (1, 2)
    for name, id_ in created.items():
        found = cli("inspect", f"{hive.url}/shop.{name}", "--format", "json").json["tables"][0]
        assert found["id"] == id_, name
    # Nothing that Spark writes into a metastore contradicts the log.
    scanned = cli("scan", f"{hive.url}/shop", "--format", "json")
    assert (scanned.code, scanned.json["tables"]) == (0, 4)
    assert not [each for each in scanned.json["by_rule"] if each["rule"].startswith("DP5")]
