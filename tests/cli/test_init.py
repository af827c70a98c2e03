"""`deltaproto init`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import __version__ as deltalake_version
from deltalake import write_deltalake

from deltaproto.cli.init import starter_policy
from deltaproto.fleet.last_writers import summarize_rows
from deltaproto.fleet.scan_history import extent_of
from deltaproto.fleet.settings_file import read_settings
from deltaproto.fleet.staging import Staging
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
from tests.conftest import Ran

Cli = Callable[..., Ran]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("lake/orders", "lake/customers"):
        write_deltalake(name, pa.table({"id": [1]}))
    return tmp_path


def test_the_policy_is_filled_in_after_the_first_scan(cli: Cli, folder: Path) -> None:
    first = cli("init", "lake")
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines() == [
        "wrote deltaproto.yaml",
        "wrote policy.yaml, without clients",
        "next: deltaproto scan, then deltaproto init again to fill in the clients that write",
    ]
    # Nothing was looked at yet.
    assert cli("check").code == 3
    assert cli("scan").code == 0
    second = cli("init")
    assert "wrote policy.yaml: 1 client of 2 tables" in second.out
    checked = cli("check", "--format", "json")
    assert checked.code == 0
    assert {(each["client"], each["version"]) for each in checked.json["verdicts"]} == {
        ("deltalake", deltalake_version)
    }
    policy = load_local_policy("policy.yaml")
    assert [each.text for each in policy.clients] == [f"deltalake@{deltalake_version}"]
    # The versions of today are the ceiling.
    write_deltalake(
        "lake/later", pa.table({"id": [1]}), configuration={"delta.enableChangeDataFeed": "true"}
    )
    assert cli("scan", "-q").code == 1


def test_files_that_someone_edited_are_kept(cli: Cli) -> None:
    cli("init", "lake")
    cli("scan", "-q")
    Path("policy.yaml").write_text("policy_version: 1\nclients: [trino@476]\n")
    settings = Path("deltaproto.yaml").read_text()
    ran = cli("init")
    assert ran.out.startswith(
        "deltaproto.yaml exists, and was kept\npolicy.yaml exists, and was kept\n"
    )
    assert Path("policy.yaml").read_text() == "policy_version: 1\nclients: [trino@476]\n"
    for words in (("lake",), ("--inventory", "i"), ("--policy", "p.yaml")):
        assert cli("init", *words).code == 2
    assert Path("deltaproto.yaml").read_text() == settings


def test_without_roots_the_folder_itself_is_scanned(cli: Cli) -> None:
    assert cli("init", "--inventory", "saved", "--policy", "rules/of us.yaml").code == 2
    assert not os.path.exists("deltaproto.yaml")
    assert cli("init", "--inventory", "saved", "--policy", "of us.yaml").code == 0
    assert cli("scan", "--format", "json", "--fail-on", "never").json["tables"] == 2
    assert cli("init").out.splitlines()[1] == "wrote of us.yaml: 1 client of 2 tables"
    # The inventory's own tables are no part of the fleet.
    assert cli("scan", "--format", "json", "--fail-on", "never").json["tables"] == 2


def test_the_settings_continue_the_scans_of_an_inventory(cli: Cli, folder: Path) -> None:
    (folder / "more.txt").write_text(f"{folder / 'listed'}\n")
    write_deltalake("listed", pa.table({"id": [1]}))
    into = ("--inventory", "kept", "-q")
    assert cli("scan", "lake", "--exclude", "customers", *into).code == 0
    assert cli("scan", "--list", "more.txt", "--exclude", "customers", *into).code == 0
    # Its patterns are others.
    assert cli("scan", "lake/customers", *into, "--exclude", "no*").code == 0
    assert cli("scan", "lake", "--exclude", "customers", *into).code == 0
    assert cli("init", "--inventory", "kept").code == 0
    settings = read_settings("deltaproto.yaml", {})
    assert settings["roots"] == (str(folder / "lake"),)
    assert settings["lists"] == (str(folder / "more.txt"),)
    assert settings["exclude"] == ("customers",)
    assert cli("scan", "--format", "json").json["tables"] == 2


def test_an_inventory_of_an_unfinished_scan_has_no_roots(cli: Cli, folder: Path) -> None:
    Staging(str(folder / "kept"), "20261128T000000Z-00000000", extent_of(["x"], (), ()))
    assert cli("init", "--inventory", "kept").code == 0
    assert read_settings("deltaproto.yaml", {})["roots"] == (str(folder),)


def test_the_nightly_line_checks_the_fleet_although_a_table_is_unreadable(
    cli: Cli, folder: Path
) -> None:
    assert cli("init", "lake").code == 0
    (folder / "lake/empty/_delta_log").mkdir(parents=True)
    ran = run_nightly_line()
    assert ran.returncode == 3
    # The summary of check, after that of scan.
    assert "3 tables, 1 unreadable" in ran.stdout


def run_nightly_line(**variables: str) -> subprocess.CompletedProcess[str]:
    (line,) = [each for each in Path("deltaproto.yaml").read_text().splitlines() if "* * *" in each]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    source = str(Path(__file__).parents[2])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": source, **variables}
    command = ["/bin/sh", "-c", line.removeprefix("# 0 2 * * *  ")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_nightly_line_fails_if_nothing_was_scanned(cli: Cli, folder: Path) -> None:
    """`check` then reports on an earlier scan, and its success says nothing about today."""
    assert cli("init", "lake").code == 0
    assert run_nightly_line().returncode == 0
    ran = run_nightly_line(DELTAPROTO_SCAN_TIMEOUT="soon")
    assert "DELTAPROTO_SCAN_TIMEOUT" in ran.stderr
    assert (ran.returncode, "2 tables; verdicts" in ran.stdout) == (2, True)


def test_the_variables_of_the_settings_do_not_disturb_a_second_run(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`scan` and `check` have the same variables."""
    monkeypatch.setenv("DELTAPROTO_INVENTORY", "fleet")
    assert cli("init", "lake").code == 0
    assert "deltaproto.yaml exists, and was kept" in cli("init").out
    monkeypatch.setenv("DELTAPROTO_INVENTORY", "other")
    refused = cli("init")
    assert (refused.code, refused.out) == (2, "")
    assert "with another inventory; DELTAPROTO_INVENTORY is set" in refused.err
    for words in (("lake",), ("--policy", "other.yaml")):
        assert cli("init", *words).code == 2


