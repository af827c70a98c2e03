"""`deltaproto.yaml` for all commands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Ran
from tests.fleet.moves import sound_fleet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Cli = Callable[..., Ran]

POLICY = "policy_version: 1\nclients:\n- delta-spark@2.4.0\n"


@pytest.fixture
def folder(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configured folder with a fleet and an inventory."""
    monkeypatch.chdir(tmp_path)
    sound_fleet(tmp_path / "lake", 1, 8)
    Path("policy.yaml").write_text(POLICY)
    Path("deltaproto.yaml").write_text("roots: [lake]\ninventory: kept\npolicy: policy.yaml\n")
    assert cli("scan", "--fail-on", "never").code == 0
    return tmp_path


def test_scan_check_report_and_drift_need_no_arguments(cli: Cli, folder: Path) -> None:
    named = (str(folder / "kept"), "--policy", str(folder / "policy.yaml"), "--format", "json")
    none = ("--config", "none")
    checked = cli("check", "--format", "json")
    assert checked.err == "using inventory, policy from deltaproto.yaml\n"
    expected = cli("check", *named, *none)
    assert expected.err == ""
    assert (checked.code, checked.json["verdicts"]) == (1, expected.json["verdicts"])
    report = cli("report", "--format", "json")
    other = cli("report", *named, *none).json
    assert {**report.json, "generated_at": other["generated_at"]} == other
    assert cli("scan", "--fail-on", "never", "--quiet").err == ""
    drift = cli("drift", "--format", "json", "-q")
    assert (drift.code, drift.err, drift.json["changes"]) == (0, "", [])


@pytest.mark.parametrize("command", ["check", "plan", "drift", "discover"])
def test_a_missing_inventory_names_the_command_that_writes_it(
    cli: Cli, folder: Path, command: str
) -> None:
    warning = (
        f"warning: there is no inventory at {folder / 'kept'} yet: run `deltaproto scan` first"
    )
    assert warning not in cli(command).err
    shutil.rmtree("kept")
    assert warning in cli(command).err
    assert "there is no inventory" not in cli("scan", "--fail-on", "never").err


def test_the_policy_is_found_for_a_table(cli: Cli, folder: Path) -> None:
    table = next(path.parent for path in (folder / "lake").rglob("_delta_log"))
    checked = cli("check", str(table))
    assert "delta-spark@2.4.0" in checked.out.replace(" ", "")
    # A question about a client is about this client.
    assert "delta-spark@2.4.0" not in cli("check", str(table), "--client", "trino@476").out
    assert "delta-spark@2.4.0" not in cli("check", str(table), "--config", "none").out


def test_a_check_without_arguments_has_the_accepted_baseline(cli: Cli, folder: Path) -> None:
    settings = Path("deltaproto.yaml")
    settings.write_text(settings.read_text() + "baseline: known.json\n")
    missing = cli("check")
    assert missing.code == 2
    assert "known.json" in missing.err
    assert "--write-baseline" in missing.err
    written = cli("check", "--write-baseline", "known.json")
    assert written.code == 0
    assert "using inventory, policy from deltaproto.yaml" in written.err
    checked = cli("check", "--format", "json")
    assert "using inventory, policy, baseline from deltaproto.yaml" in checked.err
    assert checked.code == 0
    assert checked.json["summary"]["known"] > 0
    # Written again: all that is accepted, not only what is new.
    assert cli("check", "--write-baseline", "known.json").code == 0
    assert cli("check", "--format", "json").json["summary"] == checked.json["summary"]
    # A question about a table or a client is about this one.
    table = str(next(path.parent for path in (folder / "lake").rglob("_delta_log")))
    for words in ((table,), ("kept",), ("--client", "trino@476"), ("--config", "none", "kept")):
        assert "baseline" not in cli("check", *words).err


@pytest.mark.spark
def test_a_plan_that_takes_access_is_refused_without_an_option(
    cli: Cli, folder: Path, spark: SparkSession
) -> None:
    lake = folder / "lake"
    table = next(path.parent for path in lake.rglob("_delta_log"))
    words = ("plan-upgrade", str(table), "--enable", "v2Checkpoint", "--output", "plan.json")
    planned = cli(*words, "--format", "json")
    assert planned.code == 1
    assert "using policy from deltaproto.yaml" in planned.err
    assert cli(*words, "--format", "json", "--config", "none").code == 0
    tried = cli("apply", "plan.json", "--dry-run")
    assert (tried.code, cli("apply", "plan.json", "--dry-run", "--config", "none").code) == (1, 0)
    assert "delta-spark@2.4.0" in tried.out + tried.err


