"""Scans of this machine's disks, from the command line to the inventory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from deltaproto.cli.main import main
from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.scan_history import extent_of
from deltaproto.fleet.staging import Staging
from tests.conftest import Ran
from tests.fleet.fleets import make_fleet
from tests.support.contract import validate
from tests.support.logs import Log, commit_info, metadata, protocol

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
Rows = list[dict[str, Any]]
# Rules that look into the history or into every commit, which a scan does not.
OF_HISTORY = {"DP105", "DP106", "DP138"}
LAYERS = ("kind", "status", "listed", "implied", "enabled", "present", "required_by", "evidence")


def rows(inventory: Path, name: str) -> Rows:
    return DeltaTable(inventory / name).to_pyarrow_table().to_pylist()


def scanned(cli: Cli, *words: str) -> dict[str, Any]:
    ran = cli("scan", *words, "--format", "json")
    assert "error" not in ran.json, ran.json["error"]
    validate("scan", ran.json)
    return {**ran.json, "code": ran.code}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_fleet(tmp_path_factory.mktemp("fleet"), seed=8, count=400)


@pytest.fixture(scope="module")
def root(fleet: list[Path]) -> str:
    return str(fleet[0].parent.parent)


@pytest.fixture(scope="module")
def whole(root: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inventory of a scan with two processes, which the tests only read."""
    folder = tmp_path_factory.mktemp("whole")
    words = ["scan", root, "--inventory", str(folder / "i"), "--parallel", "2"]
    assert main([*words, "--output", str(folder / "out")]) == 3
    return folder / "i"


def test_the_inventory_says_what_inspect_says(
    cli: Cli, fleet: list[Path], root: str, tmp_path: Path
) -> None:
    inventory = tmp_path / "inventory"
    done = scanned(cli, root, "--inventory", str(inventory), "--parallel", "2")
    told = cli("inspect", *map(str, fleet), "--format", "json").json["tables"]
    read = {entry["table"]: entry for entry in told if "error" not in entry}
    failed = {entry["table"]: entry for entry in told if "error" in entry}
    assert len(read) > 200
    assert len(failed) > 10
    assert (done["tables"], done["errors"]) == (len(read), len(failed))

    tables = {row["table"]: row for row in rows(inventory, "tables")}
    assert tables.keys() == read.keys()
    for name, entry in read.items():
        row, protocol = tables[name], entry["protocol"]
        assert row["location"] == entry["location"]
        assert (row["version"], row["id"]) == (entry["version"], entry["id"])
        assert row["min_reader_version"] == protocol["minReaderVersion"]
        assert row["min_writer_version"] == protocol["minWriterVersion"]
        assert row["reader_features"] == protocol["readerFeatures"]
        assert row["writer_features"] == protocol["writerFeatures"]
        assert row["isolation_level"] == entry["isolation"]["declared"]
        assert row["isolation_delta_rs"] == entry["isolation"]["effective"]["delta-rs"]
        low = entry["lowest_protocol"]
        assert row["lowest_writer_version"] == (low and low["minWriterVersion"])
        assert row["partition_columns"] == entry["partition_columns"]
        assert row["clustering_columns"] == entry["clustering_columns"]
        assert row["complete"] == entry["complete"]
        plain = {k: v for k, v in entry["configuration"].items() if k != "own.note"}
        assert {k: v for k, v in row["configuration"] if k != "own.note"} == plain

    features = [
        (name, f["name"], *(f[key] for key in LAYERS))
        for name, entry in read.items()
        for f in entry["features"]
    ]
    seen = [
        (f["table"], f["feature"], *(f[key] for key in LAYERS)) for f in rows(inventory, "features")
    ]
    assert sorted(map(repr, seen)) == sorted(map(repr, features))

    findings = [
        (name, f["rule"], f["severity"], f["message"], f["hint"], f.get("feature"))
        for name, entry in read.items()
        for f in entry["findings"]
        if f["rule"] not in OF_HISTORY
    ]
    seen = [
        (f["table"], f["rule"], f["severity"], f["message"], f["hint"], f["feature"])
        for f in rows(inventory, "findings")
    ]
    assert done["findings"] == len(seen)
    # Of damaged commits, a scan finds only those that it reads.
    seen = [row for row in seen if row[1] not in OF_HISTORY]
    assert sorted(map(repr, seen)) == sorted(map(repr, findings))

    errors = {row["table"]: (row["code"], row["message"]) for row in rows(inventory, "errors")}
    assert errors == {
        name: (entry["error"]["code"], entry["error"]["message"]) for name, entry in failed.items()
    }
    assert done["code"] == 3


