"""Folders with a rollout: waves, soak, failures, decisions and hooks, without Spark."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pytest

import deltaproto
from deltaproto.cli.plan_io import ProgressDisplay
from deltaproto.errors import ExitCode, ResultError, UsageError
from deltaproto.execution import rollout as rollout_module
from deltaproto.execution.hooks import open_hooks
from deltaproto.execution.plan_executor import ApplySession
from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.preflight import GateResult
from deltaproto.execution.result import ApplyResult, ApplyStatus
from deltaproto.execution.rollout_file import load_rollout
from deltaproto.execution.rollout_log import DECISIONS_FILE
from deltaproto.execution.run_log import STATE_FOLDER, Journal
from deltaproto.execution.runner import EngineFacts
from deltaproto.execution.verify import StatementResult
from deltaproto.execution.waits import WaitLimits
from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from tests.conftest import Ran
from tests.execution.scripted import NOW, ON, VECTORS, Clock, ScriptedEngine, leaves_vectors
from tests.support.contract import documents
from tests.support.logs import Log, commit_info, metadata, protocol

pytestmark = pytest.mark.rotating

HOUR = 3600.0
NAMES = ("dev_a", "b", "c", "d", "e")
POLICY = """
policy_version: 1
tables:
  "*": {forbid_features: [deletionVectors]}
  d: {history: truncate}
rollout: {canary: ["dev_*"], waves: [2], soak: 6h}
"""


class TimedEngine(ScriptedEngine):
    """Commits at the clock's time."""

    clock: Clock

    def commit(self, operation: str, *actions: dict[str, Any], mark: str | None = None) -> None:
        self.version += 1
        tag = {} if mark is None else {"userMetadata": mark}
        info = commit_info(operation, **{**tag, "timestamp": int(self.clock.now * 1000)})
        self.log.commit(self.version, info, *actions)


class Fleet:
    """Five tables, a policy with a rollout, and an engine for all of them."""

    def __init__(self, folder: Path, cli: Callable[..., Ran]) -> None:
        self.cli, self.clock = cli, Clock()
        self.plans, self.policy = folder / "plans", folder / "policy.yaml"
        self.policy.write_text(POLICY)
        self.logs = {name: Log(folder / "lake" / name) for name in NAMES}
        for log in self.logs.values():
            log.commit(0, commit_info("CREATE TABLE"), VECTORS, ON)
        self.sent: list[str] = []
        self.scripts: dict[str, Callable[[], StatementResult]] = {}
        self.engines: dict[str, TimedEngine] = {}
        self.names: dict[str, str] = {}

    def plan(self) -> None:
        tables = [log.table for log in self.logs.values()]
        words = ("--policy", str(self.policy), "--out", str(self.plans), "--quiet")
        assert self.cli("plan", *tables, *words).code == 0
        for table in load_rollout(str(self.plans)).tables:
            (planned,) = read_plans(str(self.plans / table.file))
            assert isinstance(planned, LoadedPlan)
            name = Path(table.table).name
            engine = TimedEngine(self.logs[name], planned)
            engine.clock = self.clock
            self.engines[planned.id], self.names[planned.id] = engine, name

    def apply(self, *words: str) -> Ran:
        return self.cli(
            "apply", str(self.plans), "--yes", "--allow-irreversible", "--detailed-exitcode", *words
        )

    def applied(self, *words: str) -> tuple[int, list[str], dict[str, Any]]:
        """Apply. Return the exit code, the tables that got statements, and the progress."""
        before = len(self.sent)
        ran = self.apply("--format", "json", *words)
        (document,) = documents(ran, "apply")
        return ran.code, self.sent[before:], document["rollout"]

    def decide(self, action: str, *words: str) -> Ran:
        return self.cli("rollout", action, str(self.plans), *words)

    def status(self, *words: str) -> Ran:
        return self.cli("status", str(self.plans), *words)

    def hook(self, name: str, script: str) -> tuple[str, str]:
        """Write a hook. Return the option that names its folder."""
        folder = self.plans.parent / "hooks"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
        return "--hooks", str(folder)

    def audited(self) -> list[dict[str, Any]]:
        """The decisions in the audit log."""
        log = self.plans / STATE_FOLDER / "audit.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in map(json.loads, lines) if "action" in line]

    # What a runner of statements has.
    def facts(self) -> EngineFacts:
        return next(iter(self.engines.values())).facts()

    def apart(self) -> Fleet:
        return self

    def run(self, sql: str, mark: str, progress: object = None) -> StatementResult:
        plan = json.loads(mark)["deltaproto"]["plan"]
        if plan not in self.names:
            self._add_new_plan(plan)
        name = self.names[plan]
        self.sent.append(name)
        if name in self.scripts:
            return self.scripts[name]()
        return self.engines[plan].run(sql, mark, progress)

    def _add_new_plan(self, plan: str) -> None:
        """Prepare the engine for a plan that `apply` made for a table that changed."""
        (planned,) = read_plans(str(self.plans / STATE_FOLDER / f"{plan}.plan.json"))
        assert isinstance(planned, LoadedPlan)
        name = Path(planned.plan.location).name
        engine = TimedEngine(self.logs[name], planned)
        engine.clock, engine.version = self.clock, planned.plan.fingerprint.version
        self.engines[plan], self.names[plan] = engine, name


def statuses(progress: dict[str, Any]) -> list[str]:
    return [wave["status"] for wave in progress["waves"]]


def by_name(fleet: Fleet) -> dict[str, dict[str, Any]]:
    waves = fleet.status("--format", "json").json["rollout"]["waves"]
    return {Path(table["table"]).name: table for wave in waves for table in wave["tables"]}


def tables(progress: dict[str, Any]) -> dict[str, str]:
    return {
        Path(table["table"]).name: table["status"]
        for wave in progress["waves"]
        for table in wave["tables"]
    }


def on_fire() -> StatementResult:
    return StatementResult("DELTA_SOMETHING", "the disk is on fire")


