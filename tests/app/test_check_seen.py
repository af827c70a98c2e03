"""Checks from Python that compare with the clients that `discover` counted, as the command does."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from deltaproto import Inventory, UsageError
from tests.conftest import Ran
from tests.fleet.test_clients_seen import OLD_SPARK, RUNTIME, SPARK, made
from tests.support.contract import documents

Cli = Callable[..., Ran]
POLICY = """policy_version: 1
clients:
  - client: delta-spark@4.4.0
    access: [append]
  - client: trino@476
    access: [append]
"""
RULES = {"DP403", "DP404", "DP405", "DP406"}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    made(
        tmp_path / "lake" / "ledger",
        *((300, RUNTIME), (209, RUNTIME), (118, RUNTIME), (28, RUNTIME)),
        *((3, SPARK), (2, OLD_SPARK), (1, {"engineInfo": "loader 7"})),
    )
    made(tmp_path / "lake" / "quiet", (300, SPARK), (200, OLD_SPARK))
    (tmp_path / "policy.yaml").write_text(POLICY)
    deltaproto.scan(tmp_path / "lake", inventory=tmp_path / "inventory")
    return tmp_path


def of_command(cli: Cli, *words: str) -> list[dict[str, Any]]:
    (document,) = documents(cli("check", *words, "--format", "json"), "check")
    return document["findings"]


def test_the_findings_are_those_of_the_command(cli: Cli, lake: Path) -> None:
    inventory, policy = lake / "inventory", lake / "policy.yaml"
    deltaproto.discover(inventory)
    words = ("--policy", str(policy), "--seen", str(inventory))
    of_tables = deltaproto.check(
        [lake / "lake" / "ledger", lake / "lake" / "quiet"], policy, seen=inventory
    )
    of_inventory = Inventory(inventory).check(policy, seen=inventory, seen_days=250)
    tables = [str(lake / "lake" / name) for name in ("ledger", "quiet")]
    for mine, command in (
        (of_tables, of_command(cli, *tables, *words)),
        (of_inventory, of_command(cli, str(inventory), *words, "--seen-days", "250")),
    ):
        assert {each["rule"] for each in command} >= RULES
        assert json.loads(json.dumps(mine.to_dict()))["findings"] == command
    older = [row["rule"] for row in of_tables.findings].count("DP405")
    # In a longer period, the older client used both tables.
    assert (older, [row["rule"] for row in of_inventory.findings].count("DP405")) == (1, 2)
    assert not {row["rule"] for row in deltaproto.check(tables[0], policy).findings} & RULES


def test_a_table_that_no_run_counted_is_a_warning(
    lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inventory, later = lake / "inventory", lake / "lake" / "later"
    deltaproto.discover(inventory)
    made(later, (300, SPARK))
    with caplog.at_level(logging.WARNING, "deltaproto"):
        checks = deltaproto.check(later, lake / "policy.yaml", seen=inventory)
    assert f"discover has not counted the commits of 1 table, such as {later}" in caplog.text
    assert not {row["rule"] for row in checks.findings} & RULES


def test_an_old_count_is_a_warning(lake: Path, caplog: pytest.LogCaptureFixture) -> None:
    deltaproto.discover(lake / "inventory")
    with pytest.MonkeyPatch.context() as patched, caplog.at_level(logging.WARNING, "deltaproto"):
        patched.setattr("deltaproto.app.checking.DEFAULT_MAX_AGE_DAYS", 0)
        deltaproto.check(lake / "lake" / "quiet", lake / "policy.yaml", seen=lake / "inventory")
    assert "the newest run of discover is less than an hour old; run it again" in caplog.text


@pytest.mark.parametrize(
    ("named", "days", "message"),
    [
        ("lake", 90, "is not an inventory"),
        ("inventory", 90, "has no clients_seen"),
        ("inventory", 0, "seen_days is 0"),
    ],
)
def test_nothing_to_compare_with_is_an_error(
    lake: Path, named: str, days: int, message: str
) -> None:
    for check in (
        lambda **by: deltaproto.check(lake / "lake" / "ledger", clients=["trino@476"], **by),
        lambda **by: Inventory(lake / "inventory").check(clients=["trino@476"], **by),
    ):
        with pytest.raises(UsageError, match=message):
            check(seen=lake / named, seen_days=days)
