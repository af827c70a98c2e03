"""Scans that do not read tables whose log is unchanged since the last scan."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from deltaproto.app.inventory import Inventory
from deltaproto.app.scanning import scan
from deltaproto.fleet import unchanged
from deltaproto.fleet.drift import query
from deltaproto.fleet.scan_history import extent_of
from deltaproto.fleet.staging import Staging
from tests.fleet.fleets import HOUR_AGO, date_files, make_fleet
from tests.fleet.test_scan import Cli, rows, scanned
from tests.support.logs import Log, add, commit_info, metadata, protocol

pytestmark = pytest.mark.rotating

DETAILS = ("tables", "features", "findings", "errors")


def of_scan(inventory: Path, done: dict[str, Any], *, digests: bool = True) -> dict[str, list[str]]:
    """The rows of a scan in all tables, without its id."""
    ignored = {"scan_id"} if digests else {"scan_id", "log_digest"}
    return {
        name: sorted(
            json.dumps({k: v for k, v in row.items() if k not in ignored}, default=str)
            for row in rows(inventory, name)
            if row["scan_id"] == done["scan_id"]
        )
        for name in DETAILS
    }


@pytest.fixture
def table(tmp_path: Path) -> Log:
    log = Log(tmp_path / "lake" / "t")
    log.commit(0, protocol(1, 2), metadata(), commit_info())
    log.commit(1, add("a.parquet"), commit_info())
    date_files(tmp_path / "lake")
    return log


def test_a_rescan_saves_what_a_full_scan_saves(cli: Cli, tmp_path: Path) -> None:
    make_fleet(tmp_path / "lake", seed=3, count=300)
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"), "--parallel", "1")
    first = scanned(cli, *words)
    again = scanned(cli, *words[:-1], "2")
    full = scanned(cli, *words, "--full")
    assert (first["unchanged"], full["unchanged"]) == (0, 0)
    # Read again: errors, and tables of which a catalog may know more.
    assert again["unchanged"] >= again["tables"] - again["incomplete"] - 20 > 100
    assert again["errors"] > 10
    assert of_scan(tmp_path / "i", again) == of_scan(tmp_path / "i", full)
    assert of_scan(tmp_path / "i", again) == of_scan(tmp_path / "i", first)
    same = ("tables", "errors", "findings", "incomplete", "by_rule", "protocols", "features")
    assert {key: again[key] for key in same} == {key: full[key] for key in same}
    assert again["code"] == full["code"] == first["code"] == 3
    assert again["drift"]["changed_tables"] == 0
    # The rows of a rescan are good for the next one.
    third = scanned(cli, *words)
    assert third["unchanged"] == again["unchanged"]
    assert of_scan(tmp_path / "i", third) == of_scan(tmp_path / "i", full)


def newer_commit(log: Log) -> None:
    log.commit(2, add("b.parquet"), commit_info())


def other_time(log: Log) -> None:
    os.utime(log.folder / f"{1:020}.json", (HOUR_AGO + 1, HOUR_AGO + 1))


def same_size_and_time(log: Log) -> None:
    path = log.folder / f"{0:020}.json"
    path.write_text(path.read_text().replace('"minWriterVersion":2', '"minWriterVersion":3'))


def replaced_file(log: Log) -> None:
    path = log.folder / f"{1:020}.json"
    path.with_suffix(".new").write_bytes(path.read_bytes())
    path.with_suffix(".new").replace(path)


def created_again(log: Log) -> None:
    content = {path.name: path.read_bytes() for path in log.folder.iterdir()}
    shutil.rmtree(log.folder)
    log.folder.mkdir()
    for name, data in content.items():
        (log.folder / name).write_bytes(data)


def new_checksum(log: Log) -> None:
    (log.folder / f"{1:020}.crc").write_text("{}")


def staged_commit(log: Log) -> None:
    (log.folder / "_staged_commits").mkdir()
    (log.folder / "_staged_commits" / f"{2:020}.x.json").write_text("{}")


def lost_first_commit(log: Log) -> None:
    (log.folder / f"{0:020}.json").unlink()


def no_permission(log: Log) -> None:
    (log.folder / f"{1:020}.json").chmod(0o640)


CHANGES: tuple[Callable[[Log], None], ...] = (
    newer_commit,
    other_time,
    same_size_and_time,
    replaced_file,
    created_again,
    new_checksum,
    staged_commit,
    lost_first_commit,
    no_permission,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_changed_log_is_read(
    cli: Cli, tmp_path: Path, table: Log, change: Callable[[Log], None]
) -> None:
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    scanned(cli, *words)
    assert scanned(cli, *words)["unchanged"] == 1
    change(table)
    if change is not other_time:
        date_files(tmp_path / "lake")
    again = scanned(cli, *words)
    full = scanned(cli, *words, "--full")
    assert again["unchanged"] == 0
    assert of_scan(tmp_path / "i", again) == of_scan(tmp_path / "i", full)


def test_a_log_written_just_now_is_read_again(cli: Cli, tmp_path: Path, table: Log) -> None:
    # A second write could leave the same time.
    date_files(tmp_path / "lake", time.time() + 3600)
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    assert [scanned(cli, *words)["unchanged"] for _ in range(2)] == [0, 0]
    assert rows(tmp_path / "i", "tables")[0]["log_digest"] is None


def test_a_log_behind_a_link_inside_is_read_again(cli: Cli, tmp_path: Path, table: Log) -> None:
    (tmp_path / "elsewhere").mkdir()
    (table.folder / "_sidecars").symlink_to(tmp_path / "elsewhere")
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    assert [scanned(cli, *words)["unchanged"] for _ in range(2)] == [0, 0]


def test_another_release_reads_everything(
    cli: Cli, tmp_path: Path, table: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    scanned(cli, *words)
    monkeypatch.setattr(unchanged, "__version__", "99.0")
    assert [scanned(cli, *words)["unchanged"] for _ in range(2)] == [0, 1]


def test_the_name_of_a_table_counts(cli: Cli, tmp_path: Path, table: Log) -> None:
    names = tmp_path / "names.txt"
    names.write_text(f"{tmp_path}/lake/t\n")
    words = ("--list", str(names), "--inventory", str(tmp_path / "i"))
    scanned(cli, *words)
    assert scanned(cli, *words)["unchanged"] == 1
    names.write_text(f"file://{tmp_path}/lake/t\n")
    again = scanned(cli, *words)
    assert again["unchanged"] == 0
    named = {
        row["table"] for row in rows(tmp_path / "i", "tables") if again["scan_id"] == row["scan_id"]
    }
    assert named == {f"file://{tmp_path}/lake/t"}


def test_other_roots_read_everything(cli: Cli, tmp_path: Path, table: Log) -> None:
    into = ("--inventory", str(tmp_path / "i"))
    scanned(cli, str(tmp_path / "lake"), *into)
    assert scanned(cli, str(tmp_path / "lake" / "t"), *into)["unchanged"] == 0
    assert scanned(cli, str(tmp_path / "lake"), *into)["unchanged"] == 1


@pytest.mark.parametrize("name", ["features", "findings", "tables"])
def test_a_damaged_inventory_is_not_continued(cli: Cli, tmp_path: Path, name: str) -> None:
    make_fleet(tmp_path / "lake", seed=3, count=30)
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    scanned(cli, *words)
    everything = scanned(cli, *words)
    lost = rows(tmp_path / "i", name)[0]["location"]
    DeltaTable(tmp_path / "i" / name).delete(f"location = '{lost}'")
    # The comparison with the damaged scan, which the command makes afterwards, may fail.
    done = scan(words[0], inventory=words[2]).scan
    assert done.unchanged < everything["unchanged"]
    again = {"scan_id": done.scan_id}
    full = scanned(cli, *words, "--full")
    assert of_scan(tmp_path / "i", again) == of_scan(tmp_path / "i", full)


def test_a_location_that_the_inventory_has_twice_is_damage(cli: Cli, tmp_path: Path) -> None:
    make_fleet(tmp_path / "lake", seed=3, count=5)
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    scanned(cli, *words)
    first, second = (row["location"] for row in rows(tmp_path / "i", "tables")[:2])
    tables = DeltaTable(tmp_path / "i" / "tables")
    tables.update(predicate=f"location = '{second}'", updates={"location": f"'{first}'"})
    assert scan(words[0], inventory=words[2]).scan.unchanged == 0


def test_an_inventory_without_digests_gets_them(cli: Cli, tmp_path: Path, table: Log) -> None:
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    first = scanned(cli, *words)
    before = DeltaTable(tmp_path / "i" / "tables").to_pyarrow_table().drop_columns("log_digest")
    shutil.rmtree(tmp_path / "i" / "tables")
    write_deltalake(tmp_path / "i" / "tables", before, partition_by=["scan_id"])
    assert len(Inventory(tmp_path / "i").tables()) == 1
    again = scanned(cli, *words)
    assert again["unchanged"] == 0
    old, new = (of_scan(tmp_path / "i", each, digests=False) for each in (first, again))
    assert old == new
    assert scanned(cli, *words)["unchanged"] == 1


def test_a_resumed_scan_takes_over_the_rest(cli: Cli, tmp_path: Path, table: Log) -> None:
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    scanned(cli, *words)
    extent = extent_of([f"file://{tmp_path}/lake"], (), ())
    with Staging(str(tmp_path / "i"), "29990101T000000Z-00000000", extent):
        pass
    again = scanned(cli, *words, "--resume")
    assert (again["resumed"], again["unchanged"], again["tables"]) == (0, 1, 1)


def test_changes_are_searched_for_only_if_there_may_be_some(
    cli: Cli, tmp_path: Path, table: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("u", "v"):
        shutil.copytree(tmp_path / "lake" / "t", tmp_path / "lake" / name)
    date_files(tmp_path / "lake")
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    scanned(cli, *words)
    find_drift, asked = query.find_drift, list[object]()

    def watched(*given: Any) -> Any:
        asked.append(given)
        return find_drift(*given)

    monkeypatch.setattr(query, "find_drift", watched)
    same = scanned(cli, *words)
    assert (same["unchanged"], same["drift"]["changed_tables"], asked) == (3, 0, [])
    # As many tables as before, and another one among them.
    (tmp_path / "lake" / "v").rename(tmp_path / "lake" / "w")
    moved = scanned(cli, *words)
    assert (moved["tables"], moved["unchanged"]) == (3, 2)
    assert (moved["drift"]["changed_tables"], len(asked)) == (2, 1)
    shutil.rmtree(tmp_path / "lake" / "w")
    fewer = scanned(cli, *words)
    assert (fewer["unchanged"], fewer["drift"]["changed_tables"], len(asked)) == (2, 1, 2)