def test_a_plan_is_for_the_inventory_unless_tables_are_given(cli: Cli, folder: Path) -> None:
    """A table, or an inventory of `--from`, is planned instead."""
    Path("policy.yaml").write_text("policy_version: 1\nclients:\n- delta-spark@4.4.0\n")
    planned = cli("plan", "--format", "json")
    assert "using inventory, policy from deltaproto.yaml" in planned.err
    whole = [each["table"] for each in cli("plan", "kept", "--format", "json").json["plans"]]
    assert [each["table"] for each in planned.json["plans"]] == whole
    assert len(whole) > 1
    named = cli("plan", "--from", "kept", "--format", "json")
    assert "using policy from deltaproto.yaml" in named.err
    assert [each["table"] for each in named.json["plans"]] == whole
    table = str(next(path.parent for path in (folder / "lake").rglob("_delta_log")))
    assert cli("plan", table, "--format", "json").json["table"] == table
    assert "no table" in cli("plan", "--config", "none", "--policy", "policy.yaml").err


def test_the_command_line_wins(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("other.yaml").write_text("policy_version: 1\nclients:\n- polars@2.1.0\n")
    other = cli("check", "kept", "--policy", "other.yaml", "--format", "json")
    assert {each["client"] for each in other.json["verdicts"]} == {"polars"}
    monkeypatch.setenv("DELTAPROTO_CONFIG", "none")
    assert "Missing argument 'TABLE...'" in cli("check").err


@pytest.mark.parametrize("command", ["check", "report", "drift"])
def test_a_missing_argument_names_the_setting(
    cli: Cli, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = cli(command)
    assert refused.code == 2
    assert "Missing argument" in refused.err
    assert "set inventory in deltaproto.yaml" in refused.err
    Path("deltaproto.yaml").write_text("roots: [lake]\n")
    assert "set inventory in deltaproto.yaml" in cli(command).err


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("inventory: a\nscan:\n  inventory: b\n", "inventory is set twice"),
        ("inventroy: a\n", "inventroy"),
        ("policy: [a]\n", "expected text"),
        # Taken literally, a scan would create these folders.
        ("inventory: ~/a\n", "deltaproto.yaml:1:12: ~ is not expanded"),
        ("roots: [~/a]\n", "deltaproto.yaml:1:9: ~ is not expanded"),
        ("inventory: s3://${BUCKET}/a\n", "${BUCKET} is not replaced in a path"),
    ],
)
def test_a_mistake_in_the_file_stops_every_command(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, cause: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("deltaproto.yaml").write_text(text)
    for words in (("check", "t"), ("inspect", "t"), ("report", "i"), ("apply", "p.json")):
        refused = cli(*words)
        assert refused.code == 2, words
        assert cause in refused.err
    assert cli("features").code == 0


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("roots: [a]\nfoo: b\n", "known names: roots, "),
        ("scan:\n  roots: [a]\n  foo: b\n", "known names: roots, "),
        ("roots: [a]\ninventary: b\n", 'did you mean "inventory"?'),
        ("roots: [a]\ntos: b\n", "known names: roots, "),
    ],
)
def test_a_hint_names_no_old_key(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("deltaproto.yaml").write_text(text)
    (shown,) = [line for line in cli("scan").err.splitlines() if line.startswith("hint: ")]
    assert hint in shown
    assert {"to", "scan"}.isdisjoint(shown.removeprefix("hint: known names: ").split(", "))


@pytest.mark.parametrize("kind", ["folder", "dangling link", "pipe"])
def test_a_settings_file_that_cannot_be_read_is_not_passed_over(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Its policy would be left out silently."""
    monkeypatch.chdir(tmp_path)
    sound_fleet(tmp_path / "lake", 1, 1)
    file = Path("deltaproto.yaml")
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("moved/deltaproto.yaml")
    refused = cli("check", "lake/area 0/t000", "--client", "trino@476")
    assert refused.code == 2
    assert refused.err.startswith("error: deltaproto.yaml: ")


@pytest.mark.parametrize(
    "words",
    [
        ("report", "--output", "deltaproto.yaml"),
        ("scan", "--output", "deltaproto.yaml"),
        ("check", "--write-baseline", "deltaproto.yaml"),
        ("inspect", "lake", "--output", "deltaproto.yaml"),
    ],
)
def test_an_output_does_not_overwrite_the_settings(
    words: tuple[str, ...], cli: Cli, folder: Path
) -> None:
    before = Path("deltaproto.yaml").read_text()
    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert f"{words[-2]} would overwrite deltaproto.yaml" in ran.err
    assert Path("deltaproto.yaml").read_text() == before


def test_plans_without_steps_are_not_saved_silently(cli: Cli, folder: Path) -> None:
    Path("policy.yaml").write_text("policy_version: 1\nclients: [delta-spark@4.4.0]\n")
    ran = cli("plan", "--out", "plans")
    assert ran.code == 0
    assert "no plan has steps: nothing was saved in plans\n" in ran.err
    assert not Path("plans").exists()


def test_a_tilde_that_no_shell_expanded_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lake").mkdir()
    for words in (("scan", "lake", "--inventory=~/i"), ("check", "lake", "--policy=~/p.yaml")):
        refused = cli(*words)
        assert (refused.code, os.listdir()) == (2, ["lake"])
        assert "begins with ~, which is not expanded" in refused.err
    Path("~").mkdir()
    assert cli("scan", "lake", "--inventory=~/i", "--allow-empty").code == 0
