"""`plan`: what it fixes, what stays violated, and the exit code that says so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.errors import UsageError
from deltaproto.execution.goal_limits import find_unrequested_change
from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.rebuild import find_mismatch
from deltaproto.execution.rollout_file import load_rollout
from deltaproto.plan_inputs import planners
from deltaproto.planning.converge import plan_target
from deltaproto.planning.plan import compute_checksum
from deltaproto.planning.request import PlanInput
from tests.conftest import Ran
from tests.policy.cases import domain
from tests.support.contract import documents
from tests.support.logs import Log, add, metadata, protocol

Cli = Callable[..., Ran]
VECTORS = ["deletionVectors"]
POLICY = """
policy_version: 1
tables:
  "**":
    forbid_features: [deletionVectors, generatedColumns]
    require_features: [inCommitTimestamp]
    require_properties: {delta.appendOnly: "false"}
    isolation: Serializable
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    log = Log(tmp_path / "orders")
    log.commit(0, protocol(3, 7, VECTORS, ["appendOnly", "invariants", *VECTORS]), metadata())
    return log.table


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def planned(cli: Cli, *words: object) -> dict[str, Any]:
    ran = cli("plan", *map(str, words), "--format", "json")
    (found,) = documents(ran, "plan")
    return found


def test_one_route_fixes_everything(cli: Cli, table: str, policy: Path) -> None:
    plan = planned(cli, table, "--policy", policy)
    assert sorted(step["sql"].split(" ", 3)[3] for step in plan["steps"]) == [
        "DROP FEATURE `deletionVectors`",
        "SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true', "
        "'delta.appendOnly' = 'false', 'delta.isolationLevel' = 'Serializable')",
    ]
    assert (
        "add inCommitTimestamp to the protocol; also set delta.appendOnly, delta.isolationLevel"
    ) in {step["why"] for step in plan["steps"]}
    assert [text[:5] for text in plan["fixes"]] == ["DP205", "DP206", "DP208", "DP209"]
    assert plan["unmet"] == plan["blocked"] == []
    assert plan["goal"]["kind"] == "policy"
    assert plan["protocol_after"]["writerFeatures"] == [
        "appendOnly",
        "checkpointProtection",
        "inCommitTimestamp",
        "invariants",
    ]


def test_the_exit_code_tells_compliant_pending_and_impossible(
    cli: Cli, table: str, policy: Path, tmp_path: Path
) -> None:
    words = ("--policy", str(policy), "--detailed-exitcode")
    assert cli("plan", table, *words).code == 10
    assert cli("plan", table, "--policy", str(policy)).code == 0
    met = Log(tmp_path / "met")
    features = ["appendOnly", "inCommitTimestamp", "invariants"]
    properties = {"delta.appendOnly": "false", "delta.isolationLevel": "Serializable"}
    met.commit(0, protocol(1, 7, None, features), metadata(properties))
    assert cli("plan", met.table, *words).code == 0
    stuck = Log(tmp_path / "stuck")
    stuck.commit(0, protocol(1, 4), metadata())
    ran = cli("plan", stuck.table, *words)
    assert ran.code == 1
    assert "Stays violated" in ran.out
    assert "DP205: generatedColumns is forbidden by the policy" in ran.out
    # What can be brought about is planned all the same.
    assert "add inCommitTimestamp to the protocol" in ran.out


def test_what_the_policy_accepts_is_left_alone(cli: Cli, table: str, policy: Path) -> None:
    waived = (
        "waivers:\n  - {rule: DP205, table: '**', feature: deletionVectors, reason: later, "
        "expires: 2099-01-01}\n"
    )
    policy.write_text(f"{POLICY}severities: {{DP206: off}}\n{waived}")
    plan = planned(cli, table, "--policy", policy)
    assert [step["action"] for step in plan["steps"]] == ["set-properties"]
    assert "inCommitTimestamp" not in plan["steps"][0]["sql"]
    assert [text[:5] for text in plan["fixes"]] == ["DP208", "DP209"]
    assert plan["unmet"] == []


