"""Real tables brought to a policy in waves, by real Spark."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.rollout_file import ROLLOUT_FILE
from deltaproto.execution.run_log import STATE_FOLDER
from deltaproto.execution.waits import WaitLimits
from deltaproto.planning.plan import Plan
from deltaproto.planning.rollout import group_id
from tests.conftest import Ran
from tests.execution import crash_trial
from tests.support.contract import documents
from tests.support.engines import needs_delta
from tests.support.tables import RECIPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NAMES = ("plain", "vectors_used", "change_data_feed", "row_tracking", "clustered", "oldest")
WRITTEN = ("plain", "vectors_used")
assert {*NAMES} < {*RECIPES}
POLICY = """
policy_version: 1
tables:
  "*":
    forbid_features: [deletionVectors, rowTracking]
    require_properties: {delta.logRetentionDuration: interval 30 days}
    isolation: Serializable
  plain: {cluster_by: [id]}
  oldest: {require_features: [inCommitTimestamp]}
rollout: {canary: [plain], waves: [2], soak: 1h, parallel: 2}
"""


class Rollout:
    """Tables, their plans in three waves, and a clock that can be put forward."""

    def __init__(self, cli: Callable[..., Ran], made: Mapping[str, str], folder: Path) -> None:
        self._cli, self._made, self.folder, self.hours = cli, made, folder, 0
        self.plans, self.policy = folder / "plans", folder / "policy.yaml"
        self.tables: dict[str, Path] = {}

    def begin(self, names: Iterable[str], policy: str = POLICY) -> None:
        """Copy the tables and plan."""
        self.policy.write_text(policy)
        self.tables = {name: self.folder / "lake" / name for name in names}
        for name, table in self.tables.items():
            shutil.copytree(self._made[name], table)
        assert self.plan("--out", str(self.plans)).code == 10

    def now(self) -> float:
        return time.time() + self.hours * 3600

    def plan(self, *words: str) -> Ran:
        tables = map(str, self.tables.values())
        return self._cli(
            "plan", *tables, "--policy", str(self.policy), "--detailed-exitcode", *words
        )

    def saved(self) -> list[Plan]:
        """The plans, as they were made."""
        files = (file for file in self.plans.glob("*.json") if file.name != ROLLOUT_FILE)
        found = (loaded for file in files for loaded in read_plans(str(file)))
        return [each.plan for each in found if isinstance(each, LoadedPlan)]

    def decide(self, *words: str) -> None:
        action, *rest = words
        assert self._cli("rollout", action, str(self.plans), *rest).code == 0

    def apply(self) -> tuple[int, set[str], dict[str, Any]]:
        """Apply. Return the exit code, the tables with a result, and the rollout."""
        words = ("--yes", "--allow-irreversible", "--detailed-exitcode", "--format", "json")
        ran = self._cli("apply", str(self.plans), *words)
        (document,) = documents(ran, "apply")
        tables = {Path(each["table"]).name for each in document["results"]}
        return ran.code, tables, document["rollout"]


@pytest.fixture
def rollout(
    cli: Callable[..., Ran],
    real_tables: Mapping[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Rollout:
    made = Rollout(cli, real_tables, tmp_path)
    monkeypatch.setattr(
        "deltaproto.cli.apply.WaitLimits", lambda retries, wait: WaitLimits(retries, wait, made.now)
    )
    return made


def rows(spark: SparkSession, table: Path) -> int:
    return spark.read.format("delta").load(str(table)).count()


@needs_delta("4.0", "drops features at once")
def test_six_mixed_tables_converge_in_three_waves(rollout: Rollout, spark: SparkSession) -> None:
    rollout.begin(NAMES, POLICY.replace("parallel: 2", "parallel: 2, rehearse: true"))
    before = {name: rows(spark, table) for name, table in rollout.tables.items()}
    waves = []
    for _ in range(3):
        code, tables, progress = rollout.apply()
        waves.append(tables)
        # Too early for the next wave; other writers append meanwhile.
        assert rollout.apply()[:2] == (code, set())
        for name in WRITTEN:
            spark.sql(f"insert into delta.`{rollout.tables[name]}` (id, s) values (100, 'x')")
        rollout.hours += 2
    assert (code, progress["status"]) == (0, "done")
    assert [len(tables) for tables in waves] == [1, 2, 3]
    audit = (rollout.plans / STATE_FOLDER / "audit.jsonl").read_text().splitlines()
    actions = Counter(json.loads(line).get("action") for line in audit)
    assert actions["rehearse"] == len({group_id(plan) for plan in rollout.saved()})
    assert waves[0] == {"plain"}
    assert set.union(*waves) == {*NAMES}
    assert rollout.plan().code == 0
    after = {name: rows(spark, table) for name, table in rollout.tables.items()}
    assert after == {name: count + 3 * (name in WRITTEN) for name, count in before.items()}


@needs_delta("4.0", "drops features at once")
def test_a_failing_wave_stops_and_continues_without_its_table(
    rollout: Rollout, spark: SparkSession
) -> None:
    rollout.begin(NAMES[:4])
    rollout.apply()
    rollout.hours += 2
    progress = json.loads((rollout.plans / "rollout.json").read_text())
    last = Path(progress["waves"][2]["plans"][-1]["table"]).name
    broken, other = (Path(each["table"]).name for each in progress["waves"][1]["plans"])
    spark.sql(f"alter table delta.`{rollout.tables[broken]}` add column more int")
    code, tables, found = rollout.apply()
    assert (code, found["status"]) == (4, "stopped")
    assert tables == {broken, other}
    untouched = len([*(rollout.tables[last] / "_delta_log").glob("*.json")])
    rollout.hours += 2
    assert rollout.apply()[:2] == (1, set())
    rollout.decide("skip", broken, "--reason", "has a new column")
    rollout.apply()
    rollout.hours += 2
    code, tables, found = rollout.apply()
    assert (code, found["status"], broken in tables) == (0, "done", False)
    assert len([*(rollout.tables[last] / "_delta_log").glob("*.json")]) > untouched
    # What was left out is planned again.
    again = rollout.plan("--format", "json").json["plans"]
    assert [Path(plan["table"]).name for plan in again if plan["steps"]] == [broken]


@needs_delta("4.0", "drops features at once")
def test_a_killed_run_continues_elsewhere_from_the_logs_alone(rollout: Rollout) -> None:
    rollout.begin(NAMES[:4], POLICY.replace("soak: 1h, ", ""))
    process = subprocess.Popen(
        crash_trial.apply_command(rollout.plans),
        env=crash_trial.ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    state = rollout.plans / STATE_FOLDER
    until = time.monotonic() + 300
    while sum('"start"' in each.read_text() for each in state.glob("*.jsonl")) < 3:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # Another machine has the plans, and not what the first one recorded.
    shutil.copytree(rollout.plans, rollout.folder / "there", ignore=lambda *_: [STATE_FOLDER])
    rollout.plans = rollout.folder / "there"
    code, _, progress = rollout.apply()
    assert (code, progress["status"]) == (0, "done")
    assert rollout.plan().code == 0
    for file in rollout.plans.glob("*-*.json"):
        plan = json.loads(file.read_text())
        ends = Counter(
            (mark["step"], info["operation"])
            for info in commits(Path(plan["table"]))
            for mark in [json.loads(info.get("userMetadata") or "{}").get("deltaproto")]
            if mark is not None and mark["plan"] == plan["plan_id"]
        )
        # The last operation of a step completes it: no step was completed twice.
        assert [ends[step["id"], step["operations"][-1]] for step in plan["steps"]] == [1] * len(
            plan["steps"]
        ), plan["table"]


def commits(table: Path) -> list[dict[str, Any]]:
    """The commitInfo of every commit."""
    found = []
    for file in sorted((table / "_delta_log").glob("*.json")):
        for line in file.read_text().splitlines():
            action = json.loads(line)
            found += [action["commitInfo"]] if "commitInfo" in action else []
    return found
