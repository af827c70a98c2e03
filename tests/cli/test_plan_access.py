"""What clients do decides what a plan must reach: reading alone asks for less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from tests.conftest import Ran
from tests.support.contract import plan
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
VECTORS = "deletionVectors"
CLIENT = "deltalake@0.17.4"


def downgrade(cli: Cli, table: str, *words: str) -> dict[str, Any]:
    return plan(cli("plan-downgrade", table, *words, "--format", "json"))


def test_reading_alone_needs_no_wait(cli: Cli, vectors: str) -> None:
    found = downgrade(cli, vectors, "--for-client", CLIENT, "--access", "read")
    assert found["goal"]["clients"] == [{"client": CLIENT, "access": ["read"]}]
    assert found["cost"]["waits"] == 0
    assert found["features_added"] == ["checkpointProtection"]
    by_drop = downgrade(cli, vectors, "--drop", VECTORS)
    assert [s["sql"] for s in found["steps"]] == [s["sql"] for s in by_drop["steps"]]


def test_what_is_enough_for_reading_stands_beside_it(cli: Cli, vectors: str) -> None:
    both = downgrade(cli, vectors, "--for-client", CLIENT)
    assert both["goal"]["clients"][0]["access"] == ["read", "append"]
    assert both["cost"]["waits"] == 1
    (other,) = [each for each in both["alternatives"] if each["name"] == "reading"]
    alone = downgrade(cli, vectors, "--for-client", CLIENT, "--access", "read")
    assert not other["reaches_goal"]
    assert other["cost"] == alone["cost"]
    assert [step["sql"] for step in other["steps"]] == [step["sql"] for step in alone["steps"]]


@pytest.mark.parametrize(
    "words",
    [
        ("--for-client", CLIENT, "--access", "read,append"),
        # Nothing is cheaper there.
        ("--for-client", "trino@476"),
        ("--drop", VECTORS, "--client", CLIENT),
    ],
)
def test_it_does_not_where_it_is_no_question(cli: Cli, vectors: str, words: tuple[str]) -> None:
    found = downgrade(cli, vectors, *words)
    assert not [each for each in found["alternatives"] if each["name"] == "reading"]


def test_a_policy_says_itself_what_clients_do(cli: Cli, vectors: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"policy_version: 1\nclients: [{{client: {CLIENT}, access: [append]}}]\n")
    words = ("--policy", str(policy), "--for-client", "polars@1.20.0", "--access", "read")
    found = downgrade(cli, vectors, *words)
    uses = {each["client"]: each["access"] for each in found["goal"]["clients"]}
    assert uses == {"polars@1.20.0": ["read"], CLIENT: ["append"]}


def test_an_upgrade_keeps_what_clients_do(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    words = ("--enable", "rowTracking", "--for-client", CLIENT, "--format", "json")
    assert cli("plan-upgrade", log.table, *words).code == 1
    reading = cli("plan-upgrade", log.table, *words, "--access", "read")
    assert reading.code == 0
    assert not plan(reading, "plan-upgrade")["blocked"]


def test_python_says_the_same(cli: Cli, vectors: str) -> None:
    mine = deltaproto.plan_downgrade(vectors, for_clients=[CLIENT], access=["read"])
    said = downgrade(cli, vectors, "--for-client", CLIENT, "--access", "read")
    assert deltaproto.to_dict(mine)["plan_id"] == said["plan_id"]
    assert {a.name for a in deltaproto.plan_downgrade(vectors, for_clients=[CLIENT]).alternatives}
    other = deltaproto.plan_downgrade(vectors, for_clients=[CLIENT]).alternatives[0]
    assert other.name == "reading"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--for-client", CLIENT, "--access", "write"), "--access: unknown access write"),
        (("--lowest", "--access", "read"), "--access without a client"),
    ],
)
def test_mistakes(cli: Cli, vectors: str, words: tuple[str, ...], said: str) -> None:
    ran = cli("plan-downgrade", vectors, *words)
    assert ran.code == 2
    assert said in ran.err
    assert "hint:" in ran.err


def test_costs_are_told_at_once(cli: Cli, vectors: str) -> None:
    out = cli("plan-downgrade", vectors, "--for-client", CLIENT).out
    (line,) = [each for each in out.splitlines() if each.startswith("  cost ")]
    assert "1 wait of 24 h" in line
    assert "rewrites at most 32 B" in line
    after = out[out.rindex("point of no return") :]
    assert all(
        "deleted history is not restored" in line for line in after.splitlines() if " undo " in line
    )
    before = out[: out.rindex("point of no return")]
    assert "deleted history is not restored" not in before


def test_a_script_tells_costs_and_clients(cli: Cli, vectors: str) -> None:
    words = ("--for-client", CLIENT, "--access", "read", "--script", "sql")
    lines = cli("plan-downgrade", vectors, *words).out.splitlines()
    assert any(line.startswith("-- cost: ") and "no wait" in line for line in lines)
    assert "-- rewrites: the files with deletion vectors: at most 1, 32 B" in lines
    (client,) = [line for line in lines if line.startswith("-- client: ")]
    assert "read refused -> ok" in client


def test_a_script_gives_the_reason_of_a_block_without_a_feature(cli: Cli, vectors: str) -> None:
    statement = f"alter table delta.`{vectors}` drop column nosuch"
    out = cli("plan-upgrade", vectors, "--sql", statement, "--script", "sql").out
    assert "\n-- blocked: line 1: " in out


def test_the_lowest_protocol_for_a_client_or_a_policy(
    cli: Cli, vectors: str, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"policy_version: 1\nclients: [{CLIENT}]\n")
    for named in (("--for-client", CLIENT), ("--policy", str(policy))):
        found = downgrade(cli, vectors, "--lowest", *named)
        assert found["goal"]["kind"] == "lowest"
        assert found["goal"]["clients"] == [{"client": CLIENT, "access": ["read", "append"]}]
        assert not found["blocked"]
        assert all(change["after"] == "ok" for change in found["clients"])
        needed = downgrade(cli, vectors, *named)["protocol_after"]
        assert found["protocol_after"]["minReaderVersion"] <= needed["minReaderVersion"]
        assert found["protocol_after"]["minWriterVersion"] <= needed["minWriterVersion"]


def test_a_legacy_table_gets_lower_versions_and_no_feature_lists(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info("CREATE TABLE"), protocol(2, 5), metadata())
    found = downgrade(cli, log.table, "--lowest")
    assert found["protocol_after"]["minReaderVersion"] == 1
    assert found["protocol_after"]["minWriterVersion"] == 4
    assert not [c for c in found["clients"] if c["before"] == "ok" and c["after"] != "ok"]
    assert "(1,7)" in {k["feature"]: k["reason"] for k in found["kept"]}["checkConstraints"]


def test_python_plans_the_lowest_protocol_for_a_client(cli: Cli, vectors: str) -> None:
    found = downgrade(cli, vectors, "--lowest", "--for-client", CLIENT)
    plan = deltaproto.plan_downgrade(vectors, lowest=True, for_clients=[CLIENT])
    assert [step.sql for step in plan.steps] == [step["sql"] for step in found["steps"]]
    with pytest.raises(deltaproto.UsageError, match="more than one goal"):
        deltaproto.plan_downgrade(vectors, lowest=True, to=(1, 2))
