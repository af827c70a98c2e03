"""Approvals of a policy in the gate, the runbook, the audit log and the check."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deltaproto.execution.recorder import RunRecorder
from deltaproto.execution.run_log import AuditLog
from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
CLIENT = "deltalake/engine@1.6.6"
TOMORROW = str(datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(1))
YESTERDAY = str(datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(1))
CLIENTS = "policy_version: 1\nclients: [{client: deltalake/engine@1.6.6, access: [read]}]\n"
GOAL = {"goal": "enable typeWidening"}
FEATURE = {"feature": "typeWidening"}


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)


@pytest.fixture
def plan(cli: Cli, log: Log) -> str:
    log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())
    file = Path(log.table).parent / "plan.json"
    words = ("--enable", "typeWidening", "--client", CLIENT, "--access", "read")
    ran = cli("plan-upgrade", log.table, *words, "--format", "json", "--output", str(file))
    assert ran.code in (0, 1), ran.err
    return str(file)


def policy(folder: Path, **approval: Any) -> str:
    given = {
        "client": CLIENT,
        "access": ["read"],
        "table": "table",
        "approver": "Mary Moss",
        "reason": "dashboards move in May",
        "ticket": "OPS-12",
        "expires": TOMORROW,
        **approval,
    }
    file = folder / "policy.yaml"
    file.write_text(f"{CLIENTS}approvals:\n- {json.dumps(given)}\n")
    return str(file)


def gate(cli: Cli, plan: str, file: str) -> dict[str, Any]:
    ran = cli("apply", plan, "--policy", file, "--dry-run", "--yes", "--format", "json")
    (result,) = ran.json["results"]
    (found,) = (each for each in result["gates"] if each["name"] == "policy")
    return dict(found)


class TestGate:
    @pytest.mark.parametrize("what", [FEATURE, GOAL], ids=["feature", "goal"])
    def test_an_approved_loss_passes_and_is_shown(
        self, cli: Cli, plan: str, tmp_path: Path, what: dict[str, str]
    ) -> None:
        found = gate(cli, plan, policy(tmp_path, **what))
        assert found["passed"], found
        said = f"{CLIENT} read (typeWidening) is approved by Mary Moss, OPS-12"
        assert said in found["message"]
        assert "existing error" not in found["message"]

    def test_the_goal_is_the_one_that_the_plan_has_whatever_its_text_says(
        self, cli: Cli, log: Log, plan: str, tmp_path: Path
    ) -> None:
        document = json.loads(Path(plan).read_text())
        document["goal"]["text"] = "enable variantType"
        document[CHECKSUM_FIELD] = compute_checksum(document)
        Path(plan).write_text(json.dumps(document))
        assert not gate(cli, plan, policy(tmp_path, goal="enable variantType"))["passed"]
        assert gate(cli, plan, policy(tmp_path, **GOAL))["passed"]

    def test_statements_of_the_users_own_are_part_of_the_goal(
        self, cli: Cli, log: Log, plan: str, tmp_path: Path
    ) -> None:
        sql = "ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        sql = sql.replace(" t ", f" delta.`{log.table}` ")
        words = ("--sql", sql, "--format", "json", "--output", plan)
        assert cli("plan-upgrade", log.table, *words).code == 0
        found = gate(cli, plan, policy(tmp_path, goal="1 SQL statement"))
        assert not found["passed"]
        assert f'not "1 SQL statement: {sql}"' in found["message"]
        assert gate(cli, plan, policy(tmp_path, goal=f"1 SQL statement: {sql}"))["passed"]

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({**FEATURE, "expires": YESTERDAY}, f"expired on {YESTERDAY}"),
            ({**FEATURE, "access": ["append"]}, "covers append, not read"),
            ({**FEATURE, "table": "other"}, 'is for tables that match "other"'),
            ({"goal": "enable rowTracking"}, 'is for the goal "enable rowTracking"'),
            (
                {"feature": "columnMapping"},
                "is for columnMapping, but the loss is caused by typeWidening",
            ),
        ],
    )
    def test_one_that_does_not_apply_blocks_and_is_named(
        self, cli: Cli, plan: str, tmp_path: Path, changes: dict[str, Any], why: str
    ) -> None:
        found = gate(cli, plan, policy(tmp_path, **changes))
        assert not found["passed"]
        assert CLIENT in found["message"]
        assert "the approval by Mary Moss, OPS-12" in found["message"]
        assert why in found["message"]


class TestPlan:
    @pytest.mark.parametrize(
        ("changes", "code", "said"),
        [
            (FEATURE, 0, "is approved by Mary Moss, OPS-12"),
            ({**FEATURE, "expires": YESTERDAY}, 1, f"expired on {YESTERDAY}"),
            ({**FEATURE, "table": "other"}, 1, "ok -> refused because of typeWidening"),
        ],
    )
    def test_an_unapproved_loss_is_exit_code_1(
        self, cli: Cli, log: Log, tmp_path: Path, changes: dict[str, Any], code: int, said: str
    ) -> None:
        log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())
        words = ("--enable", "typeWidening", "--policy", policy(tmp_path, **changes))
        ran = cli("plan-upgrade", log.table, *words, "--format", "json")
        (planned,) = ran.json.get("plans", [ran.json])
        assert ran.code == code, ran
        assert any(said in warning for warning in planned["warnings"]), planned["warnings"]


class TestRunbook:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            (FEATURE, "is approved by Mary Moss, OPS-12"),
            ({**FEATURE, "expires": YESTERDAY}, f"expired on {YESTERDAY}"),
        ],
    )
    def test_it_shows_approvals(
        self, cli: Cli, plan: str, tmp_path: Path, changes: dict[str, Any], said: str
    ) -> None:
        out = cli("runbook", plan, "--policy", policy(tmp_path, **changes)).out
        assert said in out.replace("\\", "")


class TestAudit:
    def test_a_line_names_the_approvals(self, tmp_path: Path) -> None:
        audit = AuditLog(str(tmp_path / "audit.jsonl"), lambda text: text.replace("secret", "***"))
        plan: Any = SimpleNamespace(id="1", plan=SimpleNamespace(table="t", location="file:///t"))
        recorder = RunRecorder(plan, None, audit, ("approved by Mary, secret",))  # type: ignore[arg-type]
        step: Any = SimpleNamespace(id="s1", sql="ALTER")
        recorder.unseen(step, "", 0, 0.0)
        audit.close()
        line = json.loads((tmp_path / "audit.jsonl").read_text())
        assert line["approvals"] == ["approved by Mary, ***"]


class TestCheck:
    @pytest.fixture
    def vectors(self, log: Log) -> str:
        names = ["typeWidening"]
        on = metadata({"delta.enableTypeWidening": "true"})
        listed = protocol(3, 7, names, [*names, "appendOnly", "invariants"])
        return log.commit(0, listed, on).table

    def check(self, cli: Cli, table: str, file: str) -> tuple[int, dict[str, Any]]:
        ran = cli("check", table, "--policy", file, "--format", "json")
        (document,) = documents(ran, "check")
        return ran.code, document

    def test_an_approved_loss_is_suppressed_and_shown(
        self, cli: Cli, vectors: str, tmp_path: Path
    ) -> None:
        file = policy(tmp_path, **FEATURE)
        code, document = self.check(cli, vectors, file)
        assert (code, document["findings"]) == (0, [])
        (entry,) = document["suppressed"]
        assert entry["client"] == CLIENT
        assert entry["waived"] == {
            "reason": "dashboards move in May",
            "expires": TOMORROW,
            "approver": "Mary Moss",
            "ticket": "OPS-12",
        }
        shown = cli("check", vectors, "--policy", file, "--show-suppressed").out
        assert "approved by Mary Moss" in shown

    def test_an_expired_one_hides_nothing_and_is_a_finding(
        self, cli: Cli, vectors: str, tmp_path: Path
    ) -> None:
        code, document = self.check(cli, vectors, policy(tmp_path, **FEATURE, expires=YESTERDAY))
        assert code == 1
        assert [each["rule"] for each in document["findings"]] == ["DP201", "DP303"]
        assert f"expired on {YESTERDAY}" in document["findings"][0]["hint"]
        assert "the approval by Mary Moss" in document["findings"][1]["message"]

    def test_one_for_another_client_or_table_matches_nothing(
        self, cli: Cli, vectors: str, tmp_path: Path
    ) -> None:
        for changes in ({"table": "other"}, {"client": "deltalake/engine@1.6.5"}):
            code, document = self.check(cli, vectors, policy(tmp_path, **FEATURE, **changes))
            assert code == 1
            assert [each["rule"] for each in document["findings"]] == ["DP201", "DP301"]
