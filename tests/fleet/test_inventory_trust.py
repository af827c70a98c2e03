"""An inventory that lost rows fails, and what its newest scan did not look at is shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from deltaproto.cli.inventories import scan_notices
from deltaproto.fleet.past import PastScan
from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
CHECK = ("check", "--client", "trino@476", "--format", "json")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name in ("a/one", "a/two", "b/three"):
        path = tmp_path / "lake" / name
        Log(path).commit(0, commit_info(), protocol(1, 2), metadata(id=name))
    return tmp_path / "lake"


def test_rows_that_are_lost(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--to", where).code == 0
    assert cli(*CHECK, where).code == 0
    DeltaTable(f"{where}/tables").delete("location LIKE '%two%'")
    ran = cli(*CHECK, where)
    assert ran.code == 3
    assert "rows are lost" in ran.json["errors"][0]["error"]["message"]
    ran = cli("report", where)
    assert (ran.code, "rows are lost" in ran.err) == (3, True)


def test_plans_and_drift_with_lost_rows(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    for _ in range(2):
        assert cli("scan", str(lake), "--to", where).code == 0
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true", "--format", "json")
    assert cli(*plan).code == 0
    assert cli("drift", where).code == 0
    DeltaTable(f"{where}/tables").delete("location LIKE '%two%'")
    ran = cli(*plan)
    assert (ran.code, "rows are lost" in ran.out) == (3, True)
    ran = cli("drift", where)
    assert (ran.code, "rows are lost" in ran.err) == (3, True)


def test_a_row_lost_and_another_stored_twice(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--to", where).code == 0
    tables = DeltaTable(f"{where}/tables")
    rows = tables.to_pyarrow_table()
    one = rows.filter([str(each).endswith("one") for each in rows["location"].to_pylist()])
    tables.delete("location LIKE '%two%'")
    write_deltalake(f"{where}/tables", one, mode="append")
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true")
    for command in ((*CHECK, where), ("report", where), plan):
        ran = cli(*command)
        assert (ran.code, "rows are lost" in ran.out + ran.err) == (3, True)


def test_other_roots(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    for name in ("a", "b"):
        assert cli("scan", str(lake / name), "--to", where).code == 0
    (notice,) = cli(*CHECK, where).json["notices"]
    assert f"{lake}/a" in notice
    assert "choose one with --scan" in notice
    assert "choose one with --scan" in cli("report", where).err


@pytest.mark.parametrize(
    ("age", "words"), [(timedelta(days=8), "8 days old"), (timedelta(days=-1), "in the future")]
)
def test_the_age(age: timedelta, words: str) -> None:
    now = datetime.now(UTC)
    scan = PastScan("id", now - age, now - age, 1, 0, ("file:///a",), (), ())

    class Asked:
        def scans(self) -> list[PastScan]:
            return [scan]

    (notice,) = scan_notices(Asked(), "inventory", scan, now)
    assert words in notice
    assert scan_notices(Asked(), "inventory", scan, scan.ended_at) == []