def test_requirements_that_contradict_each_other_are_named(
    cli: Cli, table: str, policy: Path
) -> None:
    policy.write_text(
        "policy_version: 1\ntables:\n  '**': {forbid_features: [deletionVectors]}\n"
        "  '*': {require_properties: {delta.enableDeletionVectors: true}}\n"
    )
    ran = cli("plan", table, "--policy", str(policy), "--format", "json")
    assert ran.code == 1
    stays = " ".join(each["reason"] for each in ran.json["unmet"])
    assert "DP209: the policy requires delta.enableDeletionVectors = true" in stays
    assert "these requirements contradict each other" in stays
    # A policy that contradicts itself enables nothing.
    assert ran.json["protocol_after"]["readerFeatures"] is None


def test_clustering_and_history_are_part_of_the_target(cli: Cli, table: str, policy: Path) -> None:
    policy.write_text(
        "policy_version: 1\ntables:\n  '**':\n    forbid_features: [deletionVectors]\n"
        "    cluster_by: [id]\n    history: truncate\n"
    )
    plan = planned(cli, table, "--policy", policy)
    assert "checkpointProtection" not in plan["protocol_after"]["writerFeatures"]
    assert plan["cost"]["history"] == 1
    assert [
        step["sql"].rpartition("` ")[2] for step in plan["steps"] if step["action"] == "cluster-by"
    ] == ["CLUSTER BY (`id`)"]
    assert {text[:5] for text in plan["fixes"]} == {"DP205", "DP212"}
    policy.write_text(policy.read_text().replace("[id]", "[nothing]"))
    ran = cli("plan", table, "--policy", str(policy))
    assert ran.code == 1
    assert "nothing" in ran.out.partition("Stays violated")[2]


def test_the_lowest_protocol_includes_what_the_plan_itself_leaves_unused(
    cli: Cli, table: str, policy: Path
) -> None:
    policy.write_text(
        "policy_version: 1\ntables:\n  '**':\n    protocol: lowest\n"
        "    require_properties: {delta.enableDeletionVectors: false}\n"
    )
    plan = planned(cli, table, "--policy", policy)
    after = plan["protocol_after"]
    assert (after["minReaderVersion"], after["minWriterVersion"]) == (1, 2)
    assert "deletionVectors" in plan["goal"]["features"]
    assert plan["cost"]["history"] == 1
    assert plan["unmet"] == []
    # Kept history is protected by a feature, which the policy then needs.
    policy.write_text(f"{policy.read_text()}    history: keep\n")
    plan = planned(cli, table, "--policy", policy)
    assert "checkpointProtection" in plan["protocol_after"]["writerFeatures"]
    assert plan["unmet"] == []


@pytest.fixture
def tracked(tmp_path: Path) -> str:
    """A table whose only metadata domain is the one of row tracking."""
    log = Log(tmp_path / "tracked")
    names = ["appendOnly", "domainMetadata", "invariants", "rowTracking"]
    rows = add(baseRowId=0, defaultRowCommitVersion=0)
    highest = domain("delta.rowTracking", {"rowIdHighWaterMark": 10})
    properties = {"delta.enableRowTracking": "true"}
    log.commit(0, protocol(1, 7, None, names), metadata(properties), highest, rows)
    return log.table


UNTRACKED = """
policy_version: 1
tables:
  "**":
    forbid_features: [rowTracking]
    protocol: lowest
"""


def test_a_dropped_feature_may_leave_the_last_use_of_another_behind(
    cli: Cli, tracked: str, policy: Path
) -> None:
    policy.write_text(UNTRACKED)
    plan = planned(cli, tracked, "--policy", policy)
    after = plan["protocol_after"]
    assert (after["minReaderVersion"], after["minWriterVersion"]) == (1, 2)
    assert plan["unmet"] == []
    policy.write_text(f"{UNTRACKED}    require_features: [domainMetadata]\n")
    plan = planned(cli, tracked, "--policy", policy)
    assert "domainMetadata" in plan["protocol_after"]["writerFeatures"]
    assert plan["unmet"] == []


