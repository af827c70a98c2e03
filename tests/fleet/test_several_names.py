"""Locations with several catalog names: read once, and known by each of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.warning import maintenance_windows_for
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.policy.document.patterns import matches_table
from deltaproto.policy.local_catalog import load_local_policy
from deltaproto.sql.quoting import name_in_statements
from deltaproto.tables.catalogs.interface import CatalogTable
from tests.conftest import Ran
from tests.fleet.test_scan_catalogs import make, rows
from tests.support import contract
from tests.support.unity_server import UnityServer

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]


@pytest.fixture
def orders(unity: UnityServer, tmp_path: Path) -> str:
    """The catalog's URL: one table has three names, another one only its own."""
    place = make(tmp_path / "lake" / "orders")
    unity.add("main.sales.orders", f"file://{place}")
    unity.add("main.sales.lines", f"file://{make(tmp_path / 'lake' / 'lines')}")
    unity.add("old.shop.orders", f"file:{place}/")
    os.symlink(place, tmp_path / "link")
    unity.add("dev.ann.copy", f"file://{tmp_path}/link")
    return f"uc://{unity.authority}"


def policy(folder: Path, text: str) -> str:
    file = folder / "policy.yaml"
    file.write_text(f"policy_version: 1\nclients: []\n{text}", encoding="utf-8")
    return str(file)


