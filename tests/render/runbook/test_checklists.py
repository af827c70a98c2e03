"""Every line of a runbook's checklists belongs to what its plans do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.render.runbook.ten import CASES, planned
from tests.support.failures import collect_failures
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
SOURCE = "The source of the feature is disabled"
BACKUP = "The backup was made and can be read"
KEEP = "Keep the backup"
OWNERS = "The owners of the clients above have confirmed"
OPENED = "Each declared client has opened the tables once"
STOPPED = "The jobs and streams above are stopped"
BACK = "No feature was re-enabled"
CHECKPOINT = "A checkpoint was written after the last step"
STARTED = "Writers that were stopped"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def runbook(cli: Cli, *words: str, log: Log | None = None) -> str:
    log = log or Log(Path("orders")).commit(0, commit_info(), protocol(1, 2), metadata())
    ran = cli(words[0], log.table, *words[1:], "--format", "json", "-o", "plan.json")
    assert ran.code in (0, 1), ran.err
    ran = cli("runbook", "plan.json")
    assert ran.code == 0
    return ran.out


def shown(out: str, *lines: str) -> list[bool]:
    return [line in out for line in lines]


def test_item_15_an_upgrade_has_no_source_to_switch_off(cli: Cli) -> None:
    out = runbook(cli, "plan-upgrade", "--enable", "vacuumProtocolCheck")
    assert shown(out, SOURCE, BACK) == [False, False]
    assert shown(out, STOPPED, CHECKPOINT, STARTED) == [True, True, True]


def test_item_15_a_downgrade_has_it(cli: Cli) -> None:
    stored = protocol(3, 7, ["vacuumProtocolCheck"], ["vacuumProtocolCheck"])
    log = Log(Path("orders")).commit(0, commit_info(), stored, metadata())
    out = runbook(cli, "plan-downgrade", "--drop", "vacuumProtocolCheck", log=log)
    assert shown(out, SOURCE, BACK, STOPPED) == [True, True, True]


def test_item_15_a_change_of_properties_needs_no_backup_and_no_checkpoint(cli: Cli) -> None:
    out = runbook(cli, "plan-upgrade", "--set", "delta.appendOnly=true")
    assert shown(out, SOURCE, BACK, BACKUP, KEEP, CHECKPOINT) == [False] * 5
    assert "this change needs no backup" in out


def test_item_15_nobody_answers_where_no_client_loses(cli: Cli) -> None:
    words = ("--client", "deltalake/engine@1.6.6")
    same = runbook(cli, "plan-upgrade", "--set", "a=b", *words)
    assert shown(same, OWNERS, OPENED) == [False, True]
    log = Log(Path("others")).commit(0, commit_info(), protocol(1, 2), metadata())
    losing = runbook(cli, "plan-upgrade", "--enable", "typeWidening", *words, log=log)
    assert shown(losing, OWNERS, OPENED) == [True, True]


def test_item_15_nothing_is_stopped_for_statements_about_rows(cli: Cli) -> None:
    log = Log(Path("orders")).commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(1, commit_info("WRITE"), add("a.parquet"))
    out = runbook(cli, "plan-upgrade", "--sql", f"VACUUM delta.`{log.table}`", log=log)
    assert shown(out, SOURCE, CHECKPOINT, OWNERS) == [False] * 3


def test_item_15_each_of_ten_runbooks_asks_only_for_what_its_plan_needs(cli: Cli) -> None:
    with collect_failures() as failures:
        for case in CASES:
            file = str(planned(case, cli))
            out = cli("runbook", file).out
            if "## Before" not in out:
                continue
            drops = "No feature is dropped, so" not in out
            copied = "this change needs no backup" not in out
            with failures.of(case.name):
                assert shown(out, SOURCE, BACK) == [drops, drops]
                assert shown(out, BACKUP, KEEP) == [copied, copied]
                asked = "Notify the owners of these clients" in out
                assert shown(out, OWNERS) == [asked]


@pytest.mark.parametrize("name", ["fast-drop", "enable", "isolation", "blocked", "nothing"])
def test_item_3_every_runbook_shows_the_effect_on_concurrency(cli: Cli, name: str) -> None:
    (case,) = [case for case in CASES if case.name == name]
    file = planned(case, cli)
    out = cli("runbook", str(file)).out.replace("\\", "")
    facts = [line for line in out.splitlines() if line.startswith("- **Concurrent writers**: ")]
    (fact,) = facts
    rules = json.loads(file.read_text())["concurrency"]
    before, after = rules["before"], rules["after"]
    rows = [side["row_level_concurrency"]["databricks"] for side in (before, after)]
    changed = f"{rows[0]} -> " if rows[0] != rows[1] else ""
    assert f"row-level: {changed}{rows[1]} on Databricks: " in fact
    for side in (before, after):
        assert f"{side['effective']['delta-spark']} on " in fact
    assert ("- **Their conflicts**: databricks: conflict" in out) == any(
        cell["engine"] == "databricks" for cell in rules["cells"]
    )