def test_an_inspection_does_not_show_whether_it_was_the_last_use(
    cli: Cli, tracked: str, policy: Path, tmp_path: Path
) -> None:
    policy.write_text(UNTRACKED)
    saved = tmp_path / "saved.json"
    saved.write_text(cli("inspect", tracked, "--format", "json").out)
    ran = cli("plan", str(saved), "--policy", str(policy), "--format", "json")
    assert ran.code == 1
    (document,) = documents(ran, "plan")
    (stays,) = document["plans"][0]["unmet"]
    assert stays["feature"] == "domainMetadata"
    assert "it is unknown whether anything uses domainMetadata" in stays["reason"]


def test_a_client_of_the_policy_gets_its_access(cli: Cli, table: str, policy: Path) -> None:
    policy.write_text(
        "policy_version: 1\nclients:\n  - {client: delta-spark@2.2.0, access: [read, append]}\n"
    )
    plan = planned(cli, table, "--policy", policy)
    assert {text[:5] for text in plan["fixes"]} == {"DP201"}
    assert {each["after"] for each in plan["clients"]} == {"ok"}


def test_what_protects_rows_stays_unless_it_is_forbidden(
    cli: Cli, policy: Path, tmp_path: Path
) -> None:
    log = Log(tmp_path / "ledger")
    properties = {"delta.appendOnly": "true", "delta.constraints.c": "id > 0"}
    log.commit(0, protocol(1, 3), metadata(properties))
    clients = "policy_version: 1\nclients:\n  - {client: deltalake/engine@1.6.6, access: [dml]}\n"
    policy.write_text(clients)
    plan = planned(cli, log.table, "--policy", policy)
    assert plan["steps"] == []
    (stays, *_) = plan["unmet"]
    assert "append" in stays["reason"]
    assert "keep appendOnly enabled" in " ".join(each["reason"] for each in plan["unmet"])
    policy.write_text(f"{clients}tables:\n  '**':\n    forbid_features: [checkConstraints]\n")
    plan = planned(cli, log.table, "--policy", policy)
    assert [step["action"] for step in plan["steps"]][:1] == ["drop-constraint"]
    assert "appendOnly" not in " ".join(str(step["sql"]) for step in plan["steps"])


@pytest.mark.parametrize("by", ["table", "inspection", "inventory"])
def test_saved_plans_can_be_applied_however_the_table_was_named(
    by: str, cli: Cli, table: str, policy: Path, tmp_path: Path
) -> None:
    name = table
    if by == "inspection":
        name = str(tmp_path / "saved.json")
        assert cli("inspect", table, "--format", "json", "--output", name).code == 0
    elif by == "inventory":
        name = str(tmp_path / "inventory")
        assert cli("scan", table, "--inventory", name).code == 0
    folder = tmp_path / "plans"
    ran = cli("plan", name, "--policy", str(policy), "--out", str(folder), "--detailed-exitcode")
    assert ran.code == 10, ran
    (file,) = folder.iterdir()
    (loaded,) = read_plans(str(file))
    assert isinstance(loaded, LoadedPlan)
    assert loaded.plan.fingerprint.metadata is not None
    assert loaded.plan.fixes
    assert find_mismatch(loaded.plan) is None
    assert find_unrequested_change(loaded.plan) is None


