"""What the environment lacks: permissions, a home, a folder for temporary files."""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.certification.client import create_environment
from deltaproto.certification.fixtures.recipes import KIT_VERSION
from deltaproto.errors import TableError, UsageError
from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.staging import unfinished_scans
from deltaproto.tables.engine_errors import contain_table_errors
from deltaproto.tables.quick_start import QuickStart
from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]


@pytest.fixture
def table(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return log.commit(0, commit_info(), protocol(1, 2), metadata()).table


@pytest.fixture
def kit(tmp_path: Path) -> str:
    index = {"kit_version": KIT_VERSION, "digest": "0", "made_with": {}, "cases": []}
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "kit.json").write_text(json.dumps(index))
    return str(tmp_path / "kit")


@pytest.fixture
def nobody() -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads and writes every file")


def refused(ran: Ran) -> str:
    assert (ran.code, ran.out) == (2, "")
    return ran.err.strip()


@pytest.mark.parametrize("words", [("scan", "{}"), ("inspect", "{}", "--output", "out.txt")])
def test_no_folder_for_temporary_files(
    cli: Cli, table: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])
    assert refused(cli(*(word.format(table) for word in words))) == (
        "error: no temporary folder can be written\nhint: set TMPDIR to a folder that you can write"
    )
    assert not os.path.exists("out.txt")


@pytest.mark.parametrize("flag", ["--output", "--write-policy"])
def test_discover_writes_nothing_if_an_output_is_impossible(
    cli: Cli, table: str, flag: str
) -> None:
    assert cli("scan", table, "--inventory", "inventory").code == 0
    said = (
        f"error: cannot write missing/file: No such file or directory\nhint: choose another {flag}"
    )
    assert refused(cli("discover", "inventory", flag, "missing/file")) == said
    assert not os.path.exists("inventory/clients_seen")
    # A file that can be written is not changed by a run that fails.
    Path("old").write_text("old")
    assert cli("discover", "nothing", flag, "old").code == 3
    assert cli("discover", "nothing", flag, "new").code == 3
    assert (Path("old").read_text(), os.path.exists("new")) == ("old", False)


@pytest.mark.parametrize("flag", ["--output", "--results", "--entry"])
def test_certify_measures_nothing_if_an_output_is_impossible(
    cli: Cli, kit: str, flag: str, tmp_path: Path
) -> None:
    words = ("certify", "x", "--command", "true", "--kit", kit, flag, str(tmp_path))
    assert refused(cli(*words)) == (
        f"error: cannot write {tmp_path}: Is a directory\nhint: choose another {flag}"
    )


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without HOME and passwd entry, who cannot write below /."""
    import platformdirs

    def unknown(*_: object) -> str:
        raise RuntimeError("could not determine the home directory")

    real = os.makedirs

    def makedirs(path: str, *words: Any, **named: Any) -> None:
        if str(path).startswith("/.cache"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        real(path, *words, **named)

    monkeypatch.setattr(platformdirs, "user_cache_dir", unknown)
    monkeypatch.setattr(os, "makedirs", makedirs)


@pytest.mark.usefixtures("homeless")
def test_no_home(cli: Cli, table: str) -> None:
    ran = refused(cli("scan", table, "--inventory", "s3://bucket/inventory"))
    assert ran.startswith("error: cannot write /.cache/deltaproto/")
    assert ran.endswith(
        ": Permission denied\nhint: set XDG_CACHE_HOME to a folder that you can write: "
        "it keeps what a scan has read"
    )
    assert unfinished_scans(InventoryTables("s3://bucket/inventory", {}).staging_folder()) == []
    assert QuickStart([], {}).jars() == []


def test_certify_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*/clients: Not a directory") as raised:
        create_environment(["x"], tmp_path / "file" / "clients")
    assert raised.value.hint == "set XDG_CACHE_HOME to a folder that you can write"


def test_init_with_a_policy_that_is_no_file(cli: Cli, table: str) -> None:
    Path("deltaproto.yaml").write_text(f"roots: [{table}]\npolicy: folder\n")
    os.mkdir("folder")
    said = f"error: cannot read {Path.cwd()}/folder: Is a directory\nhint: check the path"
    assert refused(cli("init")) == said


@pytest.mark.usefixtures("nobody")
def test_files_that_the_user_may_not_read(cli: Cli, table: str, kit: str) -> None:
    Path("closed").write_text("")
    os.chmod("closed", 0)
    Path("deltaproto.yaml").write_text(f"roots: [{table}]\npolicy: closed\n")
    assert "closed: Permission denied" in refused(cli("init"))
    words = ("certify", "x@1", "--adapter", "closed", "--kit", kit)
    assert "cannot read closed: Permission denied" in refused(cli(*words))
    os.chmod(f"{kit}/kit.json", 0)
    words = ("certify", "x", "--command", "true", "--kit", kit)
    assert f"cannot read {kit}/kit.json: Permission denied" in refused(cli(*words))


def require_only_notice(cli: Cli, table: str, note: str) -> None:
    """Check a table, and require that standard error and the JSON have this notice only."""
    ran = cli("check", table, "--client", "trino@476", "--format", "json")
    assert (ran.code, ran.err) == (0, f"warning: {note}\n")
    assert ran.json["notices"] == [note]


def test_a_misspelled_variable_is_shown(
    cli: Cli, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the policy that it names would silently not apply."""
    monkeypatch.setenv("DELTAPROTO_POLCY", "policy.yaml")
    monkeypatch.setenv("DELTAPROTO_TEAM", "data")
    note = "DELTAPROTO_POLCY is set, but no command reads it: did you mean DELTAPROTO_POLICY?"
    require_only_notice(cli, table, note)
    monkeypatch.setenv("DELTAPROTO_POLCY", "")
    assert cli("check", table, "--client", "trino@476").err == ""


@pytest.mark.parametrize(
    ("command", "name", "meant"),
    [
        ("scan", "DELTAPROTO_PARALELL", "DELTAPROTO_SCAN_PARALLEL"),
        ("drift", "DELTAPROTO_SINC", "DELTAPROTO_DRIFT_SINCE"),
    ],
)
def test_the_suggested_variable_is_one_that_the_command_reads(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, name: str, meant: str
) -> None:
    monkeypatch.setenv(name, "2")
    ran = cli(command, str(tmp_path / "none"))
    assert f"{name} is set, but no command reads it: did you mean {meant}?" in ran.err


def test_a_variable_without_a_value_is_shown(
    cli: Cli, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CI system sets it to nothing if a variable of its own is missing."""
    monkeypatch.setenv("DELTAPROTO_POLICY", "")
    monkeypatch.setenv("DELTAPROTO_QUIET", "")
    note = "DELTAPROTO_POLICY is set, but empty, so it has no effect"
    require_only_notice(cli, table, note)
    assert cli("features").err == ""


@pytest.mark.parametrize(
    ("value", "shown"), [("1", True), ("TRUE", True), ("0", False), ("", False)]
)
def test_tracebacks_are_shown_only_if_the_variable_is_on(
    value: str, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> int:
        raise RuntimeError("a defect")

    entry = importlib.import_module("deltaproto.cli.main")
    monkeypatch.setattr(entry, "_run_command", fails)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("DELTAPROTO_DEBUG", value)
    if shown:
        with pytest.raises(RuntimeError):
            entry.main(["features"])
    else:
        assert entry.main(["features"]) == 3
    # An error of one table, which otherwise does not end the command.
    with pytest.raises(RuntimeError if shown else TableError), contain_table_errors():
        raise RuntimeError("a defect")
