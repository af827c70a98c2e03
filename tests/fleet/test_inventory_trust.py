"""An inventory that lost rows fails, and what its newest scan did not look at is shown."""

from __future__ import annotations

import errno
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaproto.errors import TableError, UsageError
from deltaproto.fleet.inventory import InventoryTables, open_inventory_tables
from deltaproto.fleet.inventory_queries import LocalInventoryQueries
from deltaproto.fleet.inventory_reader import build_scan_notices, require_finished
from deltaproto.fleet.newest_state import NewestState
from deltaproto.fleet.scan import new_scan_id
from deltaproto.fleet.scan_history import PastScan, extent_of
from deltaproto.fleet.schemas import Inventory, inventory_schema
from deltaproto.fleet.staging import (
    ScanLockedError,
    Staging,
    hold_spark_lock,
    is_running,
    newest_of_extent,
    unfinished_scans,
)
from deltaproto.tables.storage.local import LOG_FOLDER
from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
CHECK = ("check", "--client", "trino@476", "--format", "json")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name in ("a/one", "a/two", "b/three"):
        path = tmp_path / "lake" / name
        Log(path).commit(0, commit_info(), protocol(1, 2), metadata(id=name))
    return tmp_path / "lake"


def test_patterns_that_limited_a_scan_are_shown(
    cli: Cli, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of a variable, which nobody sees on the command line."""
    where = str(tmp_path / "inventory")
    limits = "--include a --exclude two"
    scan = ("scan", str(lake), "--inventory", where, "--include", "a")
    with monkeypatch.context() as patch:
        patch.setenv("DELTAPROTO_EXCLUDE", "two")
        ran = cli(*scan)
    assert (ran.code, f"the search was limited by {limits}" in ran.out) == (0, True)
    found = cli(*scan, "--exclude", "two", "--format", "json").json
    assert (found["tables"], found["included"], found["excluded"]) == (1, ["a"], ["two"])
    ran = cli("check", where, "--client", "trino@476")
    assert (ran.code, f"of file://{lake} {limits}" in ran.out) == (0, True)
    ran = cli("report", where, "--format", "markdown")
    assert (ran.code, f"limited by `{limits}`" in ran.out) == (0, True)


def test_rows_that_are_lost(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    assert cli(*CHECK, where).code == 0
    DeltaTable(f"{where}/tables").delete("location LIKE '%two%'")
    ran = cli(*CHECK, where)
    assert ran.code == 3
    assert "rows are missing" in ran.json["errors"][0]["error"]["message"]
    ran = cli("report", where)
    assert (ran.code, "rows are missing" in ran.err) == (3, True)


def test_plans_and_drift_with_lost_rows(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    for _ in range(2):
        assert cli("scan", str(lake), "--inventory", where).code == 0
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true", "--format", "json")
    assert cli(*plan).code == 0
    assert cli("drift", where).code == 0
    DeltaTable(f"{where}/tables").delete("location LIKE '%two%'")
    ran = cli(*plan)
    assert (ran.code, "rows are missing" in ran.out) == (3, True)
    ran = cli("drift", where)
    assert (ran.code, "rows are missing" in ran.err) == (3, True)


def test_a_row_lost_and_another_stored_twice(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    tables = DeltaTable(f"{where}/tables")
    rows = tables.to_pyarrow_table()
    one = rows.filter([str(each).endswith("one") for each in rows["location"].to_pylist()])
    tables.delete("location LIKE '%two%'")
    write_deltalake(f"{where}/tables", one, mode="append")
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true")
    for command in ((*CHECK, where), ("report", where), plan):
        ran = cli(*command)
        assert (ran.code, "rows are missing" in ran.out + ran.err) == (3, True)


@pytest.mark.parametrize("name", ["features", "findings"])
@pytest.mark.parametrize("damage", ["lost", "doubled"])
def test_features_and_findings_that_are_lost_or_doubled(
    cli: Cli, lake: Path, tmp_path: Path, name: str, damage: str
) -> None:
    where = str(tmp_path / "inventory")
    # A preview feature is a finding.
    Log(lake / "b/four").commit(
        0, commit_info(), protocol(3, 7, ["zzz"], ["zzz"]), metadata(id="four")
    )
    for _ in range(2):
        cli("scan", str(lake), "--inventory", where)
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true")
    commands = ((*CHECK, where), ("report", where), plan, ("drift", where))
    table = DeltaTable(f"{where}/{name}")
    rows = table.to_pyarrow_table().to_pylist()
    assert rows
    scans = DeltaTable(f"{where}/scans").to_pyarrow_table().to_pylist()
    newest = max(scans, key=lambda row: row["ended_at"])["scan_id"]
    if damage == "lost":
        column = "feature" if name == "features" else "rule"
        one = next(row for row in rows if row["scan_id"] == newest)
        table.delete(
            f"scan_id = '{newest}' and location = '{one['location']}' "
            f"and {column} = '{one[column]}'"
        )
    else:
        schema = table.to_pyarrow_table().schema
        twice = [row for row in rows if row["scan_id"] == newest][:1]
        write_deltalake(f"{where}/{name}", pa.Table.from_pylist(twice, schema), mode="append")
    for command in commands:
        ran = cli(*command)
        said = " ".join((ran.out + ran.err).split())
        assert ran.code == 3, command
        if damage == "doubled":
            assert f"1 {name.removesuffix('s')} of scan {newest} twice" in said
        elif name == "findings":
            assert "rows are missing" in said
        else:
            assert "inventory lacks the table's features" in said


def test_scans_are_counted_together_and_the_damaged_one_is_named(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    where = str(tmp_path / "inventory")
    (tmp_path / "empty").mkdir()
    for root in (lake, tmp_path / "empty", lake / "a", lake):
        assert cli("scan", str(root), "--inventory", where, "--allow-empty").code == 0
    questions = LocalInventoryQueries(open_inventory_tables(where, {}))
    scans = sorted(questions.scans(), key=lambda scan: (scan.tables, scan.scan_id))
    assert [scan.tables for scan in scans] == [0, 2, 3, 3]
    questions.require_whole()
    questions.require_whole(*scans, scans[0])
    lost = scans[1].scan_id
    DeltaTable(f"{where}/tables").delete(f"scan_id = '{lost}'")
    questions = LocalInventoryQueries(open_inventory_tables(where, {}))
    questions.require_whole(scans[0], *scans[2:])
    with pytest.raises(TableError, match=f"has 0 tables and 0 errors of scan {lost}"):
        questions.require_whole(*scans)


def checked_tables(ran: Ran) -> list[str]:
    return sorted({each["table"].rpartition("/")[2] for each in ran.json["verdicts"]})


def test_other_roots(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    for name in ("a", "b"):
        assert cli("scan", str(lake / name), "--inventory", where).code == 0
    ran = cli(*CHECK, where)
    assert (ran.code, checked_tables(ran)) == (0, ["one", "three", "two"])
    (notice,) = ran.json["notices"]
    assert f"{lake}/a" in notice
    ran = cli("report", where, "--format", "json")
    assert "outside the roots of the newest scan" in ran.err
    assert ran.json["tables"] == 3
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true", "--format", "json")
    assert len(cli(*plan).json["plans"]) == 3
    assert len(cli(*plan, "--where", "location LIKE '%two%'").json["plans"]) == 1
    newest = DeltaTable(f"{where}/scans").to_pyarrow_table().to_pylist()
    last = max(newest, key=lambda row: row["ended_at"])["scan_id"]
    assert checked_tables(cli(*CHECK, where, "--scan", last)) == ["three"]


def test_a_newer_scan_with_patterns(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    assert cli("scan", str(lake), "--inventory", where, "--exclude", "a").code == 0
    assert checked_tables(cli(*CHECK, where)) == ["one", "three", "two"]
    assert cli("scan", str(lake), "--inventory", where, "--include", "b").code == 0
    assert checked_tables(cli(*CHECK, where)) == ["one", "three", "two"]
    shutil.rmtree(lake / "a" / "two")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    ran = cli(*CHECK, where)
    assert (checked_tables(ran), "notices" in ran.json) == (["one", "three"], False)


GONE, LEFT = ["one", "three"], ["one", "three", "two"]


@pytest.mark.parametrize(
    ("before", "then", "tables", "of_both"),
    [
        # The newer scan searched the folder in spite of its patterns.
        (".", ". --exclude b", GONE, True),
        (".", ". --exclude b/thr*", GONE, True),
        (".", ". --include a", GONE, True),
        (". --exclude zzz", ".", GONE, False),
        # A root above or below that of the older scan.
        ("a", ". --exclude zzz", GONE, False),
        (".", "a", GONE, True),
        (".", "a --exclude zzz", GONE, True),
        ("a b", "a", GONE, True),
        # It did not search there, so that the table may still exist.
        (".", ". --exclude a", LEFT, True),
        (".", ". --exclude tw?", LEFT, True),
        (".", ". --include b", LEFT, True),
        ("a b", "b", LEFT, True),
    ],
)
def test_a_table_that_is_gone(
    cli: Cli,
    lake: Path,
    tmp_path: Path,
    before: str,
    then: str,
    tables: list[str],
    of_both: bool,
) -> None:
    where = str(tmp_path / "inventory")

    def scan(words: str) -> None:
        roots, dashes, patterns = words.partition(" --")
        named = [str(lake / root) for root in roots.split()]
        assert cli("scan", *named, *f"{dashes}{patterns}".split(), "--inventory", where).code == 0

    scan(before)
    shutil.rmtree(lake / "a/two")
    scan(then)
    ran = cli(*CHECK, where)
    assert (ran.code, checked_tables(ran)) == (0, tables)
    # What an older scan saw is never shown without its name.
    notices = ran.json.get("notices", ())
    assert any("roots of the newest scan come from scan" in each for each in notices) is of_both


def test_a_table_that_is_gone_below_what_could_not_be_searched(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    where = str(tmp_path / "inventory")
    Log(lake / "b/three/nested").commit(0, commit_info(), protocol(1, 2), metadata(id="n"))
    assert cli("scan", str(lake / "b/three"), "--inventory", where).code == 0
    shutil.rmtree(lake / "b/three/nested")
    assert cli("scan", str(lake), "--exclude", "zzz", "--inventory", where).code == 0
    ran = cli(*CHECK, where)
    assert checked_tables(ran) == ["nested", "one", "three", "two"]
    assert any("roots of the newest scan come from scan" in each for each in ran.json["notices"])


def test_a_row_of_an_older_scan_is_replaced(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    shutil.rmtree(lake / "b/three")
    Log(lake / "b/three").commit(0, commit_info(), protocol(1, 4), metadata(id="three"))
    assert cli("scan", str(lake), "--inventory", where, "--exclude", "a").code == 0
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true", "--format", "json")
    # The older state has another protocol and would match.
    ran = cli(*plan, "--where", "min_writer_version = 2")
    assert sorted(each["table"][-3:] for each in ran.json["plans"]) == ["one", "two"]


def test_drift_of_a_setting_that_the_protocol_supported(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    shutil.rmtree(lake / "b/three")
    settings = metadata(id="b/three", configuration={"delta.appendOnly": "true"})
    Log(lake / "b/three").commit(0, commit_info(), protocol(1, 2), settings)
    assert cli("scan", str(lake), "--inventory", where).code == 0
    ran = cli("drift", where, "--format", "json")
    assert ran.code == 1
    (change,) = ran.json["changes"]
    assert (change["change"], change["feature"]) == ("feature-enabled", "appendOnly")
    commit = lake / "b/three/_delta_log" / f"{1:020}.json"
    actions = (commit_info("UNSET TBLPROPERTIES"), metadata(id="b/three"))
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert cli("scan", str(lake), "--inventory", where).code == 0
    assert cli("drift", where).code == 0
    ran = cli("drift", where, "--fail-on", "warning", "--format", "json")
    assert ran.code == 1
    (change,) = ran.json["changes"]
    assert (change["change"], change["feature"]) == ("feature-disabled", "appendOnly")
    assert change["commit"]["version"] == 1


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("scans", "tables"),
        ("scans", "ended_at"),
        ("tables", "version"),
        ("tables", "min_reader_version"),
    ],
)
def test_a_text_column_instead_of_numbers(
    cli: Cli, lake: Path, tmp_path: Path, name: str, column: str
) -> None:
    where = str(tmp_path / "inventory")
    for _ in range(2):
        assert cli("scan", str(lake), "--inventory", where).code == 0
    rows = DeltaTable(f"{where}/{name}").to_pyarrow_table()
    index = rows.schema.get_field_index(column)
    texts = pa.array([f"x{value}" for value in rows.column(column).to_pylist()], pa.string())
    shutil.rmtree(f"{where}/{name}")
    rows = rows.set_column(index, column, texts)
    write_deltalake(f"{where}/{name}", rows, partition_by=["scan_id"])
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true")
    for command in ((*CHECK, where), ("report", where), plan, ("drift", where)):
        ran = cli(*command)
        assert (ran.code, "internal" in ran.out + ran.err) == (3, False)
        assert f"column {column} of the inventory" in ran.out + ran.err


def test_drift_of_one_root_of_two(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    for name in ("a", "b", "b"):
        assert cli("scan", str(lake / name), "--inventory", where).code == 0
    ran = cli("drift", where, "--format", "json")
    assert ran.code == 3
    assert "not compared" in ran.json["notices"][0]


def test_a_scan_that_was_killed(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    (scan,) = DeltaTable(f"{where}/scans").to_pyarrow_table().to_pylist()
    (Path(where) / "_staging" / "29991231T000000Z-00000000").mkdir(parents=True)
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true")
    for command in ((*CHECK, where), ("report", where), plan):
        ran = cli(*command)
        assert (ran.code, "is not finished" in ran.out + ran.err) == (3, True)
    assert cli(*CHECK, where, "--scan", scan["scan_id"]).code == 0


def test_a_killed_scan_of_one_root_and_a_later_scan_of_another(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    where, killed = str(tmp_path / "inventory"), (str(lake / "a"), "--exclude", "x")
    for words in ((str(lake / "b"),), killed):
        assert cli("scan", *words, "--inventory", where).code == 0
    kill_scan(where, *killed)
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true")
    assert cli("scan", str(lake / "b"), "--inventory", where).code == 0
    for command in ((*CHECK, where), ("report", where), plan, ("drift", where)):
        ran = cli(*command)
        told = " ".join((ran.out + ran.err).split())
        assert (ran.code, "is not finished" in told) == (3, True), command
    # Another scan cannot resume it: its roots would claim to be searched.
    ran = cli("scan", str(lake / "b"), "--inventory", where, "--resume")
    assert (ran.code, "the unfinished scan 2" in ran.err) == (2, True)
    # The same scan replaces it, begun again or resumed.
    assert cli("scan", *killed, "--inventory", where).code == 0
    assert cli(*CHECK, where).code == 0
    kill_scan(where, *killed)
    assert cli(*CHECK, where).code == 3
    assert cli("scan", *killed, "--inventory", where, "--resume").code == 0
    assert cli(*CHECK, where).code == 0


def test_a_killed_scan_on_spark(cli: Cli, lake: Path, tmp_path: Path) -> None:
    """Its roots are known, so that a scan of another root does not replace it."""
    where, scan_id = str(tmp_path / "inventory"), "29991231T000000Z-00000000"
    assert cli("scan", str(lake / "b"), "--inventory", where).code == 0
    extent = extent_of([f"file://{lake / 'a'}"], (), ())
    with pytest.raises(KeyboardInterrupt), hold_spark_lock(where, scan_id, extent):
        raise KeyboardInterrupt
    ran = cli(*CHECK, where)
    told = " ".join((ran.out + ran.err).split())
    assert (ran.code, f"{scan_id} of {lake / 'a'}, is not finished" in told) == (3, True)
    assert newest_of_extent(where, [scan_id], extent) == scan_id
    with pytest.raises(UsageError, match="is of /"):
        newest_of_extent(where, [scan_id], extent_of([f"file://{lake / 'b'}"], (), ()))
    with hold_spark_lock(where, scan_id, extent):
        assert not unfinished_scans(where)
    assert not unfinished_scans(where)
    assert cli(*CHECK, where).code == 0


def test_a_scan_on_spark_that_is_killed_after_its_last_commit_is_finished(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    (scan,) = DeltaTable(f"{where}/scans").to_pyarrow_table().to_pylist()
    scan_id = scan["scan_id"]
    with (
        pytest.raises(KeyboardInterrupt),
        hold_spark_lock(where, scan_id, extent_of([f"file://{lake}"], (), ())),
    ):
        raise KeyboardInterrupt
    assert [scan.scan_id for scan in unfinished_scans(where)] == [scan_id]
    assert cli(*CHECK, where).code == 0


def test_a_killed_scan_into_a_folder_of_another_machine(
    cli: Cli, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mark is in the user's cache, as the folder is reached through Spark Connect only."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    there = str(tmp_path / "there")
    extent = extent_of([f"file://{lake}"], (), ())
    folder = InventoryTables(there, {}).staging_folder(here=False)
    assert folder.startswith(str(tmp_path / "cache"))
    past = PastScan("2", *[datetime(2026, 1, 2, tzinfo=UTC)] * 2, 1, 0, (f"file://{lake}",), (), ())
    state = NewestState([past], lambda _: ())
    require_finished(there, state, {})
    with pytest.raises(KeyboardInterrupt), hold_spark_lock(folder, "3", extent):
        raise KeyboardInterrupt
    assert not Path(there).exists()
    with pytest.raises(TableError, match=r"the newest scan, 3 of /.*, is not finished"):
        require_finished(there, state, {})
    # A folder of this name here has its own marks.
    Path(there).mkdir()
    require_finished(there, state, {})


def test_a_scan_that_another_user_began(
    cli: Cli, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that only its owner can write shows whether that scan still runs."""
    where, scan_id = str(tmp_path / "inventory"), "29991231T000000Z-00000000"
    assert cli("scan", str(lake), "--inventory", where).code == 0

    def is_not_ours(_: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with (
        Staging(where, scan_id, extent_of([f"file://{lake}"], (), ())),
        monkeypatch.context() as other,
    ):
        other.setattr("deltaproto.fleet.staging._acquire_lock", is_not_ours)
        assert not unfinished_scans(where)
        assert cli(*CHECK, where).code == 0
    monkeypatch.setattr("deltaproto.fleet.staging._acquire_lock", is_not_ours)
    owner = pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(os, "getuid", lambda: os.stat(where).st_uid + 1)
    assert [scan.owner for scan in unfinished_scans(where)] == [owner]
    ran = cli(*CHECK, where)
    shown = " ".join((ran.out + ran.err).split())
    assert (ran.code, f"is not finished; the user {owner} began it" in shown) == (3, True)
    assert "or let that user resume it with --resume" in shown


def test_a_scan_of_a_parent_replaces_a_killed_one(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    kill_scan(where, str(lake / "a"))
    for words, code in ((("--exclude", "two"), 3), (("--include", "one"), 3), ((), 0)):
        assert cli("scan", str(lake), *words, "--inventory", where).code == 0
        assert cli(*CHECK, where).code == code
    # A scan of one folder in it does not.
    kill_scan(where, str(lake))
    for words, code in ((str(lake / "a"), 3), (str(lake), 0)):
        assert cli("scan", words, "--inventory", where).code == 0
        assert cli(*CHECK, where).code == code


def kill_scan(where: str, *words: str) -> None:
    """Leave what a scan leaves that is killed while it reads tables."""
    code = "import os, signal\nfrom deltaproto.fleet import local_engine\n"
    code += "local_engine.read_local_tables = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
    code += "from deltaproto.cli.main import main\nmain()"
    command = [sys.executable, "-c", code, "scan", *words, "--inventory", where]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL


def test_ids_of_scans_sort_by_time() -> None:
    """Which of two scans is later decides what is evaluated, within a second as well."""
    began = datetime(2026, 1, 1, tzinfo=UTC)
    moments = [
        began + timedelta(microseconds=each) for each in (0, 1, 16, 99_999, 999_999, 1 << 20)
    ]
    ids = [new_scan_id(each) for each in moments]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize(
    ("age", "words"), [(timedelta(days=8), "8 days old"), (timedelta(days=-1), "in the future")]
)
def test_the_age(age: timedelta, words: str) -> None:
    now = datetime.now(UTC)
    scan = PastScan("id", now - age, now - age, 1, 0, ("file:///a",), (), ())
    state = NewestState([scan], lambda _: ())
    notices = build_scan_notices("inventory", state, now)
    (notice,) = notices.texts
    assert (words in notice, notices.doubtful) == (True, True)
    assert build_scan_notices("inventory", state, scan.ended_at) == ([], False)
    assert build_scan_notices("inventory", state, now, 9).doubtful is (age < timedelta(0))


def test_an_old_scan_is_a_warning(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    old = datetime.now(UTC) - timedelta(days=8)
    DeltaTable(f"{where}/scans").update(
        {"ended_at": f"to_timestamp_micros({int(old.timestamp() * 1e6)})"}
    )
    assert cli(*CHECK, where).code == 0
    assert cli(*CHECK, where, "--fail-on", "warning").code == 1
    assert cli(*CHECK, where, "--fail-on", "warning", "--max-age", "9").code == 0
    for wrong in ("99999999", "-1"):
        assert cli(*CHECK, where, "--max-age", wrong).code == 2


def test_every_command_shows_the_age(
    cli: Cli, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = str(tmp_path / "inventory")
    for _ in range(2):
        assert cli("scan", str(lake), "--inventory", where).code == 0
    old = datetime.now(UTC) - timedelta(days=3)
    DeltaTable(f"{where}/scans").update(
        {"ended_at": f"to_timestamp_micros({int(old.timestamp() * 1e6)})"}
    )
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true")
    commands = ((*CHECK[:3], where), ("report", where), plan, ("drift", where))
    json_ = ("--format", "json")
    for command in commands:
        formats = ("html", "markdown", "json") if command[0] == "report" else ("markdown", "json")
        for format_ in formats:
            ran = cli(*command, "--format", format_)
            assert (ran.code, "scan again" in ran.out) == (0, False)
            if command[0] != "plan-upgrade":
                assert "3 days old" in ran.out or '"age_days": 3' in ran.out
    assert f"{old:%Y-%m-%d %H:%M} UTC" in cli(*plan, *json_).json["plans"][0]["warnings"][0]
    monkeypatch.setenv("DELTAPROTO_MAX_AGE", "3")
    for command in commands:
        formats = ("html", "markdown", "json") if command[0] == "report" else ("markdown", "json")
        for format_ in formats:
            ran = cli(*command, "--format", format_)
            assert (ran.code, "3 days old; scan again" in ran.out) == (0, True), (command, format_)
        assert cli(*command, "--max-age", "4", *json_).out.count("3 days old; scan again") == 0
    assert cli("drift", where, "--fail-on", "warning").code == 1
    assert cli("drift", where, "--fail-on", "warning", "--max-age", "4").code == 0
    # A plan from the table itself does not depend on the age of the inventory.
    fresh = cli(*plan, "--fresh", *json_)
    assert "inventory" not in " ".join(fresh.json["plans"][0]["warnings"])


def test_a_report_names_every_scan_that_it_uses(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    for name in ("a", "b"):
        assert cli("scan", str(lake / name), "--inventory", where).code == 0
    report = cli("report", where, *CHECK[-2:]).json
    assert [each["roots"] for each in report["sources"]] == [
        [(lake / name).as_uri()] for name in ("b", "a")
    ]
    assert "outside the roots of the newest scan" in report["notices"][0]
    for format_ in ("html", "markdown"):
        shown = cli("report", where, "--format", format_).out
        assert all(each["scan_id"] in shown for each in report["sources"])
        assert "outside the roots of the newest scan" in shown


def test_drift_names_the_commit_that_enabled_a_feature(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    where = str(tmp_path / "inventory")

    def append_only(value: str) -> dict[str, Any]:
        return metadata(id="new", configuration={"delta.appendOnly": value})

    table = Log(lake / "a/new").commit(0, commit_info(), protocol(1, 2), append_only("false"))
    assert cli("scan", str(lake), "--inventory", where).code == 0
    for version, action in enumerate(
        (append_only("true"), append_only("false"), append_only("true"), add()), start=1
    ):
        table.commit(version, commit_info(f"STEP {version}", userName="ada"), action)
    assert cli("scan", str(lake), "--inventory", where).code == 0
    (change,) = cli("drift", where, "--format", "json").json["changes"]
    assert (change["change"], change["feature"]) == ("feature-enabled", "appendOnly")
    assert {key: change["commit"][key] for key in ("version", "operation", "user")} == {
        "version": 3,
        "operation": "STEP 3",
        "user": "ada",
    }
    (Path(table.table) / "_delta_log" / f"{3:020}.json").unlink()
    (change,) = cli("drift", where, "--format", "json").json["changes"]
    assert change["commit"] is None


def test_drift_and_baseline_compare_the_same_isolation_levels(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    where, saved = str(tmp_path / "inventory"), str(tmp_path / "saved.json")
    level = metadata(id="new", configuration={"delta.isolationLevel": "WriteSerializable"})
    table = Log(lake / "a/new").commit(0, commit_info(), protocol(1, 2), level)
    names = [str(lake / each) for each in ("a/new", "a/two", "b/three")]
    cli("inspect", *names, "--format", "json", "-o", saved)
    cli("scan", str(lake), "--inventory", where)
    # delta-rs takes this spelling at its word, the others do not care.
    level["metaData"]["configuration"]["delta.isolationLevel"] = "writeSerializable"
    table.commit(1, commit_info("SET"), level)
    cli("scan", str(lake), "--inventory", where)
    words = "WriteSerializable (Serializable on delta-rs)"
    then = "writeSerializable (WriteSerializable on delta-rs)"
    (change,) = cli("drift", where, "--format", "json").json["changes"]
    assert change["change"] == "isolation-changed"
    assert (change["before"], change["after"]) == (words, then)
    assert change["commit"]["version"] == 1
    found = cli("check", *names, "--baseline", saved, "--format", "json").json["findings"]
    (finding,) = (each for each in found if each["rule"] == "DP223")
    assert f"{words} to {then}" in finding["evidence"]
    # The level in force may change while the declared one stays, as with another version of a scan.
    DeltaTable(f"{where}/tables").update(
        {"isolation_databricks": "'Snapshot'", "isolation_level": "'WriteSerializable'"},
        predicate="location LIKE '%a/new'",
    )
    scans = DeltaTable(f"{where}/scans").to_pyarrow_table().to_pylist()
    first = min(scans, key=lambda row: row["ended_at"])["scan_id"]
    DeltaTable(f"{where}/tables").update(
        {"isolation_databricks": "'WriteSerializable'"}, predicate=f"scan_id = '{first}'"
    )
    (change,) = cli("drift", where, "--format", "json").json["changes"]
    assert "Snapshot on databricks" in change["after"]


def test_the_charts_of_a_report_cover_every_root(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    vectors = ["deletionVectors"]
    Log(lake / "a/vectors").commit(
        0, commit_info(), protocol(3, 7, vectors, vectors), metadata(id="v")
    )
    for name in ("a", "b", "a"):
        assert cli("scan", str(lake / name), "--inventory", where).code == 0
    shutil.rmtree(lake / "a/two")
    table = Log(lake / "a/four").commit(0, commit_info(), protocol(1, 2), metadata(id="four"))
    for name in ("a", "b"):
        assert cli("scan", str(lake / name), "--inventory", where).code == 0
    report = cli("report", where, "--format", "json").json
    assert [each["tables"] for each in report["scans"]] == [3, 4, 4, 4, 4]
    assert report["scans"][-1]["protocols"] == report["protocols"]
    # Changes of the root of the older scan count as well.
    assert report["changes"] == 2
    for format_ in ("html", "markdown"):
        shown = cli("report", where, "--format", format_).out
        assert table.table in shown
        assert "table-gone" in shown
    # A feature's change over time compares all roots with all roots.
    page = cli("report", where, "--format", "markdown").out
    assert "| deletionVectors | everyone | 1 | 0 | 0, 1 unknown | +0 |" in page
    # One scan alone is compared with those of its roots.
    newest = report["scan_id"]
    alone = cli("report", where, "--format", "json", "--scan", newest).json
    assert [each["tables"] for each in alone["scans"]] == [1, 1]


def test_a_running_scan_with_spark_is_not_one_that_was_stopped(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    scan_id = "29991231T000000Z-00000000"
    (Path(where) / "_staging_spark" / scan_id).mkdir(parents=True)
    with hold_spark_lock(where, scan_id):
        assert cli(*CHECK, where).code == 0
        with pytest.raises(ScanLockedError), hold_spark_lock(where, scan_id):
            pass
        assert is_running(where, scan_id)
    assert not is_running(where, scan_id)
    # Spark may reach another file system by a path that this machine cannot write.
    (tmp_path / "file").touch()
    with hold_spark_lock(str(tmp_path / "file"), scan_id):
        assert not is_running(str(tmp_path / "file"), scan_id)
    with hold_spark_lock(str(tmp_path / "elsewhere"), scan_id):
        pass
    assert not (tmp_path / "elsewhere").exists()
    ran = cli(*CHECK, where)
    assert (ran.code, "is not finished" in ran.out) == (3, True)


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("tables", "table", None),
        ("tables", "min_writer_version", None),
        ("tables", "version", -1),
        ("tables", "configuration", None),
        ("tables", "complete", None),
        ("features", "kind", "reader"),
        ("features", "kind", None),
        ("findings", "severity", "fatal"),
        ("findings", "rule", None),
        ("findings", "message", None),
        ("findings", "number", None),
        ("errors", "table", None),
        ("errors", "message", None),
    ],
)
def test_values_that_no_scan_writes(
    cli: Cli, lake: Path, tmp_path: Path, name: str, column: str, value: Any
) -> None:
    where = str(tmp_path / "inventory")
    Log(lake / "b/four").commit(
        0, commit_info(), protocol(3, 7, ["zzz"], ["zzz"]), metadata(id="four")
    )
    Log(lake / "b/five").raw(0, b"{not json\n")
    for _ in range(2):
        assert cli("scan", str(lake), "--inventory", where).code == 3
    rows = DeltaTable(f"{where}/{name}").to_pyarrow_table()
    damaged = rows.to_pylist()
    for row in damaged:
        row[column] = value
    columns = [field.with_nullable(True) for field in rows.schema]
    shutil.rmtree(f"{where}/{name}")
    write_deltalake(
        f"{where}/{name}",
        pa.Table.from_pylist(damaged, pa.schema(columns)),
        partition_by=["scan_id"],
    )
    plan = ("plan-upgrade", "--from", where, "--set", "delta.appendOnly=true")
    for command in ((*CHECK, where), ("report", where), plan, ("drift", where)):
        ran = cli(*command)
        said = " ".join((ran.out + ran.err).split())
        assert ran.code == 3, command
        assert f"the inventory has a null or invalid {column} in {name} of scan " in said


def test_times_that_python_cannot_hold(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    rows = DeltaTable(f"{where}/scans").to_pyarrow_table()
    index = rows.schema.get_field_index("ended_at")
    late = pa.array([2**62] * len(rows), pa.int64()).cast(rows.schema.field("ended_at").type)
    write_deltalake(f"{where}/scans", rows.set_column(index, "ended_at", late), mode="overwrite")
    for command in ((*CHECK, where), ("report", where), ("drift", where)):
        ran = cli(*command)
        assert ran.code == 3, command
        assert "the inventory has a time that is out of range" in ran.out + ran.err


def test_processes_that_begin_an_inventory_at_one_time_create_it_once(tmp_path: Path) -> None:
    for number in range(10):
        where = tmp_path / str(number)
        append_at_once(where)
        assert commits_of_metadata(where) == 1


def test_processes_add_the_columns_of_a_release_at_one_time(tmp_path: Path) -> None:
    columns = inventory_schema(Inventory.ERRORS)
    for number in range(10):
        where = tmp_path / str(number)
        old = pa.schema(list(columns)[:-2])
        DeltaTable.create(where / "errors", old, partition_by=["scan_id"])
        append_at_once(where)
        assert commits_of_metadata(where) == 2
        found = DeltaTable(where / "errors").to_pyarrow_table().schema.names
        assert sorted(found) == sorted(columns.names)


def test_columns_of_a_newer_release_are_kept(cli: Cli, lake: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", where).code == 0
    tables = [name for name in Inventory if name is not Inventory.CLIENTS_SEEN]
    for name in tables:
        added = pa.schema([*inventory_schema(name), pa.field("later", pa.list_(pa.string()))])
        write_deltalake(f"{where}/{name}", added.empty_table(), mode="append", schema_mode="merge")
    for _ in range(2):
        assert cli("scan", str(lake), "--inventory", where).code == 0
    assert cli(*CHECK, where).json["summary"]["tables"] == 3
    assert cli("drift", where).code == 0
    for name in tables:
        # Concurrent appends survive only commits without metadata.
        assert commits_of_metadata(Path(where), name) == 2
        assert "later" in DeltaTable(f"{where}/{name}").to_pyarrow_table().schema.names


def test_scans_end_while_others_delete_old_ones(tmp_path: Path) -> None:
    """To deltalake, an append conflicts with a commit that deletes other rows."""
    for number in range(10):
        where = tmp_path / str(number)
        append_at_once(where)
        old = "scan_id IN ('scan 0', 'scan 1')"
        begin = Barrier(4)

        def delete(where: Path = where, old: str = old, begin: Barrier = begin) -> None:
            inventory = open_inventory_tables(str(where), {})
            begin.wait()
            inventory.drop(Inventory.ERRORS, old)

        with ThreadPoolExecutor(4) as pool:
            working = [pool.submit(delete), pool.submit(delete)]
            working += [pool.submit(append_row, where, f"new {n}", begin) for n in range(2)]
            for each in working:
                each.result()
        assert stored_scans(where) == ["new 0", "new 1", "scan 2", "scan 3"]


def append_at_once(where: Path, count: int = 4) -> None:
    """Append rows from several threads, as several scans do."""
    names, begin = [f"scan {number}" for number in range(count)], Barrier(count)
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda name: append_row(where, name, begin), names))
    assert stored_scans(where) == names


def append_row(where: Path, scan_id: str, begin: Barrier) -> None:
    columns = inventory_schema(Inventory.ERRORS)
    row = {**dict.fromkeys(columns.names[:3], ""), "scan_id": scan_id}
    inventory = open_inventory_tables(str(where), {})
    begin.wait()
    inventory.append(Inventory.ERRORS, lambda: pa.Table.from_pylist([row], schema=columns))


def stored_scans(where: Path) -> list[str]:
    return sorted(DeltaTable(where / "errors").to_pyarrow_table().column("scan_id").to_pylist())


def commits_of_metadata(where: Path, name: str = "errors") -> int:
    commits = (where / name / LOG_FOLDER).glob("*.json")
    return sum('"metaData"' in commit.read_text() for commit in commits)


def test_tables_below_a_root_that_cannot_be_searched_are_mentioned(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    where, aside = str(tmp_path / "inventory"), tmp_path / "aside"
    assert cli("scan", str(lake), "--inventory", where).code == 0
    tables = len(DeltaTable(f"{where}/tables").to_pyarrow_table())
    lake.rename(aside)
    said = f"and has 0 tables; scan [^ ]+ had {tables}: tables below places .* are not counted"
    for _ in range(2):
        assert cli("scan", str(lake), "--inventory", where).code == 3
        for command in (CHECK, ["report", "--format", "markdown"]):
            ran = cli(*command, where)
            assert ran.code == 3
            assert re.search(said, " ".join((ran.out + ran.err).split()))
    lake.mkdir()
    assert cli("scan", str(lake), "--inventory", where, "--allow-empty").code == 0
    ran = cli(*CHECK, where, "--allow-empty")
    assert "not counted" not in ran.out + ran.err
