"""Who uses the tables, from Python: the same answer as the command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from deltaproto import ResultError, TableError, UsageError, discover
from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](tmp_path / "lake" / name)
    return tmp_path / "lake"


def test_it_is_the_json_of_the_command(cli: Cli, lake: Path) -> None:
    mine = json.loads(json.dumps(discover(lake).to_dict()))
    said = cli("discover", str(lake), "--format", "json").json
    assert mine == {name: said[name] for name in mine}
    assert mine["clients"]


def test_a_client_has_flat_attributes(lake: Path) -> None:
    found = discover(lake)
    (use,) = found.clients
    assert (use.client, use.version, use.confidence) == ("delta-spark", "4.4.0", "certain")
    assert use.access == ("append", "dml", "maintain")
    assert [Path(table).name for table in use.tables] == ["customers", "events", "orders"]
    assert (use.commits, use.requests, found.tables) == (67, 0, 3)
    assert use.last_seen == datetime(2026, 9, 24, 2, 13, 20, tzinfo=UTC)
    assert use.principals == {"user": ("etl",)}
    assert (found.unidentified, found.errors, found.ok) == ((), {}, True)
    (row,) = found.rows()
    assert row["principals"] == ["user etl"]
    assert found.rows().to_pandas()["commits"].tolist() == [67]


def test_one_or_several_tables_and_an_inventory(lake: Path) -> None:
    deltaproto.scan(lake, inventory=lake.parent / "inventory")
    assert discover(lake.parent / "inventory").tables == 3
    assert discover([lake / "orders", lake / "events"]).tables == 2
    hidden = discover(lake / "orders", pseudonymize=True).clients[0].principals
    assert hidden["user"][0].startswith("sha256:")


def test_an_inventory_keeps_what_was_counted(cli: Cli, lake: Path) -> None:
    deltaproto.scan(lake, inventory=lake.parent / "inventory")
    inventory = lake.parent / "inventory"
    discover(inventory, store=False)
    discover(inventory, days=30_000)
    assert not (inventory / "clients_seen").exists()
    assert discover(inventory).clients[0].commits == 67
    assert (inventory / "clients_seen").exists()
    shutil.rmtree(lake / "orders")
    mine = json.loads(json.dumps(discover(inventory).to_dict()))
    said = cli("discover", str(inventory), "--format", "json").json
    assert mine == {name: said[name] for name in mine}
    # What the earlier run counted of the table that is gone.
    assert sum(each["commits"] for each in mine["clients"]) == 67


def test_unidentified_programs_are_separate(log: Log) -> None:
    log.commit(0, commit_info(engineInfo="loader/1"), protocol(1, 2), metadata())
    found = discover(log.table)
    assert found.clients == ()
    (use,) = found.unidentified
    assert (use.client, use.version, use.mark) == (None, None, "loader/1")
    assert repr(found) == "<Discovery of 1 table: 0 clients, 1 unidentified>"


def test_an_unread_table_never_stops_the_others_and_is_never_ok(lake: Path) -> None:
    found = discover([lake / "orders", lake / "missing"])
    assert (found.tables, found.complete, found.ok) == (1, False, False)
    ((name, error),) = found.errors.items()
    assert (Path(name).name, error.code) == ("missing", "not-found")
    with pytest.raises(
        ResultError, match=r"1 table or log could not be read completely; .*missing"
    ) as raised:
        found.raise_for_status()
    assert int(raised.value.exit_code) == 3
    with pytest.raises(TableError):
        discover(lake / "missing")


def test_an_access_log_without_a_known_line_is_never_ok(lake: Path) -> None:
    log = lake.parent / "access.log"
    log.write_text("of no known format\n")
    found = discover(lake, access_logs=[str(log)])
    assert list(found.errors) == [str(log)]
    assert not found.ok


def test_a_policy_is_written_and_extended(lake: Path) -> None:
    policy = lake.parent / "policy.yaml"
    found = discover(lake)
    assert "+  - client: delta-spark@4.4.0" in found.write_policy(policy)
    assert found.write_policy(policy) == ""
    assert deltaproto.check(lake / "orders", policy).ok
    with pytest.raises(UsageError, match="cannot write"):
        found.write_policy(lake / "nowhere" / "policy.yaml")


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"tables": []}, "no tables"),
        ({"tables": "x", "days": 0}, "days is 0"),
        ({"tables": "x", "access_logs": "x"}, "access_logs is a single string"),
    ],
)
def test_what_makes_no_sense(named: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        discover(**named)


def test_notebooks_show_every_principal_of_many_tables(tmp_path: Path) -> None:
    for number in range(7):
        log = Log(tmp_path / f"t{number}")
        info = commit_info(engineInfo="loader 7", userName=f"u{number}")
        log.commit(0, info, protocol(1, 2), metadata())
    shown = discover(tmp_path)._repr_html_()
    assert all(f"u{number}" in shown for number in range(7))
    assert "--details" not in shown
