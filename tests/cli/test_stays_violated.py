"""What a plan for a policy does not bring about is shown by every command that uses the plan."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from tests.conftest import Ran
from tests.fleet.fleets import two_folders
from tests.support.contract import validate
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
FORBIDDEN = "policy_version: 1\ntables:\n  '**':\n    forbid_features: [invariants]\n"
SOME = f"{FORBIDDEN}    require_properties: {{delta.enableChangeDataFeed: true}}\n"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)


@pytest.fixture
def table(log: Log) -> str:
    return log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata()).table


def plan(cli: Cli, table: str, tmp_path: Path, policy: str) -> tuple[str, Any]:
    (tmp_path / "policy.yaml").write_text(policy)
    file = str(tmp_path / "plan.json")
    words = (table, "--policy", str(tmp_path / "policy.yaml"), "--format", "json")
    assert cli("plan", *words, "--output", file).code == 1
    return file, cli("plan", *words).json


def test_it_is_counted_apart(cli: Cli, table: str, tmp_path: Path) -> None:
    other = Log(tmp_path / "other").commit(0, commit_info(), protocol(1, 1), metadata()).table
    policy = tmp_path / "policy.yaml"
    policy.write_text(FORBIDDEN)
    words = ("plan", table, other, "--policy", str(policy))
    ran = cli(*words, "--format", "json")
    validate("plan", ran.json)
    counts = ("tables", "with_steps", "nothing_to_do", "stay_violated", "blocked", "unreadable")
    assert [ran.json["summary"][name] for name in counts] == [2, 0, 1, 1, 0, 0]
    text = cli(*words).out
    assert "2 tables: 0 with steps, 1 with nothing to do, 1 still in violation, 0 blocked" in text


@pytest.mark.parametrize("command", ["apply", "rehearse"])
def test_a_plan_that_brings_nothing_about_is_refused(
    command: str, cli: Cli, table: str, tmp_path: Path
) -> None:
    file, planned = plan(cli, table, tmp_path, FORBIDDEN)
    assert planned["steps"] == []
    ran = cli(command, file, "--format", "json")
    assert ran.code == 1
    (result,) = ran.json["results"]
    assert (result["status"], result["remarks"]) == ("refused", [])
    assert result["message"] == (
        "no statement improves the table's compliance: " + planned["unmet"][0]["reason"]
    )


def test_a_plan_with_steps_shows_what_they_leave(cli: Cli, table: str, tmp_path: Path) -> None:
    file, planned = plan(cli, table, tmp_path, SOME)
    assert planned["steps"]
    (result,) = cli("apply", file, "--dry-run", "--format", "json").json["results"]
    assert result["remarks"] == [f"stays violated: {planned['unmet'][0]['reason']}"]


@pytest.mark.parametrize("policy", [FORBIDDEN, SOME])
def test_runbook_and_script_show_it(cli: Cli, table: str, tmp_path: Path, policy: str) -> None:
    file, planned = plan(cli, table, tmp_path, policy)
    reason = planned["unmet"][0]["reason"]
    book = cli("runbook", file).out
    assert "1 table will still violate the policy afterwards" in book
    assert f"**Stays violated.** {reason}" in book
    script = cli("plan", table, "--policy", str(tmp_path / "policy.yaml"), "--script", "sql").out
    assert f"-- stays violated: {reason}" in script
    assert "othing to do" not in book + script


def test_the_short_form_of_a_plan_shows_it(table: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(FORBIDDEN)
    assert "the policy stays violated" in repr(
        deltaproto.plan_policy(table, tmp_path / "policy.yaml")
    )


def test_groups_separate_what_stays_and_call_rewrites_a_bound(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        "policy_version: 1\ntables:\n  '**':\n    max_writer_version: 1\n"
        "    forbid_features: [deletionVectors]\n"
    )
    vectors = ("deletionVectors",)
    listed = protocol(3, 7, [*vectors], [*vectors, "changeDataFeed", "appendOnly"])
    tables = [
        Log(tmp_path / f"t{number}").commit(0, commit_info(), listed, metadata(), add()).table
        for number in range(6)
    ]
    ran = cli("plan", *tables, "--policy", str(tmp_path / "policy.yaml"), "--no-color")
    out = " ".join(ran.out.split())
    assert "rewrites at most 6 files" in out
    left = re.search(r"stays violated (.*?) rewrites", out)
    assert left is not None
    unable = "no engine can drop it"
    assert left[1] == f"DP204; appendOnly: {unable}; changeDataFeed: {unable}"


def test_many_unplanned_tables_are_one_line_for_each_error(cli: Cli, tmp_path: Path) -> None:
    tables = two_folders(tmp_path / "lake", 2, 0, 9)
    (tmp_path / "lake/gold/x4/_delta_log" / f"{0:020}.json").write_text("[]\n")
    policy = tmp_path / "policy.yaml"
    policy.write_text(SOME)
    plans = tmp_path / "plans"
    assert cli("plan", *tables, "--policy", str(policy), "--out", str(plans)).code == 3
    errors = cli("apply", str(plans), "--dry-run", "--policy", str(policy)).err.splitlines()
    malformed, other = [line for line in errors if "not planned" in line]
    assert malformed.startswith("error: 8 tables not planned: 00000000000000000000.json line 1: ")
    assert "lake/gold/x0" in malformed
    assert malformed.endswith(" and 5 more]")
    assert other.startswith("error: 1 table not planned: ")
    listed = cli("plan", *tables, "--policy", str(policy), "--format", "markdown").out
    assert "# Plans for 11 tables" in listed
    assert listed.count("| corrupt-log: 00000000000000000000.json line 1: ") == 2 + 9
    assert listed.index("## 9 tables not planned") < listed.index("## 2 tables: ")
    page = cli("runbook", str(plans), "--policy", str(policy)).out
    assert page.count("could not be planned: ") == 2
    assert all(f"lake/gold/x{number}`" in page for number in range(9))
