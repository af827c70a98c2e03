"""An inventory that cannot be read is an error about the inventory, not about a table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.conftest import Ran

Cli = Callable[..., Ran]
CLIENT = ("--client", "trino@476")


@pytest.fixture
def inventory(tmp_path: Path, cli: Cli) -> Path:
    write_deltalake(str(tmp_path / "lake" / "one"), pa.table({"id": [1]}))
    where = tmp_path / "inventory"
    assert cli("scan", str(tmp_path / "lake"), "--inventory", str(where)).code == 0
    return where


def damage(table: Path) -> None:
    for commit in (table / "_delta_log").glob("*.json"):
        commit.write_text('{"broken')


@pytest.mark.parametrize("table", ["scans", "tables", "features", "findings", "errors"])
@pytest.mark.parametrize("break_it", [damage, shutil.rmtree])
def test_check_counts_no_table(
    table: str, break_it: Callable[[Path], None], inventory: Path, cli: Cli
) -> None:
    break_it(inventory / table)
    ran = cli("check", str(inventory), *CLIENT)
    assert ran.code == 3
    assert f"table {table}" in ran.out
    assert "\n0 tables, 1 unreadable input; verdicts: none;" in ran.out
    found = json.loads(cli("check", str(inventory), *CLIENT, "--format", "json").out)
    assert (found["summary"]["tables"], found["summary"]["unreadable"]) == (0, 1)
    assert [each["error"]["code"] for each in found["errors"]] == ["corrupt-log"]


def test_the_other_inputs_are_checked_and_planned(
    inventory: Path, cli: Cli, tmp_path: Path
) -> None:
    damage(inventory / "tables")
    table = str(tmp_path / "lake" / "one")
    checked = cli("check", str(inventory), table, *CLIENT)
    assert checked.code == 3
    assert "\n1 table, 1 unreadable input; verdicts: 2 ok;" in checked.out
    planned = cli("plan-downgrade", str(inventory), table, "--lowest", "--format", "json")
    assert planned.code == 3
    found = json.loads(planned.out)
    assert [each["table"] for each in found["plans"]] == [str(inventory), table]
    assert ["error" in each for each in found["plans"]] == [True, False]


def test_an_invalid_condition_is_a_mistake_of_the_user(inventory: Path, cli: Cli) -> None:
    ran = cli("plan-downgrade", str(inventory), "--lowest", "--where", "nothing = 1")
    assert ran.code == 2
    assert "the query on the inventory failed" in ran.err


def test_check_says_which_options_an_inventory_does_not_use(inventory: Path, cli: Cli) -> None:
    ran = cli("check", str(inventory), *CLIENT, "--look-in-files")
    assert ran.code == 0
    assert f"{inventory}: --look-in-files does not apply to inventories" in ran.out
    assert cli("check", str(inventory), *CLIENT, "--scan", "2999-01-01").code == 0