def scanned(cli: Cli, inventory: Path, *roots: str) -> Ran:
    ran = cli("scan", *roots, "--inventory", str(inventory), "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    return ran


def names_of(inventory: Path) -> dict[str, list[str] | None]:
    last = max(row["scan_id"] for row in rows(inventory, "scans"))
    return {
        row["table"]: row["other_names"]
        for row in rows(inventory, "tables")
        if row["scan_id"] == last
    }


def test_every_name_is_kept_and_the_table_counts_once(
    cli: Cli, orders: str, tmp_path: Path
) -> None:
    inventory = tmp_path / "inventory"
    ran = scanned(cli, inventory, orders, str(tmp_path / "lake"))
    assert (ran.json["tables"], ran.json["protocols"][0]["tables"]) == (2, 2)
    assert names_of(inventory) == {
        "dev.ann.copy": ["main.sales.orders", "old.shop.orders"],
        "main.sales.lines": None,
    }
    (note,) = ran.json["notes"]
    assert note.startswith("2 catalog names have the location of another table")
    checked = cli("check", str(inventory), "--client", "deltalake@1.6.0", "--format", "json")
    (document,) = contract.documents(checked, "check")
    assert document["summary"]["tables"] == 2
    assert sorted(len(each["other_names"]) for each in document["tables"]) == [0, 2]
    report = cli("report", str(inventory), "--format", "json")
    assert report.json["tables"] == 2
    table = cli("report", str(inventory), "--format", "csv").out.splitlines()
    assert any(line.endswith("main.sales.orders old.shop.orders") for line in table[1:])


def test_the_name_that_the_user_gave_is_shown(cli: Cli, orders: str, tmp_path: Path) -> None:
    name = f"{orders}/old.shop.orders"
    for number, roots in enumerate(((name, orders), (orders, name))):
        inventory = tmp_path / f"inventory{number}"
        scanned(cli, inventory, *roots)
        assert names_of(inventory)["old.shop.orders"] == ["dev.ann.copy", "main.sales.orders"]
        every = rows(inventory, "features") + rows(inventory, "findings")
        assert {row["table"] for row in every} <= {"old.shop.orders", "main.sales.lines"}
    # Twice the same name is one name.
    ran = cli("scan", orders, f"{orders}/main", "--format", "json")
    assert ran.json["notes"][0].startswith("2 catalog names")


def test_the_list_of_tables_has_all_names(cli: Cli, orders: str) -> None:
    ran = cli("scan", orders, "--list-tables", "--format", "json")
    (document,) = contract.documents(ran, "scan-list")
    assert len(document["listed"]) == 2
    (several,) = document["several_names"]
    assert several["location"].endswith("/lake/orders")
    assert sorted(several["names"]) == ["dev.ann.copy", "main.sales.orders", "old.shop.orders"]


@pytest.mark.parametrize("pattern", ["old.shop.*", "main.sales.orders", "dev.**", "**/orders"])
def test_patterns_match_any_name(cli: Cli, orders: str, tmp_path: Path, pattern: str) -> None:
    inventory = tmp_path / "inventory"
    scanned(cli, inventory, orders)
    text = f'tables:\n  "{pattern}":\n    max_reader_version: 1\n'
    words = ("--policy", policy(tmp_path, text), "--format", "json")
    checked = cli("check", str(inventory), *words)
    assert checked.code == 1
    found = {each["table"] for each in checked.json["findings"] if each["rule"] == "DP204"}
    assert len(found) == 1
    (shown,) = [
        each for each in checked.json["settings"] if each["setting"] == "max_reader_version"
    ]
    assert (shown["pattern"], {shown["table"]}) == (pattern, found)
    assert not [each for each in checked.json["findings"] if each["rule"] == "DP301"]


def test_the_most_specific_match_of_any_name_decides(cli: Cli, orders: str, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    scanned(cli, inventory, orders, f"{orders}/main.sales.orders")
    text = (
        'tables:\n  "main.**":\n    max_reader_version: 1\n'
        "  old.shop.orders:\n    max_reader_version: 3\n"
    )
    checked = cli("check", str(inventory), "--policy", policy(tmp_path, text), "--format", "json")
    patterns = {
        each["table"]: each["pattern"]
        for each in checked.json["settings"]
        if each["setting"] == "max_reader_version"
    }
    assert patterns == {"main.sales.orders": "old.shop.orders", "main.sales.lines": "main.**"}
    found = [each["table"] for each in checked.json["findings"] if each["rule"] == "DP204"]
    assert found == ["main.sales.lines"]


def test_waivers_match_any_name(cli: Cli, orders: str, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    scanned(cli, inventory, orders, f"{orders}/main.sales.orders")
    text = (
        'tables:\n  "**":\n    max_reader_version: 1\nwaivers:\n'
        "  - {rule: DP204, table: old.shop.orders, reason: moving, expires: 2099-01-01}\n"
    )
    checked = cli("check", str(inventory), "--policy", policy(tmp_path, text), "--format", "json")
    assert [each["table"] for each in checked.json["suppressed"]] == ["main.sales.orders"]
    found = [each["table"] for each in checked.json["findings"] if each["rule"] == "DP204"]
    assert found == ["main.sales.lines"]


def test_plans_keep_the_names_for_the_policy(cli: Cli, orders: str, tmp_path: Path) -> None:
    inventory, plans = tmp_path / "inventory", tmp_path / "plans"
    scanned(cli, inventory, orders, f"{orders}/main.sales.orders")
    text = (
        "rollout: {canary: [dev.ann.copy], waves: [100%], soak: 1h}\n"
        "tables:\n  old.shop.orders:\n    max_reader_version: 1\n"
        "    maintenance_windows:\n"
        "      - {days: [sun], from: '02:00', to: '04:00', timezone: UTC}\n"
    )
    rules = policy(tmp_path, text)
    planned = cli("plan", str(inventory), "--policy", rules, "--out", str(plans))
    assert planned.code == 0, planned.out + planned.err
    (file,) = (each for each in plans.iterdir() if each.name != "rollout.json")
    (document,) = [json.loads(file.read_text(encoding="utf-8"))]
    contract.validate("plan", document)
    (loaded,) = read_plans(str(file))
    assert isinstance(loaded, LoadedPlan)
    names = {"main.sales.orders", "old.shop.orders", "dev.ann.copy"}
    assert {name_in_statements(loaded.plan.table), *loaded.plan.other_names} == names
    assert maintenance_windows_for(load_local_policy(rules), loaded.plan)
    waves = json.loads((plans / "rollout.json").read_text(encoding="utf-8"))["waves"]
    assert [wave["name"] for wave in waves] == ["canary"]


@pytest.mark.parametrize("fresh", [(), ("--fresh",)])
@pytest.mark.parametrize(
    ("pattern", "planned"),
    [
        ("main.sales.orders", "main.sales.orders"),
        ("old.shop.orders", "main.sales.orders"),
        ("dev.ann.*", "main.sales.orders"),
        ("main.sales.lines", "main.sales.lines"),
        ("main.other.*", None),
    ],
)
def test_patterns_match_the_names_of_tables_that_are_read_again(
    fresh: tuple[str, ...],
    pattern: str,
    planned: str | None,
    cli: Cli,
    orders: str,
    tmp_path: Path,
) -> None:
    inventory = tmp_path / "inventory"
    scanned(cli, inventory, orders, f"{orders}/main.sales.orders")
    rules = policy(tmp_path, f"tables:\n  {pattern}:\n    max_reader_version: 1\n")
    ran = cli("plan", str(inventory), "--policy", rules, *fresh, "--format", "json")
    places = {row["table"]: row["location"] for row in rows(inventory, "tables")}
    changed = {plan["location"] for plan in ran.json["plans"] if plan["steps"]}
    assert changed == ({places[planned]} if planned else set())


def test_an_older_inventory_has_no_other_names(cli: Cli, orders: str, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    scanned(cli, inventory, orders)
    table = DeltaTable(inventory / "tables").to_pyarrow_table()
    older = table.drop_columns(["other_names"])
    write_deltalake(
        inventory / "tables",
        older,
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=["scan_id"],
    )
    checked = cli("check", str(inventory), "--client", "deltalake@1.6.0", "--format", "json")
    assert [each["other_names"] for each in checked.json["tables"]] == [[], []]
    # The next scan adds the column.
    scanned(cli, inventory, orders)
    assert names_of(inventory) == {
        "dev.ann.copy": ["main.sales.orders", "old.shop.orders"],
        "main.sales.lines": None,
    }


def test_a_name_lost_between_two_scans_is_not_kept(
    cli: Cli, unity: UnityServer, orders: str, tmp_path: Path
) -> None:
    inventory = tmp_path / "inventory"
    lake = str(tmp_path / "lake")
    scanned(cli, inventory, orders, lake)
    for catalog in ("old", "dev"):
        del unity.tables[catalog, {"old": "shop", "dev": "ann"}[catalog]]
    scanned(cli, inventory, orders, lake)
    assert names_of(inventory) == {"main.sales.orders": None, "main.sales.lines": None}


def found(name: str, location: str, **fields: Any) -> DiscoveredTable:
    entry = CatalogTable(name, location, "external")
    return DiscoveredTable(name, location, entry=entry, **fields)


def test_the_order_of_names_does_not_depend_on_which_page_came_first() -> None:
    every = [
        found("b.s.second", "s3a://lake/t/"),
        found("b.s.first", "s3://lake/t"),
        found("a.s.third", "s3n://lake/t"),
    ]
    expected = ("a.s.third", "b.s.second", "b.s.first")
    for order in ((0, 1, 2), (0, 2, 1), (2, 0, 1)):
        entries = CatalogEntries()
        for number in order:
            entries.add(every[number], "uc://h")
        assert entries.names("s3://lake/t") == expected, order
    entries = CatalogEntries()
    for each in every:
        entries.add(each, "uc://h")
    # The user's name is found again by a root of its own.
    entries.add(every[1]._replace(requested=True), "uc://h")
    assert entries.names("s3://lake/t/")[0] == "b.s.first"
    assert len(entries.of("s3://lake/t")) == 3
    assert entries.names("s3://lake/other") == ()


def test_patterns_of_paths_and_names() -> None:
    from deltaproto.policy.document.patterns import TableNames

    names = TableNames("/lake/orders", "file:///lake/orders", others=["main.sales.`old orders`"])
    for pattern in ("orders", "/lake/*", "main.**", "sales.`OLD orders`", "old orders"):
        assert names.match(pattern), pattern
    for pattern in ("lines", "main.hr.*", "/lake/main.sales.old orders"):
        assert not names.match(pattern), pattern
    assert not matches_table("main.**", "/lake/orders", "file:///lake/orders")
