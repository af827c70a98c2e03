"""`scan --list-tables` prints the tables found, and reads none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from tests.conftest import Ran
from tests.support.contract import validate

Cli = Callable[..., Ran]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](tmp_path / "lake" / name)
    return tmp_path / "lake"


def test_the_lines_are_the_tables_of_a_scan(cli: Cli, lake: Path) -> None:
    ran = cli("scan", str(lake), "--list-tables")
    assert ran.code == 0
    assert sorted(ran.out.splitlines()) == sorted(str(lake / name) for name in DEMO_TABLES)
    assert cli("scan", str(lake), "--format", "json").json["tables"] == len(DEMO_TABLES)


def test_a_table_that_cannot_be_read_is_listed(cli: Cli, lake: Path) -> None:
    (log,) = (lake / "orders" / "_delta_log").glob(f"{0:020}.json")
    log.write_text("{")
    assert len(cli("scan", str(lake), "--list-tables").out.splitlines()) == 3


def test_json_has_locations_and_what_could_not_be_searched(cli: Cli, lake: Path) -> None:
    ran = cli("scan", str(lake), str(lake / "none"), "--list-tables", "--format", "json")
    assert (ran.code, ran.json["complete"]) == (3, False)
    validate("scan-list", ran.json)
    assert [each["location"] for each in ran.json["listed"]] == sorted(
        (lake / name).as_uri() for name in DEMO_TABLES
    )
    (error,) = ran.json["errors"]
    assert error["error"]["code"] == "not-found"
    assert "does not exist" in ran.err


def test_patterns_and_lists_choose(cli: Cli, lake: Path, tmp_path: Path) -> None:
    ran = cli("scan", str(lake), "--list-tables", "--exclude", "orders")
    assert not [line for line in ran.out.splitlines() if line.endswith("orders")]
    (tmp_path / "list.txt").write_text(f"{lake}/orders\n{lake}/none\n")
    ran = cli("scan", "--list", str(tmp_path / "list.txt"), "--list-tables")
    assert ran.out.splitlines() == [f"{lake}/orders", f"{lake}/none"]


def test_nothing_is_saved(cli: Cli, lake: Path, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    assert cli("scan", str(lake), "--list-tables", "--inventory", str(inventory)).code == 0
    assert not inventory.exists()
    ran = cli("scan", str(lake), "--list-tables", "--inventory", str(inventory), "--resume")
    assert (ran.code, "--list-tables and --resume" in ran.err) == (2, True)


def test_an_empty_root_is_not_a_pass(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = cli("scan", str(tmp_path / "empty"), "--list-tables")
    assert (ran.code, ran.out) == (3, "")
    assert cli("scan", str(tmp_path / "empty"), "--list-tables", "--allow-empty").code == 0