def same_rows(one: Path, two: Path) -> None:
    """Check that two inventories have the same rows, except for the id of their scans."""
    for name in ("tables", "features", "findings", "errors"):
        first, second = (
            sorted(
                json.dumps({k: str(v) for k, v in row.items() if k != "scan_id"})
                for row in rows(inventory, name)
            )
            for inventory in (one, two)
        )
        assert first == second


def test_one_process_says_the_same_as_two(cli: Cli, root: str, whole: Path, tmp_path: Path) -> None:
    scanned(cli, root, "--inventory", str(tmp_path), "--parallel", "1")
    same_rows(tmp_path, whole)


def test_every_client_can_read_the_inventory(cli: Cli, whole: Path) -> None:
    for name in ("scans", "tables", "features", "findings", "errors"):
        (table,) = cli("inspect", str(whole / name), "--format", "json").json["tables"]
        assert table["protocol"] == {
            "minReaderVersion": 1,
            "minWriterVersion": 2,
            "readerFeatures": None,
            "writerFeatures": None,
        }
        assert table["partition_columns"] == ["scan_id"]


def test_scans_are_appended_and_nothing_is_left_over(
    cli: Cli, fleet: list[Path], tmp_path: Path
) -> None:
    ids = [
        scanned(cli, str(fleet[0].parent), "--inventory", str(tmp_path), "--fail-on", "never")[
            "scan_id"
        ]
        for _ in range(2)
    ]
    scans = rows(tmp_path, "scans")
    assert [scan["scan_id"] for scan in sorted(scans, key=lambda s: s["started_at"])] == ids
    counts = [sum(row["scan_id"] == each for row in rows(tmp_path, "tables")) for each in ids]
    assert counts[0] == counts[1] == scans[0]["tables"]
    assert list((tmp_path / "_staging").iterdir()) == []


def test_the_inventory_is_no_part_of_the_fleet(cli: Cli, fleet: list[Path], tmp_path: Path) -> None:
    root = tmp_path / "lake"
    shutil.copytree(fleet[0].parent, root / "area")
    (tmp_path / "link").symlink_to(root)
    inventory = str(tmp_path / "link" / "inventory")
    first, second = (scanned(cli, str(root), "--inventory", inventory) for _ in range(2))
    assert first["tables"] == second["tables"]
    assert scanned(cli, str(root / "inventory"))["tables"] == 5


def test_a_list_of_tables(cli: Cli, fleet: list[Path], tmp_path: Path) -> None:
    lines = ["# ours", "", str(fleet[0]), f"file://{fleet[1]}".replace(" ", "%20"), "a.b.c"]
    (tmp_path / "list").write_text("\n".join([*lines, str(fleet[0]) + "/"]) + "\n")
    done = scanned(cli, "--list", str(tmp_path / "list"), "--inventory", str(tmp_path / "i"))
    assert done["tables"] + done["errors"] == 3
    assert done["first_errors"][-1]["table"] == "a.b.c"