@pytest.fixture
def fleet(tmp_path: Path, cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Fleet:
    made = Fleet(tmp_path, cli)
    monkeypatch.setattr("deltaproto.cli.apply.lazy_runner", lambda _: lambda: made)
    for command in ("status", "rollout"):
        clock = SimpleNamespace(time=lambda: made.clock.now)
        monkeypatch.setattr(f"deltaproto.cli.{command}.time", clock)
    monkeypatch.setattr(
        "deltaproto.cli.apply.WaitLimits",
        lambda retries, wait: WaitLimits(
            retries, wait, lambda: made.clock.now, lambda seconds: made.clock.sleep(seconds)
        ),
    )
    return made


def test_each_wave_waits_for_the_one_before_it(fleet: Fleet) -> None:
    fleet.plan()
    code, sent, progress = fleet.applied()
    assert (code, sent) == (10, ["dev_a"])
    assert statuses(progress) == ["done", "waiting", "pending"]
    assert progress["next_at"] == "2033-05-18T09:33:00Z"
    # Cron comes too early: nothing is sent.
    fleet.clock.now += 6 * HOUR - 1
    assert fleet.applied()[:2] == (10, [])
    fleet.clock.now += 1
    code, sent, progress = fleet.applied()
    assert (code, {*sent}) == (10, {"b", "c"})
    assert statuses(progress) == ["done", "done", "waiting"]
    fleet.clock.now += 6 * HOUR
    # d waits until its history is old enough; e does not wait for it.
    code, sent, progress = fleet.applied()
    assert (code, sent) == (10, ["e", "d"])
    assert tables(progress)["d"] == "waiting"
    assert progress["next_at"] == "2033-05-19T15:33:00Z"
    fleet.clock.now += 24 * HOUR
    code, sent, progress = fleet.applied()
    assert (code, sent, progress["status"]) == (0, ["d"], "done")
    assert fleet.applied()[:2] == (0, [])


@pytest.fixture
def rehearsals(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> dict[str, ApplyResult | None]:
    """A policy with rehearsals: the tables rehearsed, and the result; None: as predicted."""
    fleet.policy.write_text(POLICY.replace("soak: 6h", "soak: 6h, rehearse: true, parallel: 2"))
    results: dict[str, ApplyResult | None] = {}

    def rehearse(planned: LoadedPlan, session: ApplySession, _scratch: str | None) -> ApplyResult:
        # Like the table, the clone is changed through the session of the run.
        assert session.runner() is fleet
        name = Path(planned.plan.table).name
        result = results.setdefault(name, None)
        done = ApplyResult(planned, ApplyStatus.DONE, ExitCode.OK, "as predicted")
        return done if result is None else result._replace(planned=planned)

    monkeypatch.setattr("deltaproto.execution.rollout.rehearse_plan", rehearse)
    return results


def test_one_plan_of_each_group_is_rehearsed(
    fleet: Fleet, rehearsals: dict[str, ApplyResult | None]
) -> None:
    fleet.plan()
    groups = fleet.status("--format", "json").json["rollout"]["groups"]
    assert {each["rehearsed"] for each in groups} == {False}
    for _ in range(4):
        # A dry run starts nothing, so it rehearses nothing.
        before = [*rehearsals]
        fleet.apply("--dry-run")
        assert [*rehearsals] == before
        fleet.applied()
        fleet.clock.now += 24 * HOUR
    # The plan for d deletes history, and those for the others are equal. d waits between its
    # steps, after which nothing of it can be rehearsed.
    assert [*rehearsals] == ["dev_a", "d"]
    assert sorted({*fleet.sent}) == sorted(NAMES)
    audited = [line for line in fleet.audited() if line["action"] == "rehearse"]
    assert [line["reason"] for line in audited] == ["as predicted"] * 2
    planned = {table["plan_id"]: name for name, table in by_name(fleet).items()}
    assert [planned[line["plan"]] for line in audited] == ["dev_a", "d"]
    groups = fleet.status("--format", "json").json["rollout"]["groups"]
    assert {each["rehearsed"] for each in groups} == {True}
    assert len({each["group_id"] for each in groups}) == 2
    assert "names d rehearsed yes" in " ".join(fleet.status().out.split())


def test_a_rehearsal_with_another_result_pauses_the_rollout(
    fleet: Fleet, rehearsals: dict[str, ApplyResult | None]
) -> None:
    fleet.plan()
    failed = ApplyResult(ANY, ApplyStatus.FAILED, ExitCode.FAILED, "s1: another protocol", "look")
    rehearsals["dev_a"] = failed
    code, sent, progress = fleet.applied()
    assert (code, sent, progress["status"]) == (1, [], "paused")
    assert "dev_a: the rehearsal did not succeed: s1: another protocol" in progress["message"]
    assert fleet.applied()[:2] == (1, [])
    # It is tried again, or skipped.
    fleet.decide("resume")
    assert fleet.applied()[:2] == (1, [])
    fleet.decide("resume")
    assert fleet.applied("--skip-rehearsal")[:2] == (10, ["dev_a"])


def test_a_decision_during_a_rehearsal_is_followed(
    fleet: Fleet, rehearsals: dict[str, ApplyResult | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.plan()
    rehearse = rollout_module.rehearse_plan

    def rehearse_for_long(planned: LoadedPlan, *session: Any) -> ApplyResult:
        fleet.decide("pause", "--reason", "incident")
        return rehearse(planned, *session)

    monkeypatch.setattr(rollout_module, "rehearse_plan", rehearse_for_long)
    assert fleet.applied()[1:2] == ([],)
    assert [*rehearsals] == ["dev_a"]


def test_a_table_that_apply_refuses_does_not_pause_the_rollout(
    fleet: Fleet, rehearsals: dict[str, ApplyResult | None]
) -> None:
    fleet.plan()
    gate = GateResult("fingerprint", False, "the table changed", "plan again", ExitCode.STALE)
    refused = ApplyResult(ANY, ApplyStatus.REFUSED, ExitCode.STALE, gate.message, gates=(gate,))
    rehearsals["dev_a"] = refused
    assert fleet.applied()[:2] == (10, ["dev_a"])


def test_options_of_rehearsals_need_one(fleet: Fleet) -> None:
    fleet.plan()
    for words in (["--skip-rehearsal"], ["--scratch", "s3://lake/scratch"]):
        ran = fleet.apply(*words)
        assert (ran.code, "no rehearsals are planned" in ran.err) == (2, True)
    assert fleet.sent == []


class TestFromPython:
    @pytest.fixture
    def rollout(self, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> deltaproto.Rollout:
        fleet.plan()
        monkeypatch.setattr("deltaproto.execution.runner.StatementRunner.started", lambda *_: fleet)
        monkeypatch.setattr(
            "deltaproto.app.rollout.time", SimpleNamespace(time=lambda: fleet.clock.now)
        )
        monkeypatch.setattr(
            "deltaproto.execution.waits.WaitLimits",
            lambda retries, wait: WaitLimits(
                retries, wait, lambda: fleet.clock.now, fleet.clock.sleep
            ),
        )
        return deltaproto.Rollout(fleet.plans)

    def test_the_plans_that_may_run(self, rollout: deltaproto.Rollout, fleet: Fleet) -> None:
        assert repr(rollout) == f"<Rollout {fleet.plans}: 5 tables>"
        progress = rollout.status()
        assert (progress.status, progress.ok, progress.next_at) == ("ready", True, None)
        tried = rollout.apply(dry_run=True, allow_irreversible=True)
        assert ([each.status for each in tried], fleet.sent) == (["ready"], [])
        heard: list[str] = []
        (applied,) = rollout.apply(
            allow_irreversible=True, on_event=lambda event: heard.append(event.kind)
        )
        assert (Path(applied.table).name, applied.ok, fleet.sent) == ("dev_a", True, ["dev_a"])
        assert heard == ["started", "finished"]
        assert rollout.apply(allow_irreversible=True) == ()
        progress = rollout.status()
        assert progress.raise_for_status() is progress
        assert progress.next_at == fleet.clock.now + 6 * HOUR
        assert [wave.status for wave in progress.waves] == ["done", "waiting", "pending"]
        # The same as from the command line.
        assert progress.to_dict() == fleet.status("--format", "json").json["rollout"]
        assert "<table>" in progress._repr_html_()
        assert repr(progress) == (
            "<RolloutProgress waiting: canary done, wave 1 waiting, wave 2 pending>"
        )
        # Waits end by themselves.
        rollout.apply(allow_irreversible=True, wait=True)
        assert (rollout.status().status, {*fleet.sent}) == ("done", {*NAMES})

    def test_decisions(self, rollout: deltaproto.Rollout, fleet: Fleet) -> None:
        rollout.pause("incident 4711")
        assert rollout.apply() == ()
        progress = rollout.status()
        with pytest.raises(ResultError, match=r"paused: by .*: incident 4711") as raised:
            progress.raise_for_status()
        assert (raised.value.exit_code, raised.value.result) == (ExitCode.FINDINGS, progress)
        rollout.resume()
        # Nothing is paused, so there is nothing to record.
        rollout.resume()
        for mistake, text in ((("x", "why"), "not in"), (("b", " "), "needs a reason")):
            with pytest.raises(UsageError, match=text):
                rollout.skip(*mistake)
        rollout.skip("dev_a", "is dropped next week")
        fleet.clock.now += 6 * HOUR
        fleet.scripts["b"] = on_fire
        assert not all(each.ok for each in rollout.apply())
        with pytest.raises(ResultError, match=r"stopped: .*b: .*the disk is on fire"):
            rollout.status().raise_for_status()
        rollout.abort()
        assert rollout.status().status == "aborted"
        with pytest.raises(UsageError, match="was aborted"):
            rollout.pause()
        actions = [line["action"] for line in fleet.audited()]
        assert actions == ["pause", "resume", "skip", "abort"]

    def test_a_table_that_is_not_there(self, rollout: deltaproto.Rollout, fleet: Fleet) -> None:
        shutil.rmtree(Path(fleet.logs["dev_a"].table) / "_delta_log")
        progress = rollout.status()
        with pytest.raises(ResultError, match="dev_a could not be read") as raised:
            progress.raise_for_status()
        assert (raised.value.exit_code, progress.complete) == (ExitCode.UNREADABLE, False)

    def test_a_folder_without_a_rollout(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="has no rollout"):
            deltaproto.Rollout(tmp_path)
        with pytest.raises(UsageError, match="none does not exist"):
            deltaproto.Rollout(tmp_path / "none")
        (tmp_path / "rollout.json").touch()
        with pytest.raises(UsageError, match=r"rollout\.json is not a folder"):
            deltaproto.Rollout(tmp_path / "rollout.json")

    def test_maintenance_windows_need_the_policy(self, fleet: Fleet) -> None:
        window = "maintenance_windows: [{days: [thu], from: '03:00', to: '04:00'}]"
        fleet.policy.write_text(POLICY.replace("forbid", f"{window}, forbid"))
        fleet.plan()
        with pytest.raises(UsageError, match="has maintenance windows"):
            deltaproto.Rollout(fleet.plans).apply()
        assert fleet.sent == []


def test_without_its_journals_a_rollout_continues_from_the_logs(fleet: Fleet) -> None:
    fleet.plan()
    for expected in (["dev_a"], ["b", "c"], ["e", "d"], ["d"]):
        code, sent, progress = fleet.applied()
        assert sorted(sent) == sorted(expected)
        # Another machine has only the plans.
        shutil.rmtree(fleet.plans / STATE_FOLDER)
        assert fleet.applied()[:2] == (code, [])
        shutil.rmtree(fleet.plans / STATE_FOLDER)
        fleet.clock.now += 24 * HOUR
    assert (code, progress["status"]) == (0, "done")


def test_a_failing_wave_stops_exactly_there(fleet: Fleet) -> None:
    fleet.plan()
    fleet.applied()
    fleet.clock.now += 6 * HOUR
    fleet.scripts["b"] = on_fire
    code, sent, progress = fleet.applied()
    # c is in the same wave, and is not started.
    assert (code, sent, progress["status"]) == (5, ["b"], "stopped")
    assert tables(progress) == {
        "dev_a": "done",
        "b": "failed",
        "c": "ready",
        "d": "pending",
        "e": "pending",
    }
    assert "the disk is on fire" in progress["waves"][1]["tables"][0]["message"]
    del fleet.scripts["b"]
    fleet.clock.now += 24 * HOUR
    code, sent, progress = fleet.applied()
    assert (code, sent, progress["status"]) == (1, [], "stopped")
    assert "1 failed, max_failures is 0" in fleet.apply().out


def test_a_drop_that_leaves_deletion_vectors_is_never_done(fleet: Fleet) -> None:
    fleet.plan()
    (engine,) = (fleet.engines[plan] for plan, name in fleet.names.items() if name == "dev_a")
    engine.script[[*engine.steps][-1]] = [leaves_vectors]
    code, sent, progress = fleet.applied()
    assert (code, sent, tables(progress)["dev_a"]) == (5, ["dev_a"], "failed")
    assert "have deletion vectors" in by_name(fleet)["dev_a"]["message"]
    assert fleet.decide("resume").code == 0
    assert by_name(fleet)["dev_a"]["status"] == "ready"
    code, sent, progress = fleet.applied()
    assert (code, sent, tables(progress)["dev_a"]) == (5, [], "failed")


def test_failures_within_the_limit_do_not_stop_the_others(fleet: Fleet) -> None:
    fleet.policy.write_text(POLICY.replace("soak: 6h", "parallel: 3, max_failures: 1"))
    fleet.plan()
    fleet.scripts["b"] = on_fire
    code, sent, progress = fleet.applied()
    # Without a time between waves, they follow each other in one run.
    assert (code, sorted(sent)) == (5, sorted(NAMES))
    assert statuses(progress) == ["done", "done", "waiting"]
    fleet.clock.now += 24 * HOUR
    code, sent, progress = fleet.applied()
    assert (code, sent, progress["status"], tables(progress)["b"]) == (1, ["d"], "done", "failed")


def test_decisions_hold_without_the_journals(fleet: Fleet) -> None:
    """Deleting `.deltaproto` reverts no decision, and `status` names what is unknown."""
    fleet.policy.write_text(POLICY.replace(", soak: 6h", ""))
    fleet.plan()
    state = fleet.plans / STATE_FOLDER
    fleet.decide("skip", "b", "--reason", "is dropped")
    fleet.decide("pause", "--reason", "incident 4711")
    shutil.rmtree(state)
    assert fleet.applied()[:2] == (1, [])
    assert fleet.status("--format", "json").json["rollout"]["note"] is None
    fleet.decide("resume", "--reason", "is over")
    shutil.rmtree(state)
    _, sent, progress = fleet.applied()
    assert (sent, tables(progress)["b"]) == (["dev_a", "c", "e", "d"], "skipped")
    shutil.rmtree(state)
    fleet.decide("abort")
    shutil.rmtree(state)
    for progress in (fleet.applied()[2], fleet.status("--format", "json").json["rollout"]):
        assert progress["status"] == "aborted"
        assert "4 tables, such as " in progress["note"]
        assert "and failures from before are unknown" in progress["note"]
    assert "failures from before" in " ".join(fleet.status().out.split())
    # Without both files, nobody knows them.
    (fleet.plans / DECISIONS_FILE).unlink()
    shutil.rmtree(state)
    progress = fleet.status("--format", "json").json["rollout"]
    assert "and decisions such as a pause, from before are unknown" in progress["note"]


def test_decisions_hold_for_another_folder_of_journals(fleet: Fleet, tmp_path: Path) -> None:
    fleet.plan()
    other = ("--journal", str(tmp_path / "records"))
    fleet.decide("pause", "--reason", "incident", *other)
    assert fleet.applied()[2]["status"] == "paused"
    assert fleet.decide("resume").code == 0
    assert fleet.applied(*other)[1] == ["dev_a"]
    # A folder of plans that is read-only has no copy; other plans had other decisions.
    (fleet.plans / DECISIONS_FILE).unlink()
    (fleet.plans / DECISIONS_FILE).mkdir()
    ran = fleet.decide("pause", *other)
    assert ran.code == 2
    assert "it has the decisions about the rollout" in ran.err
    (fleet.plans / DECISIONS_FILE).rmdir()
    line = {"event": "abort", "at": 1, "plan": "0" * 16, "reason": "of the plans before"}
    (fleet.plans / DECISIONS_FILE).write_text(json.dumps(line))
    assert fleet.status("--format", "json").json["rollout"]["status"] == "waiting"


def test_no_output_replaces_a_plan_or_counts_as_one(fleet: Fleet) -> None:
    fleet.plan()
    fleet.decide("pause", "--reason", "incident")
    before = {path: path.read_bytes() for path in fleet.plans.rglob("*") if path.is_file()}
    new = fleet.plans / "new.json"
    plan = next(path for path in before if "rollout" not in path.name)
    for command in ("status", "runbook", "apply", "rehearse"):
        for output in (*before, new):
            words = ("--policy", str(fleet.policy)) if command != "rehearse" else ()
            ran = fleet.cli(command, str(fleet.plans), *words, "--output", str(output))
            assert ran.code == 2, (command, output)
            assert "would overwrite" in ran.err or "is among the plans" in ran.err
    assert fleet.cli("rehearse", str(plan), "--output", str(plan)).code == 2
    assert before == {path: path.read_bytes() for path in before}
    assert not new.exists()
    assert fleet.cli("status", str(fleet.plans), "--output", str(fleet.plans / "x.prom")).code == 1


def test_a_table_or_an_inventory_gets_no_plans(fleet: Fleet, tmp_path: Path) -> None:
    table, inventory = fleet.logs["b"].table, str(tmp_path / "inventory")
    assert fleet.cli("scan", str(tmp_path / "lake"), "--inventory", inventory, "-q").code == 0
    for folder, what in ((table, "a Delta table"), (inventory, "an inventory")):
        ran = fleet.cli("plan", table, "--policy", str(fleet.policy), "--out", folder)
        assert ran.code == 2
        assert f"{folder} is {what}, not a folder for plans" in ran.err
        assert not list(Path(folder).glob("*.json"))


def test_a_decision_is_recorded_once(fleet: Fleet) -> None:
    fleet.plan()
    for words in (("skip", "b", "--reason", "is dropped"), ("pause", "--reason", "incident")):
        assert fleet.decide(*words).code == 0
        again = fleet.decide(*words)
        assert (again.code, "already" in again.out) == (0, True)
    again = fleet.decide("pause")
    assert "already, by" in again.out
    assert ": incident" in again.out, "a pause without a reason keeps the first one"
    assert [line["action"] for line in fleet.audited()] == ["skip", "pause"]
    # Another reason is another decision.
    fleet.decide("skip", "b", "--reason", "is archived")
    assert len(fleet.audited()) == 3
    assert by_name(fleet)["b"]["message"].endswith(": is archived")


def test_a_killed_run_is_resumed_and_repeats_nothing(fleet: Fleet) -> None:
    fleet.policy.write_text(POLICY.replace(", soak: 6h", ""))
    fleet.plan()
    plan = next(id for id, name in fleet.names.items() if name == "c")

    class Killed(BaseException):
        """Like a kill: nothing is recorded after it."""

    def killed() -> StatementResult:
        engine = fleet.engines[plan]
        (step,) = engine.steps.values()
        mark = json.dumps({"deltaproto": {"plan": plan, "step": step.id, "run": "gone"}})
        engine.predicted(step, mark)
        raise Killed

    fleet.scripts["c"] = killed
    with pytest.raises(Killed):
        fleet.apply()
    assert fleet.sent == ["dev_a", "b", "c"]
    del fleet.scripts["c"]
    assert fleet.applied()[1] == ["e", "d"]


def test_only_one_process_applies_a_rollout(fleet: Fleet) -> None:
    fleet.plan()
    rollout = load_rollout(str(fleet.plans))
    with Journal(str(fleet.plans / STATE_FOLDER), rollout.id):
        ran = fleet.apply()
    assert (ran.code, fleet.sent) == (4, [])
    assert "this rollout is being executed by" in ran.err


def test_with_wait_the_run_stays_through_every_wait(fleet: Fleet) -> None:
    fleet.plan()
    code, sent, progress = fleet.applied("--wait")
    assert (code, progress["status"]) == (0, "done")
    assert sent[0] == "dev_a"
    assert fleet.clock.now >= NOW + 36 * HOUR


def test_maintenance_windows_of_the_policy_need_the_policy(fleet: Fleet) -> None:
    window = "d: {maintenance_windows: [{days: daily, from: '00:00', to: '24:00'}], "
    fleet.policy.write_text(POLICY.replace("d: {", window))
    fleet.plan()
    for ran in (fleet.apply(), fleet.apply("--dry-run"), fleet.cli("runbook", str(fleet.plans))):
        assert (ran.code, fleet.sent) == (2, [])
        assert "has maintenance windows, and no policy is passed" in ran.err
        assert "pass --policy FILE" in ran.err
    shown = fleet.status()
    assert (shown.code, "pass --policy FILE to see which tables wait" in shown.err) == (0, True)
    assert f"run deltaproto apply {fleet.plans} --policy FILE" in " ".join(shown.out.split())
    assert fleet.status("--policy", str(fleet.policy)).err == ""
    assert fleet.applied("--policy", str(fleet.policy))[1] == ["dev_a"]


def test_a_table_without_any_window_holds_the_waves(fleet: Fleet) -> None:
    """An empty list of windows permits no change, so that no later wave starts."""
    never = "  dev_a: {maintenance_windows: []}\nrollout:"
    fleet.policy.write_text(POLICY.replace("rollout:", never))
    fleet.plan()
    code, sent, progress = fleet.applied("--policy", str(fleet.policy))
    assert (code, sent, progress["next_at"]) == (10, [], None)
    (table,) = progress["waves"][0]["tables"]
    assert table["message"] == "the policy has no maintenance window for it"
    book = fleet.cli("runbook", str(fleet.plans), "--policy", str(fleet.policy)).out
    assert "the policy has no maintenance window for this table (hint: add one" in book
    assert "their waves do not end, and the next ones do not start, unless" in book


def test_a_closed_window_is_waited_for(fleet: Fleet) -> None:
    # 2033-05-18 is a Wednesday.
    window = "maintenance_windows: [{days: [thu], from: '03:00', to: '04:00'}]"
    fleet.policy.write_text(POLICY.replace("[deletionVectors]}", f"[deletionVectors], {window}}}"))
    fleet.plan()
    code, sent, progress = fleet.applied("--policy", str(fleet.policy))
    assert (code, sent, progress["next_at"]) == (10, [], "2033-05-19T03:00:00Z")
    assert fleet.applied("--outside-window")[1] == ["dev_a"]


def test_an_engine_that_cannot_run_the_plans_stops_no_table(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.plan()
    facts = fleet.facts()
    monkeypatch.setattr(fleet, "facts", lambda: facts._replace(delta=False))
    code, sent, progress = fleet.applied()
    assert (code, sent) == (3, [])
    assert set(tables(progress).values()).isdisjoint({"failed", "done"})
    monkeypatch.setattr(fleet, "facts", lambda: facts)
    assert fleet.applied()[1] == ["dev_a"]


def test_the_plans_must_be_those_of_the_rollout(fleet: Fleet) -> None:
    fleet.plan()
    plan = next(fleet.plans.glob("dev_a-*.json"))
    ran = fleet.cli("apply", *map(str, fleet.plans.glob("*.json")), "--yes")
    assert (ran.code, "pass its folder" in ran.err) == (2, True)
    ran = fleet.cli("apply", str(fleet.plans), str(plan), "--yes")
    assert (ran.code, "cannot be combined" in ran.err) == (2, True)
    plan.rename(fleet.plans.parent / plan.name)
    ran = fleet.apply()
    assert (ran.code, "is missing" in ran.err) == (2, True)
    # One plan by its own name is applied as ever, and so is a dry run of the wave.
    assert fleet.cli("apply", str(next(fleet.plans.glob("b-*"))), "--yes", "--dry-run").code == 0
    assert fleet.sent == []


def test_a_paused_rollout_starts_no_other_table(fleet: Fleet) -> None:
    fleet.policy.write_text(POLICY.replace(", soak: 6h", ""))
    fleet.plan()

    def paused_meanwhile() -> StatementResult:
        assert fleet.decide("pause", "--reason", "incident 4711").code == 0
        return fleet.engines[plan].run(fleet.engines[plan].steps["s1"].sql or "", mark)

    plan = next(id for id, name in fleet.names.items() if name == "b")
    mark = json.dumps({"deltaproto": {"plan": plan, "step": "s1", "run": "r"}})
    fleet.scripts["b"] = paused_meanwhile
    _, sent, progress = fleet.applied()
    assert (sent, progress["status"]) == (["dev_a", "b"], "paused")
    assert progress["message"].endswith(": incident 4711")
    assert fleet.applied()[:2] == (1, [])
    assert fleet.decide("resume").code == 0
    assert "c" in fleet.applied()[1]
    assert [line["action"] for line in fleet.audited()] == ["pause", "resume"]
    assert all(line["actor"] and line["rollout"] for line in fleet.audited())
    assert "not paused" in fleet.decide("resume").out


def test_failed_tables_are_tried_again_after_resume_or_skipped(fleet: Fleet) -> None:
    fleet.policy.write_text(POLICY.replace(", soak: 6h", ""))
    fleet.plan()
    fleet.scripts["b"] = on_fire
    assert fleet.applied()[:2] == (5, ["dev_a", "b"])
    ran = fleet.decide("skip", "b")
    assert (ran.code, "needs a reason" in ran.err) == (2, True)
    assert fleet.decide("resume").code == 0
    assert fleet.applied()[:2] == (5, ["b"])
    assert fleet.decide("skip", "b", "--reason", "is dropped next week").code == 0
    code, sent, progress = fleet.applied()
    assert (code, sent, tables(progress)["b"]) == (10, ["c", "e", "d"], "skipped")
    (skipped,) = [line for line in fleet.audited() if line["action"] == "skip"]
    assert fleet.names[skipped["plan"]] == "b"
    assert fleet.decide("skip", "x", "--reason", "y").code == 2


def test_abort_lets_running_statements_finish_and_sends_no_other(fleet: Fleet) -> None:
    fleet.policy.write_text(POLICY.replace("Vectors]}", "Vectors], isolation: Serializable}"))
    fleet.plan()
    plan = next(id for id, name in fleet.names.items() if name == "dev_a")
    first = fleet.engines[plan].steps["s1"]

    def aborted_meanwhile() -> StatementResult:
        assert fleet.decide("abort").code == 0
        mark = json.dumps({"deltaproto": {"plan": plan, "step": "s1", "run": "r"}})
        return fleet.engines[plan].run(first.sql or "", mark)

    fleet.scripts["dev_a"] = aborted_meanwhile
    assert len(fleet.engines[plan].steps) > 1
    code, sent, progress = fleet.applied()
    assert (code, sent, progress["status"]) == (5, ["dev_a"], "aborted")
    assert fleet.applied()[:2] == (1, [])
    ran = fleet.decide("resume")
    assert (ran.code, "was aborted" in ran.err) == (2, True)


class Terminal:
    def __init__(self, typed: str) -> None:
        self.typed, self.read = typed, 0

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        self.read += 1
        return self.typed


def test_abort_is_confirmed_like_apply(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.plan()
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    ran = fleet.decide("abort")
    assert (ran.code, ran.out) == (2, "")
    assert "was not aborted: it was not confirmed" in ran.err
    assert f"Type {fleet.plans.name} to abort this rollout, which cannot be reverted: " in ran.err
    assert fleet.status("--format", "json").json["rollout"]["status"] != "aborted"
    monkeypatch.setattr("sys.stdin", terminal := Terminal(f"{fleet.plans.name}\n"))
    for action in ("pause", "resume"):
        assert (fleet.decide(action).code, terminal.read) == (0, 0)
    assert fleet.decide("abort", "--reason", "wrong policy").code == 0
    assert terminal.read == 1
    progress = fleet.status("--format", "json").json["rollout"]
    assert (progress["status"], "wrong policy" in progress["message"]) == ("aborted", True)
    again = fleet.decide("abort")
    assert (again.code, "was aborted" in again.err, terminal.read) == (2, True, 1)


@pytest.mark.parametrize("confirmed", [True, False])
def test_scripts_abort_with_yes_or_a_warning(fleet: Fleet, confirmed: bool) -> None:
    fleet.plan()
    ran = fleet.decide("abort", *(("--yes",) if confirmed else ()))
    assert ran.code == 0
    assert ran.out.startswith("aborted: running statements finish")
    warning = "warning: an aborted rollout cannot be resumed; pass --yes to confirm"
    assert ran.err.startswith("" if confirmed else warning)
    assert len(ran.err.splitlines()) == (not confirmed)


def test_status_groups_the_tables_of_a_wave_by_what_their_plans_do(fleet: Fleet) -> None:
    fleet.plan()
    fleet.scripts["b"] = on_fire
    fleet.applied()
    progress = fleet.status("--format", "json").json["rollout"]
    shown = " ".join(fleet.status().out.split())
    by_id = {table["plan_id"]: table for wave in progress["waves"] for table in wave["tables"]}
    for group in progress["groups"]:
        assert group["plan"] in shown
        inside = [by_id.pop(each) for each in group["plan_ids"]]
        assert Counter(each["status"] for each in inside) == group["statuses"]
    assert not by_id
    assert [
        (group["wave"], group["statuses"], group["next_at"]) for group in progress["groups"]
    ] == [
        ("canary", {"done": 1}, None),
        ("wave 1", {"pending": 2}, progress["next_at"]),
        ("wave 2", {"pending": 1}, None),
        ("wave 2", {"pending": 1}, None),
    ]
    assert "tables 2 pending next step 2033-05-18T09:33:00Z names b, c wave 2" in shown
    # A rollout that is stopped has no next step.
    fleet.clock.now += 6 * HOUR
    fleet.applied()
    assert "tables 1 failed, 1 ready names b, c wave 2" in " ".join(fleet.status().out.split())


def test_status_tells_groups_with_equal_steps_apart(
    cli: Callable[..., Ran], tmp_path: Path
) -> None:
    for name, writer in (("old", 2), ("new", 3), ("newer", 3)):
        Log(tmp_path / name).commit(0, commit_info(), protocol(1, writer), metadata())
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\ntables:\n  '*': {require_properties: {delta.appendOnly: true}}\n"
        "rollout: {waves: [9]}\n"
    )
    tables = [str(tmp_path / name) for name in ("old", "new", "newer")]
    plans = str(tmp_path / "plans")
    assert cli("plan", *tables, "--policy", str(policy), "--out", plans).code in (0, 10)
    groups = cli("status", plans, "--format", "json").json["rollout"]["groups"]
    assert [len(each["plan_ids"]) for each in groups] == [2, 1]
    assert groups[0]["plan"].endswith("the same; protocol (1,3)")
    assert groups[1]["plan"].endswith("the same; protocol (1,2)")
    assert [each["rehearsed"] for each in groups] == [None, None]


def test_status_shows_groups_that_read_the_same_as_one(
    cli: Callable[..., Ran], tmp_path: Path
) -> None:
    """They differ in the features that stay; each is rehearsed on its own."""
    for name, features in (("a", ["rowTracking", "domainMetadata"]), ("b", ["checkConstraints"])):
        stored = protocol(1, 7, None, ["appendOnly", "invariants", *features])
        Log(tmp_path / name).commit(0, commit_info(), stored, metadata())
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\ntables:\n  '*': {require_properties: {delta.appendOnly: true}}\n"
        "rollout: {waves: [9]}\n"
    )
    plans, tables = str(tmp_path / "plans"), [str(tmp_path / name) for name in "ab"]
    assert cli("plan", *tables, "--policy", str(policy), "--out", plans).code in (0, 10)
    groups = cli("status", plans, "--format", "json").json["rollout"]["groups"]
    assert [len(each["plan_ids"]) for each in groups] == [1, 1]
    assert len({each["plan"] for each in groups}) == 1
    shown = " ".join(cli("status", plans).out.split())
    assert groups[0]["plan"].startswith("change properties")
    assert shown.count("change properties") == 1
    assert "2 ready now a, b" in shown


def test_status_shows_each_wave_and_the_next_step(fleet: Fleet) -> None:
    fleet.plan()
    fleet.scripts["b"] = on_fire
    fleet.applied()
    ran = fleet.status("--format", "json", "--detailed-exitcode")
    (document,) = documents(ran, "status")
    progress = document["rollout"]
    assert (ran.code, statuses(progress)) == (10, ["done", "waiting", "pending"])
    assert progress["next_at"] == progress["waves"][1]["next_at"] == "2033-05-18T09:33:00Z"
    fleet.clock.now += 6 * HOUR
    fleet.applied()
    ran = fleet.status()
    assert ran.code == 1
    assert "rollout stopped" in ran.out
    assert "the disk is on fire" in " ".join(ran.out.split())
    assert "deltaproto rollout resume" in " ".join(ran.out.split())
    metrics = fleet.status("--format", "openmetrics").out
    assert 'deltaproto_rollout_tables{wave="wave 1",status="failed"} 1' in metrics
    assert 'deltaproto_rollout_status{status="stopped"} 1' in metrics
    left = {
        wave["name"]: sum(t["steps_left"] for t in wave["tables"]) for wave in progress["waves"]
    }
    assert left["canary"] == 0
    assert left["wave 1"] > 0
    for name, count in left.items():
        assert f'deltaproto_rollout_steps_left{{wave="{name}"}} {count}' in metrics
    assert metrics.endswith("# EOF\n")
    assert "<table" in fleet.status("--format", "html").out
    # A table that cannot be read makes the result incomplete.
    fleet.decide("resume")
    shutil.rmtree(Path(fleet.logs["c"].table) / "_delta_log")
    assert fleet.status().code == 3
    ran = fleet.cli("status", str(fleet.policy.parent))
    assert (ran.code, "has no rollout" in ran.err) == (2, True)


def test_status_shows_no_violation_of_one_table_for_its_group(
    cli: Callable[..., Ran], tmp_path: Path
) -> None:
    """The path of one table has a character with which the client was not measured."""
    names = ("a", "b", "c[1]")
    for name in names:
        Log(tmp_path / name).commit(0, commit_info(), protocol(1, 2), metadata())
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients: [delta-spark@3.2.0]\n"
        "tables:\n  '**': {require_properties: {delta.appendOnly: true}}\n"
        "rollout: {waves: [9]}\n"
    )
    plans, tables = str(tmp_path / "plans"), [str(tmp_path / name) for name in names]
    assert cli("plan", *tables, "--policy", str(policy), "--out", plans).code == 1
    (group,) = cli("status", plans, "--format", "json").json["rollout"]["groups"]
    assert len(group["plan_ids"]) == 3
    assert group["plan"].endswith("the protocol stays the same; 1 table still in violation")


def test_hooks_get_the_plan_and_stop_the_wave(fleet: Fleet) -> None:
    fleet.policy.write_text(POLICY.replace("soak: 6h", "hook_timeout: 1m"))
    fleet.plan()
    said = fleet.plans.parent / "said"
    for name in ("before-table", "after-table", "on-failure"):
        fleet.hook(name, f'echo "{name} ${{1##*/}} $2" >> {said}; cat > {said}.json')
    fleet.hook("before-wave", f'echo "before-wave $1" >> {said}; test "$1" != "wave 2"')
    words = fleet.hook("before-table", f'echo "before ${{1##*/}}" >> {said}; cat > {said}.plan')
    fleet.scripts["b"] = on_fire
    assert fleet.applied(*words)[:2] == (5, ["dev_a", "b"])
    lines = said.read_text().splitlines()
    assert lines[:3] == ["before-wave canary", "before dev_a", "after-table dev_a done"]
    assert lines[3:5] == ["before-wave wave 1", "before b"]
    assert lines[5].startswith("on-failure b s1 was rejected: the disk is on fire")
    assert lines[6] == "after-table b failed"
    assert fleet.names[json.loads(Path(f"{said}.plan").read_text())["plan_id"]] == "b"
    # The hook of the last wave fails, and pauses the rollout.
    del fleet.scripts["b"]
    fleet.decide("resume")
    code, sent, progress = fleet.applied(*words)
    assert (code, sent, progress["status"]) == (1, ["b", "c"], "paused")
    assert progress["message"] == "wave 2: hook before-wave exited with 1"
    assert said.read_text().splitlines().count("before-wave wave 1") == 1
    fleet.hook("before-wave", "exit 0")
    fleet.hook("before-table", "echo no ticket; exit 3")
    fleet.decide("resume")
    code, sent, progress = fleet.applied(*words)
    assert (code, sent, progress["status"]) == (1, [], "paused")
    assert progress["message"].endswith("hook before-table exited with 3: no ticket")


def test_a_hook_that_runs_too_long_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "before-table"
    path.write_text("#!/bin/sh\nsleep 600 &\nsleep 600\n")
    document = tmp_path / "plan.json"
    document.write_text("{}")
    with pytest.raises(UsageError, match="is not an executable file"):
        open_hooks(str(tmp_path), 1)
    path.chmod(0o755)
    hooks = open_hooks(str(tmp_path), 0.2)
    problem = hooks.run("before-table", str(document), "t")
    assert problem == "hook before-table was killed after 0 s"
    assert hooks.run("after-table", str(document), "t") is None
    with pytest.raises(UsageError, match="has no hook"):
        open_hooks(str(document.parent / ".."), 1)


def test_a_hook_gets_any_message_and_its_output_is_not_kept(tmp_path: Path) -> None:
    """The message quotes the engine, and so whatever a log has; the output may never end."""
    path, document = tmp_path / "on-failure", tmp_path / "plan.json"
    path.write_text(
        '#!/bin/sh\nprintf %s "$2" > $0.out; head -c 20000000 /dev/zero; echo; echo end; exit 3'
    )
    path.chmod(0o755)
    document.write_text("{}")
    tracemalloc.start()
    message = "nul \0, half \ud800, long " + "x" * 300_000
    problem = open_hooks(str(tmp_path), 60).run("on-failure", str(document), "t", message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problem == "hook on-failure exited with 3: end"
    assert peak < 5_000_000
    said = Path(f"{path}.out").read_text()
    assert said.startswith("nul \\x00, half \\ud800, long xxx")
    assert 50_000 < len(said) < len(message)


def _of_other_table(document: dict[str, Any]) -> None:
    one, two = document["waves"][0]["plans"][0], document["waves"][1]["plans"][0]
    for name in ("table", "location"):
        one[name], two[name] = two[name], one[name]


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "other format": (lambda d: d.update(schema_version="2.0"), "has format version 2.0"),
    "other release": (
        lambda d: d.update(tool={"version": "9.1"}, waves=[{"names": []}]),
        "was written by deltaproto 9.1, and this version cannot read it",
    ),
    "other table": (_of_other_table, "is not the plan's table"),
    "twice": (lambda d: d["waves"].append({**d["waves"][0], "name": "w"}), "not the file of a"),
    "infinite": (lambda d: d.update(parallel=1e999), "not the file of a"),
    "negative": (lambda d: d.update(parallel=-1), "not the file of a"),
    "too long": (lambda d: d.update(hook_minutes=1e308), "not the file of a"),
    "a list": (lambda d: d["waves"][0].update(name=["w"]), "not the file of a"),
    "a number": (lambda d: d.update(rehearse=1), "not the file of a"),
    "a word": (lambda d: d.update(windows="no"), "not the file of a"),
    "null": (lambda d: d["waves"][0]["plans"][0].update(location=None), "not the file of a"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_rollout_that_was_sealed_again_is_refused(fleet: Fleet, change: str) -> None:
    fleet.plan()
    file, (edit, message) = fleet.plans / "rollout.json", CHANGES[change]
    document = json.loads(file.read_text())
    edit(document)
    sealed = ("soak_hours", "parallel", "max_failures", "hook_minutes", "rehearse", "windows")
    document[CHECKSUM_FIELD] = compute_checksum(
        {name: document[name] for name in (*sealed, "waves", "complete")}
    )
    file.write_text(json.dumps(document))
    for ran in (fleet.status(), fleet.apply()):
        assert (ran.code, fleet.sent) == (2, [])
        assert message in ran.err


@pytest.mark.parametrize("kind", ["rollout", "plan"])
def test_a_journal_that_is_a_pipe_or_damaged_is_refused(fleet: Fleet, kind: str) -> None:
    """No command waits for the writer of a pipe."""
    fleet.plan()
    found = load_rollout(str(fleet.plans))
    name = found.id if kind == "rollout" else found.tables[0].plan_id
    path = fleet.plans / STATE_FOLDER / f"{name}.journal.jsonl"
    path.parent.mkdir()
    os.mkfifo(path)
    assert fleet.status().code == fleet.apply("--dry-run").code == fleet.apply().code == 2
    path.unlink()
    event = "failed" if kind == "rollout" else "done"
    path.write_text(json.dumps({"event": event, "plan": name, "at": []}))
    for ran in (fleet.status(), fleet.apply()):
        assert (ran.code, "is damaged" in ran.err, fleet.sent) == (2, True, [])


def test_a_new_plan_is_used_only_for_its_table(fleet: Fleet) -> None:
    """The journal names it; neither the name nor the file may lead elsewhere."""
    fleet.plan()
    found = load_rollout(str(fleet.plans))
    one, two = found.tables[:2]
    state = fleet.plans / STATE_FOLDER
    state.mkdir()
    shutil.copy(fleet.plans / two.file, state / f"{two.plan_id}.plan.json")
    shutil.copy(fleet.plans / two.file, fleet.plans.parent / "evil.plan.json")
    for new in (two.plan_id, "../../evil"):
        line = {"event": "replan", "at": 1, "plan": found.id, "name": one.plan_id, "reason": new}
        (state / f"{found.id}.journal.jsonl").write_text(json.dumps(line) + "\n")
        ran = fleet.apply("--dry-run", "--format", "json")
        assert [each["plan_id"] for each in ran.json["results"]] == [one.plan_id]


def test_a_plan_named_alone_is_warned_about(fleet: Fleet) -> None:
    fleet.plan()
    fleet.decide("pause", "--reason", "incident")
    file = str(fleet.plans / load_rollout(str(fleet.plans)).tables[0].file)
    ran = fleet.cli("apply", file, "--yes", "--dry-run")
    assert f"the rollout of {fleet.plans} does not apply to a plan that is passed alone" in ran.err
    assert "does not apply" not in fleet.apply("--dry-run").err
    # No reason is none, also in spaces.
    assert fleet.decide("skip", "b", "--reason", "  ").code == 2


def test_an_interrupted_table_has_not_failed(fleet: Fleet) -> None:
    """Ctrl-C while two tables run: d has another step, which is not sent."""
    fleet.policy.write_text(POLICY.replace('canary: ["dev_*"], waves: [2], soak: 6h', "waves: [5]"))
    fleet.plan()

    def interrupted() -> StatementResult:
        # This thread takes it: the main thread, which handles it, is not woken.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        assert stopping.wait(30)
        planned = next(each for each, name in fleet.names.items() if name == "d")
        return fleet.engines[planned].run(*statements[threading.get_ident()])

    stopping, statements = threading.Event(), dict[int, Any]()
    original = fleet.run

    def recorded(sql: str, mark: str, progress: object = None) -> StatementResult:
        # The other table runs its statements meanwhile.
        statements[threading.get_ident()] = (sql, mark, progress)
        return original(sql, mark, progress)

    fleet.run = recorded  # type: ignore[method-assign]
    fleet.scripts["d"] = interrupted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgressDisplay, "halts", lambda _: stopping.set())
        assert fleet.apply("--parallel", "2").code == 130
    del fleet.scripts["d"]
    states = tables(fleet.status("--format", "json").json["rollout"])
    assert "failed" not in states.values()


def test_a_table_that_could_not_be_planned_is_not_forgotten(fleet: Fleet) -> None:
    fleet.logs["e"].path(0, ".json").write_text("{")
    words = ("--policy", str(fleet.policy), "--out", str(fleet.plans), "--quiet")
    assert fleet.cli("plan", *[log.table for log in fleet.logs.values()], *words).code == 3
    (file,) = fleet.plans.glob("not-planned-*.json")
    for ran in (fleet.status("--format", "json"), fleet.apply("--dry-run")):
        assert ran.code == 3
        assert f"{file}: {fleet.logs['e'].table}: " in ran.err
    assert fleet.status("--format", "json").json["complete"] is False


def test_a_canary_that_matches_no_table_is_reported(fleet: Fleet) -> None:
    fleet.policy.write_text(POLICY.replace("dev_*", "dve_*"))
    names = [log.table for log in fleet.logs.values()]
    policy = ("--policy", str(fleet.policy))
    message = 'the canary "dve_*" of the rollout matches nothing in 5 tables'
    planned = fleet.cli("plan", *names, *policy, "--out", str(fleet.plans))
    assert message in planned.out + planned.err
    assert message in fleet.cli("check", *names, *policy).out
    # The tables of a wave are not all that the policy is for.
    assert "matches nothing" not in fleet.apply("--dry-run", *policy).err


def test_a_table_that_changed_is_planned_again(fleet: Fleet) -> None:
    fleet.plan()
    # Somebody sets a property: the plan of the canary no longer fits.
    changed = metadata({"delta.enableDeletionVectors": "true", "delta.appendOnly": "true"})
    fleet.logs["dev_a"].commit(1, commit_info("SET TBLPROPERTIES"), changed)
    code, sent, progress = fleet.applied()
    assert (code, sent, progress["status"]) == (4, [], "stopped")
    assert fleet.decide("resume").code == 0
    code, sent, progress = fleet.applied("--policy", str(fleet.policy))
    assert (code, sent) == (10, ["dev_a"])
    assert statuses(progress) == ["done", "waiting", "pending"]
    (line,) = (each for each in fleet.audited() if each["action"] == "replan")
    assert "changed since" in line["reason"]
    (first,) = (each for each in load_rollout(str(fleet.plans)).tables if "dev_a" in each.table)
    assert line["plan"] == first.plan_id
    (document,) = documents(fleet.status("--format", "json"), "status")
    assert document["rollout"]["waves"][0]["status"] == "done"


def test_a_new_plan_that_costs_more_needs_a_decision(fleet: Fleet) -> None:
    fleet.plan()
    changed = metadata({"delta.enableDeletionVectors": "true", "delta.appendOnly": "true"})
    fleet.logs["dev_a"].commit(1, commit_info("SET TBLPROPERTIES"), changed)
    stricter = fleet.plans.parent / "stricter.yaml"
    stricter.write_text(
        POLICY.replace("[deletionVectors]}", "[deletionVectors], isolation: Serializable}", 1)
    )
    code, sent, progress = fleet.applied("--policy", str(stricter))
    assert (code, sent, progress["status"]) == (4, [], "stopped")
    (table,) = progress["waves"][0]["tables"]
    assert table["status"] == "failed"
    assert "a new plan needs your decision: it makes up to" in table["message"]
    assert not [each for each in fleet.audited() if each["action"] == "replan"]


def test_a_table_that_meets_the_policy_meanwhile_is_skipped(fleet: Fleet) -> None:
    fleet.plan()
    plain = protocol(1, 2)
    fleet.logs["dev_a"].commit(1, commit_info("DROP FEATURE"), plain, metadata())
    code, sent, progress = fleet.applied("--policy", str(fleet.policy))
    assert (code, {*sent}) == (10, {"b", "c"})
    (table,) = progress["waves"][0]["tables"]
    assert (table["status"], "meets the policy" in table["message"]) == ("skipped", True)


def test_a_replaced_table_is_not_planned_again(fleet: Fleet) -> None:
    fleet.plan()
    other = metadata({"delta.enableDeletionVectors": "true"}, id="another")
    fleet.logs["dev_a"].commit(1, commit_info("CREATE OR REPLACE TABLE"), other)
    code, sent, progress = fleet.applied("--policy", str(fleet.policy))
    assert (code, sent) == (4, [])
    assert "different table" in progress["waves"][0]["tables"][0]["message"]


def test_a_lost_new_plan_is_made_again(fleet: Fleet) -> None:
    fleet.plan()
    changed = metadata({"delta.enableDeletionVectors": "true", "delta.appendOnly": "true"})
    fleet.logs["d"].commit(1, commit_info("SET TBLPROPERTIES"), changed)
    for _ in range(2):
        fleet.applied("--policy", str(fleet.policy))
        fleet.clock.now += 6 * HOUR
    code, sent, progress = fleet.applied("--policy", str(fleet.policy))
    assert (code, {*sent}) == (10, {"d", "e"})
    for file in (fleet.plans / STATE_FOLDER).glob("*.plan.json"):
        file.unlink()
    fleet.clock.now += 24 * HOUR
    code, sent, progress = fleet.applied("--policy", str(fleet.policy))
    assert sent == ["d"]
    assert "deletionVectors" not in str(tables(progress))


def test_a_finished_table_is_done_though_it_is_skipped(fleet: Fleet) -> None:
    """Its journal says so, and nothing is decided; without it, its log says so."""
    fleet.plan()
    assert fleet.applied()[:2] == (10, ["dev_a"])
    answers = {"dev_a is done already: not skipped": [], "dev_a is skipped: too late": ["skip"]}
    for answer, decided in answers.items():
        ran = fleet.decide("skip", "dev_a", "--reason", "too late")
        assert (ran.code, ran.out.strip()) == (0, answer)
        assert by_name(fleet)["dev_a"]["status"] == "done"
        assert [line["action"] for line in fleet.audited()] == decided
        shutil.rmtree(fleet.plans / STATE_FOLDER)
    # A table is skipped because it cannot be read.
    fleet.clock.now += 6 * HOUR
    fleet.logs["b"].path(0, ".json").write_text("{")
    assert by_name(fleet)["b"]["status"] == "ready"
    fleet.decide("skip", "b", "--reason", "is broken")
    ran = fleet.status("--format", "json")
    assert ran.json["complete"] is True
    assert by_name(fleet)["b"]["status"] == "skipped"


def runbook(fleet: Fleet, *words: str) -> str:
    ran = fleet.cli("runbook", str(fleet.plans), "--policy", str(fleet.policy), *words)
    assert ran.err == ""
    return ran.out


def test_a_runbook_has_the_plans_in_force(fleet: Fleet, tmp_path: Path) -> None:
    """Also elsewhere, from the folder of plans."""
    fleet.plan()
    assert "planned these tables again" not in runbook(fleet)
    changed = metadata({"delta.enableDeletionVectors": "true", "delta.appendOnly": "true"})
    fleet.logs["dev_a"].commit(1, commit_info("SET TBLPROPERTIES"), changed)
    assert "properties changed since" in runbook(fleet)
    assert fleet.applied("--policy", str(fleet.policy))[:2] == (10, ["dev_a"])
    (new,) = (fleet.plans / STATE_FOLDER).glob("*.plan.json")
    fleet.plans = fleet.plans.rename(tmp_path / "elsewhere")
    book = runbook(fleet)
    assert f"their new plans: `{fleet.logs['dev_a'].table}`" in book
    assert "properties changed since" not in book
    # It is the new plan that is rolled back.
    assert re.search(rf"apply --undo [^`]*{STATE_FOLDER}/{new.name}", book)
    ran = fleet.cli("apply", "--undo", str(fleet.plans / STATE_FOLDER / new.name), "--dry-run")
    assert ran.code == 0
    assert "gate passed; 1 step would be executed" in ran.out


def test_a_runbook_has_the_decisions_on_its_rollout(fleet: Fleet, tmp_path: Path) -> None:
    fleet.plan()
    journal = ("--journal", str(tmp_path / "records"))
    fleet.decide("pause", "--reason", "incident", *journal)
    fleet.decide("skip", "dev_a", "--reason", "it is archived", *journal)
    book = runbook(fleet, *journal)
    assert re.search(r"The rollout is paused: by .*: incident", book)
    assert re.search(rf"- `{fleet.logs['dev_a'].table}`: by .*: it is archived", book)
    assert "### canary" not in book
    assert f"# Release runbook: {len(NAMES) - 1}" in book
    # The decisions are also next to the plans.
    assert "is paused" in runbook(fleet)
    for name in NAMES[1:]:
        fleet.decide("skip", name, "--reason", "later", *journal)
    fleet.decide("abort", "--reason", "enough", *journal)
    assert "delta.enableDeletionVectors" not in runbook(fleet, *journal)


def test_a_runbook_goes_on_from_the_tables_that_are_done(fleet: Fleet) -> None:
    """The next wave starts after the soak time of the last one, not now."""
    fleet.plan()
    assert fleet.applied()[:2] == (10, ["dev_a"])
    ended = fleet.clock.now

    def starts(book: str) -> dict[str, list[str]]:
        """The cells of the calendar by wave."""
        rows = (line.strip("| ").split(" | ") for line in book.splitlines() if "| wave" in line)
        return {name: cells for name, *cells in rows}

    def at(seconds: float) -> str:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

    for hours, first in ((1, ended + 6 * HOUR), (9, ended + 9 * HOUR)):
        start = ("--start", datetime.fromtimestamp(ended + hours * HOUR, UTC).isoformat())
        book = runbook(fleet, *start)
        assert f"the times of their last steps: `{fleet.logs['dev_a'].table}`" in book
        assert f"| canary | 1 | {at(ended)} | {at(ended)} | {at(first)} |" in book
        assert starts(book)["wave 1"][1] == at(first)
        # It can still be rolled back.
        assert re.search(r"apply --undo [^`]*dev_a", book)
