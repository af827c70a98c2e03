"""Inventories that are empty, damaged, old, stopped, or put together from several scans."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.support.logs import protocol
from tests.support.situations.world import PLANS, Words, World, situation

ANSWERING = ("check", PLANS, "report")
ALL = (*ANSWERING, "drift")


def scans(where: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(f"{where}/scans").to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: row["ended_at"])


@situation("The inventory has no tables", *ALL, "forecast")
def empty(world: World) -> Words:
    (world.folder / "barren").mkdir()
    return (world.inventory(str(world.folder / "barren"), more=("--allow-empty",)),)


@situation("The folder is not an inventory", "report", "drift", "forecast")
def no_inventory(world: World) -> Words:
    return (world.table(),)


@situation("The inventory has no scans", *ALL, "forecast")
def no_scans(world: World) -> Words:
    where = world.inventory(world.table())
    DeltaTable(f"{where}/scans").delete()
    return (where,)


@situation("The log of an inventory's table is damaged", *ALL, "forecast")
def damaged(world: World) -> Words:
    where = world.inventory(world.table())
    for commit in Path(f"{where}/scans/_delta_log").glob("*.json"):
        commit.write_text('{"broken')
    return (where,)


@situation("A data file of the inventory is missing", *ALL, "forecast")
def lost_file(world: World) -> Words:
    where = world.inventory(world.table())
    for file in Path(f"{where}/tables").rglob("*.parquet"):
        file.unlink()
    return (where,)


@situation("A table of the inventory is missing", *ALL, "forecast")
def lost_table(world: World) -> Words:
    where = world.inventory(world.table())
    shutil.rmtree(f"{where}/scans")
    return (where,)


@situation("Rows of the inventory are missing", *ALL, "forecast")
def lost(world: World) -> Words:
    where = world.inventory(str(world.lake()))
    DeltaTable(f"{where}/tables").delete("location LIKE '%two%'")
    return (where,)


@situation("Rows of features are missing from the inventory", *ANSWERING, "forecast")
def lost_features(world: World) -> Words:
    where = world.inventory(str(world.lake()))
    DeltaTable(f"{where}/features").delete("location LIKE '%two%'")
    return (where,)


@situation("One row of the inventory is missing and another is stored twice", *ALL)
def doubled(world: World) -> Words:
    where = world.inventory(str(world.lake()))
    tables = DeltaTable(f"{where}/tables")
    rows = tables.to_pyarrow_table()
    one = rows.filter([str(each).endswith("one") for each in rows["location"].to_pylist()])
    tables.delete("location LIKE '%two%'")
    write_deltalake(f"{where}/tables", one, mode="append")
    return (where,)


@situation("A column of the inventory has another type", *ALL)
def retyped(world: World) -> Words:
    where = world.inventory(str(world.lake()))
    rows = DeltaTable(f"{where}/tables").to_pyarrow_table()
    index = rows.schema.get_field_index("version")
    texts = pa.array([f"x{each}" for each in rows.column("version").to_pylist()], pa.string())
    shutil.rmtree(f"{where}/tables")
    rows = rows.set_column(index, "version", texts)
    write_deltalake(f"{where}/tables", rows, partition_by=["scan_id"])
    return (where,)


@situation("The inventory lacks a column", *ALL)
def narrowed(world: World) -> Words:
    where = world.inventory(str(world.lake()))
    rows = DeltaTable(f"{where}/tables").to_pyarrow_table().drop_columns(["version"])
    shutil.rmtree(f"{where}/tables")
    write_deltalake(f"{where}/tables", rows, partition_by=["scan_id"])
    return (where,)


@situation("The inventory has a value that no scan writes", *ALL)
def impossible(world: World) -> Words:
    where = world.inventory(str(world.lake()))
    DeltaTable(f"{where}/tables").update({"min_reader_version": "-1"})
    return (where,)


@situation("The newest scan was stopped", *ALL, "forecast")
def stopped(world: World) -> Words:
    where = world.inventory(str(world.lake()))
    (Path(where) / "_staging" / "29991231T000000Z-00000000").mkdir(parents=True)
    world.names["SCAN"] = scans(where)[-1]["scan_id"]
    return (where,)


def aged(where: str, ended: datetime) -> None:
    moment = f"to_timestamp_micros({int(ended.timestamp() * 1e6)})"
    DeltaTable(f"{where}/scans").update({"ended_at": moment})


@situation("The newest scan is a week old", *ALL)
def old(world: World) -> Words:
    where = world.inventory(world.table())
    aged(where, datetime.now(UTC) - timedelta(days=8))
    return (where,)


@situation("The newest scan is dated in the future", *ALL)
def future(world: World) -> Words:
    where = world.inventory(world.table())
    aged(where, datetime.now(UTC) + timedelta(days=8))
    return (where,)


@situation("A folder was not searched when the inventory was scanned", *ALL)
def unsearched(world: World) -> Words:
    world.table("lake/_archive/old")
    return (world.inventory(str(world.lake())),)


@situation("An early release made the scan", *ALL)
def early(world: World) -> Words:
    where = world.inventory(str(world.lake()))
    rows = DeltaTable(f"{where}/scans").to_pyarrow_table().drop_columns(["not_searched"])
    shutil.rmtree(f"{where}/scans")
    write_deltalake(f"{where}/scans", rows, partition_by=["scan_id"])
    return (where,)


@situation("The newest scan did not search all roots of an older one", *ANSWERING)
def roots(world: World) -> Words:
    lake = world.lake()
    world.inventory(str(lake / "a"))
    return (world.inventory(str(lake / "b")),)


@situation("A table could not be read when it was scanned", *ALL, "forecast")
def unread(world: World) -> Words:
    return (world.inventory(world.table("good"), world.corrupt()),)


@situation("A scanned table is managed by a catalog", *ALL, "forecast")
def managed(world: World) -> Words:
    return (world.inventory(world.catalog_managed()),)


@situation("`--where` is true for no table", PLANS)
def nothing_meets(world: World) -> Words:
    return ("--from", world.inventory(world.table()), "--where", "min_reader_version = 9")


@situation("`--where` cannot be evaluated", PLANS)
def no_condition(world: World) -> Words:
    return ("--from", world.inventory(world.table()), "--where", "no_column = 9")


@situation("A plan is made from an inventory without `--fresh`", PLANS)
def not_fresh(world: World) -> Words:
    return (world.inventory(world.table()),)


@situation("A plan is made from a saved inspection", PLANS)
def from_saved(world: World) -> Words:
    return (world.saved(world.table()),)


@situation("Only one scan of these roots exists", "drift")
def only_one(world: World) -> Words:
    where = str(world.folder / "inventory")
    world.made("scan", world.table(), "--inventory", where)
    return (where,)


@situation("No scan has ended since `--since`", "drift")
def none_since(world: World) -> Words:
    return (*only_one(world), "--since", "9998-01-01")


@situation("`--since` is a newer scan than `--until`", "drift")
def reversed_scans(world: World) -> Words:
    table, where = world.table(), str(world.folder / "inventory")
    for _ in range(2):
        world.made("scan", table, "--inventory", where)
    first, second = (row["scan_id"] for row in scans(where))
    return (where, "--since", second, "--until", first)


@situation("The two scans searched different roots", "drift")
def not_alike(world: World) -> Words:
    lake, where = world.lake(), str(world.folder / "inventory")
    for name in ("a", "b"):
        world.made("scan", str(lake / name), "--inventory", where)
    first, second = (row["scan_id"] for row in scans(where))
    return (where, "--since", first, "--until", second)


@situation("Another root was scanned before the scans that are compared", "drift")
def other_root(world: World) -> Words:
    lake, where = world.lake(), str(world.folder / "inventory")
    for name in ("a", "b", "b"):
        world.made("scan", str(lake / name), "--inventory", where)
    world.names["SCAN"] = scans(where)[-1]["scan_id"]
    return (where,)


@situation("A scanned table has a feature that deltaproto does not know", "report")
def unknown_feature(world: World) -> Words:
    return (world.inventory(world.table("table", protocol(3, 7, ["newThing"], ["newThing"]))),)


@situation("No run of `discover` counted a table that is checked or planned", "check", PLANS)
def uncounted(world: World) -> Words:
    where = world.inventory(world.table("first"))
    world.made("discover", where)
    return (world.table("second"), "--seen", where)


@situation("No run of `discover` counted in the inventory of `--seen`", "check", PLANS)
def never_counted(world: World) -> Words:
    table = world.table()
    return (table, "--seen", world.inventory(table))


@situation("The newest run of `discover` was a week ago", "check", PLANS)
def counted_long_ago(world: World) -> Words:
    table = world.table()
    where = world.inventory(table)
    world.made("discover", where)
    moment = datetime.now(UTC) - timedelta(days=8)
    ran_at = f"to_timestamp_micros({int(moment.timestamp() * 1e6)})"
    DeltaTable(f"{where}/clients_seen").update({"ran_at": ran_at})
    return (table, "--seen", where)


@situation("`clients_seen` has a value that no run of `discover` writes", "check", PLANS)
def impossible_client(world: World) -> Words:
    table = world.table()
    where = world.inventory(table)
    world.made("discover", where)
    DeltaTable(f"{where}/clients_seen").update({"confidence": "'sure'"})
    return (table, "--seen", where)


@situation("The tables were not found through Unity Catalog", "forecast")
def no_catalog(world: World) -> Words:
    return (world.inventory(str(world.lake())),)


@situation("The version of a declared client is not known", "forecast")
def unknown_version(world: World) -> Words:
    return (world.inventory(world.table()), "--client", "trino@100000")


@situation("No run of `discover` counted in the inventory", "forecast")
def no_uses(world: World) -> Words:
    return (world.inventory(world.table()),)