def test_a_list_with_null_characters(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Such as a list that is a binary file, or one that `find -print0` wrote.
    table = Log(tmp_path / "t").commit(0, commit_info(), protocol(1, 2), metadata()).table
    names = tmp_path / "list"
    names.write_text(f"{table}\0{table}\0\n{table}\n")
    done = scanned(cli, "--list", str(names))
    assert (done["tables"], done["errors"]) == (1, 1)
    assert "contains a null character" in done["first_errors"][0]["message"]
    for command in (["inspect"], ["discover"], ["check", "--client", "trino@476"]):
        monkeypatch.setattr("sys.stdin", names.open())
        ran = cli(*command, "-")
        assert (ran.code, "internal" in ran.out + ran.err) == (3, False)
        assert "contains a null character" in " ".join(ran.out.split())


def test_mistakes_are_told(cli: Cli, tmp_path: Path, fleet: list[Path]) -> None:
    def refused(*words: str) -> str:
        ran = cli("scan", *words)
        assert ran.code == 2, ran
        return ran.err

    assert "nothing to scan" in refused()
    assert "--resume needs --inventory" in refused(str(tmp_path), "--resume")
    assert "no unfinished scan" in refused(
        str(tmp_path), "--resume", "--inventory", str(tmp_path / "i")
    )
    assert "--parallel 0" in refused(str(tmp_path), "--parallel", "0")
    assert "cannot read" in refused("--list", str(tmp_path / "none"))
    assert "neither a folder" in refused("main.sales")
    assert "is not a folder" in refused(str(tmp_path), "--inventory", "main.inventory")
    (tmp_path / "file").write_text("x")
    refusal = refused(str(fleet[0]), "--inventory", str(tmp_path / "file"))
    assert "is a file, not a folder for an inventory" in refusal
    ran = cli("scan", str(tmp_path / "none"))
    # A long path moves the line breaks.
    out = " ".join(ran.out.split())
    assert (ran.code, "does not exist" in out, "hint: check the path" in out) == (3, True, True)
    assert "per second" not in out
    for command in ("report", "drift", "forecast"):
        ran = cli(command, str(tmp_path / "none"))
        assert (ran.code, "none does not exist" in ran.err) == (2, True)


def test_more_errors_are_where_they_are_saved(cli: Cli, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"lake/{number}/_delta_log").mkdir(parents=True)
    found = cli("scan", str(tmp_path / "lake"))
    assert "and 2 more; --inventory saves all" in found.out
    found = cli("scan", str(tmp_path / "lake"), "--inventory", str(tmp_path / "inventory"))
    assert "and 2 more, in the table errors of the inventory" in found.out


def test_a_full_disk_needs_space(
    cli: Cli, fleet: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is that of deltalake 1.6.6 on a file system of 300 KiB."""

    def fail(*_: object, **__: object) -> None:
        raise DeltaError(
            "Failed to parse parquet: External: Generic LocalFileSystem error: Unable to copy "
            "data to file: No space left on device (os error 28)"
        )

    monkeypatch.setattr(deltalake, "write_deltalake", fail)
    ran = cli("scan", str(fleet[0]), "--inventory", str(tmp_path / "inventory"))
    assert (ran.code, "hint: free some space\n" in ran.err) == (2, True)


def test_the_exit_code_follows_the_findings(cli: Cli, tmp_path: Path) -> None:
    need = metadata({"delta.enableDeletionVectors": "true"})
    Log(tmp_path / "r" / "t").commit(0, commit_info(), protocol(1, 2), need)
    assert cli("scan", str(tmp_path / "r")).code == 1
    assert cli("scan", str(tmp_path / "r"), "--fail-on", "never").code == 0
    shown = cli("scan", str(tmp_path / "r")).out
    assert "DP103" in shown
    assert "(1,2)" in shown


SCAN = (sys.executable, "-m", "deltaproto", "scan")
PAUSED = """
import sys
from deltaproto.cli.main import main
from deltaproto.fleet.staging import Staging

method, count = sys.argv[1], int(sys.argv[2])
original = getattr(Staging, method)
calls = 0

def pausing(*given):
    global calls
    original(*given)
    calls += 1
    if calls == count:
        print("paused", flush=True)
        sys.stdin.read()

setattr(Staging, method, pausing)
sys.exit(main(sys.argv[3:]))
"""
"""the command line, which stops for good after a number of calls of a method of `Staging`"""


def begin(root: str, inventory: Path, command: Sequence[str] = SCAN) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command, root, "--inventory", str(inventory), "--format", "json", "--parallel", "2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_scan_that_is_killed_goes_on(
    cli: Cli, root: str, whole: Path, tmp_path: Path, parts: int
) -> None:
    inventory = tmp_path / "i"
    when = ("add", str(parts)) if parts else ("__init__", "1")
    with begin(root, inventory, (sys.executable, "-c", PAUSED, *when, "scan")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "paused\n"
        os.killpg(process.pid, signal.SIGKILL)
    assert len(list(inventory.glob("_staging/*/*.arrow"))) == parts
    assert not (inventory / "scans").exists()

    resumed = scanned(cli, root, "--inventory", str(inventory), "--resume")
    assert resumed["resumed"] >= 100 * parts
    assert resumed["tables"] == len(rows(whole, "tables"))
    same_rows(inventory, whole)


@pytest.mark.parametrize("cached", [False, True])
def test_a_finished_scan_deletes_what_stopped_ones_of_its_extent_left(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    """Inventories on object stores are staged in the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "deltaproto" / "digest"
    if cached:
        monkeypatch.setattr(InventoryTables, "staging_folder", lambda _, **__: str(folder))
    else:
        folder = tmp_path / "i"
    for name in ("a", "b"):
        Log(tmp_path / "lake" / name / "t").commit(0, protocol(1, 2), metadata())
    a, b = (str(tmp_path / "lake" / name) for name in ("a", "b"))

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    inventory = ("--inventory", str(tmp_path / "i"))
    with monkeypatch.context() as stopping:
        stopping.setattr(InventoryTables, "add", stopped)
        for root in (a, a, b):
            assert cli("scan", root, *inventory).code == 130
    staging = folder / "_staging"
    assert len([*staging.glob("*/*.arrow")]) == 3
    later = Staging(str(folder), "29991231T000000Z-00000000", extent_of([f"file://{a}"], (), ()))
    later.__exit__()
    assert cli("scan", a, *inventory).code == 0
    left = [path.parent.name for path in staging.glob("*/extent.json")]
    assert len(left) == 2
    assert "29991231T000000Z-00000000" in left
    later.remove()
    # The other root can still be resumed.
    assert cli("scan", b, *inventory, "--resume").code == 0
    assert (staging.exists(), folder.exists()) == (not cached, not cached)


def test_scans_at_one_time_do_not_disturb_each_other(root: str, tmp_path: Path) -> None:
    running = [begin(f"{root}/area 0", tmp_path) for _ in range(4)]
    done = [json.loads(process.communicate()[0]) for process in running]
    assert {process.returncode for process in running} == {3}
    assert len({each["scan_id"] for each in done}) == 4
    assert {row["scan_id"] for row in rows(tmp_path, "scans")} == {d["scan_id"] for d in done}
    tables = rows(tmp_path, "tables")
    for each in done:
        assert sum(row["scan_id"] == each["scan_id"] for row in tables) == each["tables"]


@pytest.mark.parametrize("command", ["scan", "drift", "report", "forecast", "plan-upgrade"])
def test_an_inventory_needs_a_path_in_utf8(cli: Callable[..., Ran], command: str) -> None:
    """deltalake takes no other path; a shell can pass one."""
    words = {
        "scan": (".", "--inventory", "\udcff"),
        "plan-upgrade": ("--from", "\udcff", "--set", "delta.appendOnly=true"),
    }
    ran = cli(command, *words.get(command, ("\udcff",)), "--format", "json")
    assert ran.code == 2
    assert "of the inventory is not UTF-8" in ran.err


@pytest.mark.parametrize("how", ["root", "linked root", "list"])
def test_patterns_match_the_paths_of_links(cli: Cli, tmp_path: Path, how: str) -> None:
    """`check` of the link's path found it, and `check` of the inventory said that it complies."""
    lake, policy = tmp_path / "lake", tmp_path / "policy.yaml"
    log = Log(lake / "a" / "orders")
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    (lake / "gold").symlink_to(lake / "a")
    name = str(lake / "gold" / "orders")
    policy.write_text('policy_version: 1\ntables: {"gold/*": {forbid_features: [invariants]}}\n')
    (tmp_path / "tables.txt").write_text(name)
    source = {
        "root": [str(lake)],
        "linked root": [str(lake / "gold")],
        "list": ["--list", str(tmp_path / "tables.txt")],
    }[how]
    inventory = str(tmp_path / "inventory")
    for _ in range(2):  # the second scan does not read the table again
        assert cli("scan", *source, "--inventory", inventory).code == 0
        ran = cli("check", inventory, "--policy", str(policy), "--format", "json")
        one = cli("check", name, "--policy", str(policy), "--format", "json")
        assert (ran.code, one.code) == (1, 1)
        assert [each["rule"] for each in ran.json["findings"]] == ["DP205"]
        assert ran.json["tables"][0]["other_names"] == [name]