def test_tables_of_an_inventory_are_planned_by_group(
    cli: Cli, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "lake"
    vectors = protocol(3, 7, VECTORS, ["appendOnly", "invariants", *VECTORS])
    for name in ("a", "b", "c", "waived"):
        Log(root / name).commit(0, vectors, metadata())
    Log(root / "plain").commit(0, protocol(1, 2), metadata())
    waiver = "{rule: DP208, table: '**/waived', reason: r, expires: 2099-01-01}"
    policy.write_text(f"{POLICY}waivers: [{waiver}]\n")
    inventory = str(tmp_path / "inventory")
    assert cli("scan", str(root), "--inventory", inventory).code == 0
    calls: list[PlanInput] = []
    monkeypatch.setattr(
        planners,
        "plan_target",
        lambda inputs, target: calls.append(inputs) or plan_target(inputs, target),
    )
    words = ("--policy", str(policy), "--engine", "delta-spark@4.4.0")
    ran = cli("plan", inventory, *words, "--format", "json")
    found = {plan["location"]: plan for plan in ran.json["plans"]}
    assert len(found) == 5
    assert len(calls) == 3
    assert "the waiver" not in ran.err
    steps = {place.rpartition("/")[2]: plan["steps"] for place, plan in found.items()}
    for name in ("a", "b", "c"):
        assert all(f"/{name}`" in step["sql"] for step in steps[name])
        other = [step["sql"].replace(f"/{name}`", "/a`") for step in steps[name]]
        assert other == [step["sql"] for step in steps["a"]]
    assert "isolationLevel" in str(steps["a"])
    assert "isolationLevel" not in str(steps["waived"])
    for location, plan in found.items():
        alone = planned(cli, location, *words)
        for member in ("fixes", "unmet", "goal", "protocol_after", "clients"):
            assert plan[member] == alone[member], (location, member)
        assert [step["sql"] for step in plan["steps"]] == [step["sql"] for step in alone["steps"]]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SET TBLPROPERTIES ('delta.appendOnly' = 'true')", "sets delta.appendOnly to true"),
        ("DROP FEATURE `appendOnly`", "drops appendOnly"),
        ("SET TBLPROPERTIES ('delta.feature.rowTracking' = 'supported')", "adds rowTracking"),
    ],
)
def test_an_edited_plan_may_not_do_more_than_its_goal(
    sql: str, why: str, cli: Cli, table: str, policy: Path, tmp_path: Path
) -> None:
    plan = planned(cli, table, "--policy", policy)
    step = plan["steps"][0]
    step["sql"] = f"ALTER TABLE delta.`{table}` {sql}"
    plan["seal"] = compute_checksum(plan)
    file = tmp_path / "edited.json"
    file.write_text(json.dumps(plan))
    (loaded,) = read_plans(str(file))
    assert isinstance(loaded, LoadedPlan)
    found = find_mismatch(loaded.plan) or find_unrequested_change(loaded.plan)
    assert found is not None, why


def test_mistakes(cli: Cli, table: str, policy: Path, tmp_path: Path) -> None:
    ran = cli("plan", table)
    assert ran.code == 2
    assert "no policy" in ran.err
    taken = tmp_path / "file"
    taken.write_text("")
    ran = cli("plan", table, "--policy", str(policy), "--out", str(taken))
    assert ran.code == 2
    assert "is a file, not a folder for plans" in ran.err
    folder = tmp_path / "plans"
    assert cli("plan", table, "--policy", str(policy), "--out", str(folder)).code == 0
    before = sorted(folder.iterdir())
    ran = cli("plan", table, "--policy", str(policy), "--out", str(folder))
    assert ran.code == 2
    assert f"{folder} has plans already, such as {before[0].name}" in ran.err
    assert sorted(folder.iterdir()) == before
    assert cli("plan", str(tmp_path / "nothing"), "--policy", str(policy)).code == 3


def test_a_rollout_whose_canary_needs_no_plan(
    cli: Cli, table: str, policy: Path, tmp_path: Path
) -> None:
    """The canary meets the policy already: nothing would run before the other tables."""
    fine = Log(tmp_path / "dev" / "fine")
    fine.commit(0, protocol(1, 2), metadata())
    policy.write_text(
        "{policy_version: 1, tables: {'**': {forbid_features: [deletionVectors]}}, "
        "rollout: {canary: ['dev/*']}}"
    )
    folder = str(tmp_path / "plans")
    ran = cli("plan", table, fine.table, "--policy", str(policy), "--out", folder)
    assert "no canary of the rollout has a plan to apply: it begins with wave 1" in ran.err


