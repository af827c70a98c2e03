"""Real tables brought to a policy by real Spark: what a plan promises to fix is fixed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import Ran
from tests.planning.random_tables import draft, make
from tests.recording.delta_spark import LiveDeltaSpark
from tests.support.contract import documents
from tests.support.tables import RECIPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Cli = Callable[..., Ran]
# EVERY_POLICY=1 tries all of them, in about ten minutes.
_NAMES = "*" if os.environ.get("EVERY_POLICY") else "[ps]*[ny]"
POLICIES = sorted((Path(__file__).parents[2] / "policies").glob(f"{_NAMES}.yaml"))
# Adds, drops, sets and limits versions at once.
STRICT = """
policy_version: 1
clients:
  - {client: delta-spark@3.2.0, access: [read, append]}
  - {client: trino@476, access: [read]}
tables:
  "*":
    forbid_features: [deletionVectors, typeWidening, rowTracking, v2Checkpoint]
    require_features: [inCommitTimestamp]
    require_properties: {delta.appendOnly: "false", delta.dataSkippingNumIndexedCols: 4}
    isolation: Serializable
    max_reader_version: 2
"""


MORE = (1, 3)
"""seeds of random tables"""


@pytest.fixture
def tables(spark: SparkSession, real_tables: Mapping[str, str], tmp_path: Path) -> list[str]:
    """A copy of every real table, and random ones: 30."""
    delta_spark = LiveDeltaSpark(spark)
    found = [make(delta_spark, draft(seed), tmp_path / f"random-{seed}").path for seed in MORE]
    for name in RECIPES:
        shutil.copytree(real_tables[name], tmp_path / "lake" / name)
        found.append(str(tmp_path / "lake" / name))
    return found


def planned(cli: Cli, tables: list[str], policy: Path, *words: str) -> dict[str, dict[str, Any]]:
    ran = cli("plan", *tables, "--policy", str(policy), *words, "--format", "json")
    assert ran.code in (0, 1, 10), ran
    documents(ran, "plan")
    return {plan["table"]: plan for plan in ran.json["plans"]}


def findings(cli: Cli, tables: list[str], policy: Path) -> Iterator[tuple[str, str]]:
    ran = cli("check", *tables, "--policy", str(policy), "--format", "json")
    for finding in ran.json["findings"]:
        yield finding["table"], f"{finding['rule']}: {finding['message']}"


@pytest.mark.parametrize("policy", [*POLICIES, None], ids=lambda path: path.stem if path else "all")
def test_what_a_plan_fixes_is_no_longer_found(
    policy: Path | None, tables: list[str], cli: Cli, tmp_path: Path
) -> None:
    if policy is None:
        policy = tmp_path / "strict.yaml"
        policy.write_text(STRICT)
    folder = tmp_path / "plans"
    plans = planned(cli, tables, policy, "--out", str(folder))
    promised = {(table, text) for table, plan in plans.items() for text in plan["fixes"]}
    assert promised
    assert promised <= {*findings(cli, tables, policy)}
    files = sorted(map(str, folder.iterdir()))
    assert len(files) == sum(bool(plan["steps"]) for plan in plans.values())
    applied = cli("apply", *files, "--yes", "--allow-irreversible", "--format", "json")
    states = {result["table"]: result["status"] for result in applied.json["results"]}
    waiting = {table for table, status in states.items() if status == "waiting"}
    assert {*states.values()} <= {"done", "waiting"}, applied.err
    assert all(any(step["wait"] for step in plans[table]["steps"]) for table in waiting)
    left = {*findings(cli, tables, policy)}
    assert [each for each in promised & left if each[0] not in waiting] == []
    again = planned(cli, tables, policy)
    assert {table for table, plan in again.items() if plan["steps"]} <= waiting
    unmet = {table for table, plan in plans.items() if plan["unmet"]} - waiting
    assert {table for table, plan in again.items() if plan["unmet"]} - waiting == unmet