@pytest.mark.parametrize("policy", ["no/policy.yaml", "deltaproto.yaml"])
def test_a_policy_that_cannot_be_written_leaves_no_settings(
    cli: Cli, policy: str, folder: Path
) -> None:
    refused = cli("init", "lake", "--policy", policy)
    assert (refused.code, os.listdir(folder)) == (2, ["lake"])
    assert "choose another --policy" in refused.err


def test_an_address_with_a_secret_is_refused(cli: Cli) -> None:
    refused = cli("init", "s3://key:s3cr3t@lake/gold")
    assert refused.code in (2, 3)
    assert "s3cr3t" not in refused.out + refused.err
    assert not Path("deltaproto.yaml").exists()


def test_a_root_that_yaml_cannot_hold_leaves_no_file(cli: Cli) -> None:
    refused = cli("init", "lake\n- more: true")
    assert refused.code == 2
    assert "control characters" in refused.err
    assert not Path("deltaproto.yaml").exists()


def test_a_folder_that_cannot_be_written(cli: Cli) -> None:
    Path("deltaproto.yaml").symlink_to("nowhere/deltaproto.yaml")
    ran = cli("init")
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_what_cannot_hold_an_inventory_is_refused_and_missing_roots_are_noted(cli: Cli) -> None:
    Path("file").touch()
    for name, what in (("file", "a file"), ("lake/orders", "a Delta table")):
        for command in (("init", "lake"), ("scan", "lake")):
            refused = cli(*command, "--inventory", name)
            assert refused.code == 2
            assert f"{name} is {what}, not a folder for an inventory" in refused.err
    assert not Path("deltaproto.yaml").exists()
    ran = cli("init", "lake", "nosuch", "file", "s3://lake")
    assert ran.code == 0
    assert [line for line in ran.err.splitlines() if line] == [
        f"warning: {name} is not a folder on this machine: a scan does not find tables there"
        for name in ("nosuch", "file")
    ]


ROWS = [
    ("Apache-Spark/3.5.1 Delta-Lake/3.2.0", 1, 2),
    ("Apache-Spark/3.5.1 Delta-Lake/3.2.0", 3, 7),
    ("trino@455", 1, 4),
    ("delta-rs.py-0.25.5", 1, 1),
    ("Databricks-Runtime/16.4.x-photon-scala2.12", 2, 5),
    ("DuckDB", 1, 2),
    ("a\n  - evil@1\u2028  - worse@1 \x1b[2J", 1, 2),
    (None, 1, 2),
]


def test_writers_are_counted_and_nobody_writes_lines_of_the_policy(tmp_path: Path) -> None:
    rows = [
        {"last_engine": engine, "min_reader_version": reader, "min_writer_version": writer}
        for engine, reader, writer in ROWS
    ]
    writers = summarize_rows(rows, load_local_catalog(()))
    assert writers.clients == {
        "delta-spark@3.2.0": 2,
        "trino@455": 1,
        "deltalake@0.25.5": 1,
        "databricks-runtime@16.4": 1,
    }
    assert (writers.without_version, writers.unnamed) == ({"duckdb": 1}, 1)
    assert (writers.tables, writers.highest) == (8, (3, 7))
    text = starter_policy(writers)
    assert text.isascii() and "\x1b" not in text  # noqa: PT018
    (tmp_path / "p.yaml").write_text(text)
    policy = load_local_policy(str(tmp_path / "p.yaml"))
    assert {each.text for each in policy.clients} == {*writers.clients}
    assert "duckdb@VERSION  # wrote 1 table last, version unknown" in text
    assert "1 table: the scan did not see who wrote last" in text


def test_an_inventory_without_tables_is_no_evidence() -> None:
    empty = summarize_rows([], load_local_catalog(()))
    assert starter_policy(empty) == starter_policy(None)