def test_a_table_that_two_arguments_contain_is_planned_once(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        Log(tmp_path / "lake" / name).commit(0, protocol(1, 2), metadata())
    Log(tmp_path / "lake" / "broken").raw(0, b"{")
    monkeypatch.chdir(tmp_path)
    assert cli("scan", "lake", "--inventory", "inventory").code == 3
    goal = ("--enable", "deletionVectors", "--format", "json")
    named = ("lake/a", "./lake/a/", "lake/broken")
    ran = cli("plan-upgrade", *named, "--from", "inventory", *goal).json
    assert [plan["table"] for plan in ran["plans"]] == [
        *("lake/a", "lake/broken", str(tmp_path / "lake/b")),
    ]
    assert (ran["summary"]["tables"], ran["summary"]["unreadable"]) == (3, 1)


def test_plans_of_an_inventory_show_names_without_escapes(
    cli: Cli, policy: Path, tmp_path: Path
) -> None:
    log = Log(tmp_path / "lake" / "größe 1%")
    log.commit(0, protocol(3, 7, VECTORS, ["appendOnly", *VECTORS]), metadata())
    inventory, folder = str(tmp_path / "inventory"), tmp_path / "plans"
    assert cli("scan", str(tmp_path / "lake"), "--inventory", inventory).code == 0
    words = ("--from", inventory, "--policy", str(policy), "--out", str(folder))
    assert cli("plan", *words).code == 0
    (file,) = folder.glob("*.json")
    assert json.loads(file.read_text())["table"] == log.table


def test_a_policy_with_a_rollout_assigns_waves(
    cli: Cli, table: str, policy: Path, tmp_path: Path
) -> None:
    other = Log(tmp_path / "dev" / "returns")
    other.commit(0, protocol(3, 7, VECTORS, ["appendOnly", *VECTORS]), metadata())
    policy.write_text(f"{POLICY}rollout: {{canary: ['dev/*'], waves: [50%], soak: 1d}}\n")
    folder = tmp_path / "plans"
    ran = cli("plan", table, other.table, "--policy", str(policy), "--out", str(folder))
    assert ran.code == 0
    assert "tables in each wave of the rollout: canary: 1, wave 1: 1" in ran.err
    rollout = load_rollout(str(folder))
    assert [[each.table for each in wave.tables] for wave in rollout.waves] == [
        [other.table],
        [table],
    ]
    assert rollout.soak_hours == 24
    assert {each.file for each in rollout.tables} == {*os.listdir(folder)} - {"rollout.json"}
    path = folder / "rollout.json"
    whole = path.read_text()
    for text, why in (
        (whole.replace("24.0", "0.0"), "was changed after it was made"),
        (whole[:-9], "is not a complete JSON document"),
        ("{}", "is not the file of a rollout"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=why):
            load_rollout(str(folder))


def test_plans_of_an_interrupted_planning_cannot_be_applied(
    cli: Cli, table: str, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy.write_text(f"{POLICY}rollout: {{waves: [1]}}\n")
    folder = tmp_path / "plans"

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deltaproto.cli.plan.assign_waves", interrupt)
    cli("plan", table, "--policy", str(policy), "--out", str(folder))
    with pytest.raises(UsageError, match="planning was interrupted"):
        load_rollout(str(folder))


@pytest.mark.parametrize("out", [False, True], ids=["shown", "saved"])
def test_each_table_counts_once_for_the_patterns_of_the_policy(
    cli: Cli, table: str, tmp_path: Path, *, out: bool
) -> None:
    damaged = Log(tmp_path / "damaged").raw(0, b"{").table
    inventory, rules = str(tmp_path / "inventory"), tmp_path / "rules.yaml"
    rules.write_text(
        "policy_version: 1\ntables:\n"
        '  "**": {require_properties: {delta.appendOnly: "false"}}\n'
        '  "**/damaged": {max_reader_version: 3}\n'
        '  "**/nothing": {max_reader_version: 3}\n'
    )
    assert cli("scan", table, damaged, "--inventory", inventory).code == 3
    words = ("--out", str(tmp_path / "plans")) if out else ()
    ran = cli("plan", inventory, "--policy", str(rules), *words)
    assert [line for line in ran.err.splitlines() if "DP301" in line] == [
        f'warning: DP301: {rules}:5:3: the pattern "**/nothing" matches nothing in 2 tables'
    ]
