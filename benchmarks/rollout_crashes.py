"""Bring many tables to a policy in three waves, while others write, and kill `apply` all the time.

Every run is killed with SIGKILL at a random moment, and the next one continues elsewhere: it has
the plans, and nothing of what the last one recorded. At the end the tables must comply, with every
row that they had and every row that was written, and no step may have been completed twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from deltaproto.execution.rollout_file import ROLLOUT_FILE
from deltaproto.execution.run_log import STATE_FOLDER
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session
from tests.execution.crash_trial import ENVIRONMENT, apply_command
from tests.support.spark_settings import SMALL_TABLES
from tests.support.tables import RealTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = (
    "plain",
    "vectors_used",
    "change_data_feed",
    "row_tracking",
    "clustered",
    "oldest",
    "not_null",
    "constraint",
    "generated",
    "append_only",
)
POLICY = """
policy_version: 1
tables:
  "*":
    forbid_features: [deletionVectors, rowTracking]
    require_properties: {delta.logRetentionDuration: interval 30 days}
    isolation: Serializable
  "plain*": {cluster_by: [id]}
  "oldest*": {require_features: [inCommitTimestamp]}
rollout: {canary: [plain_0], waves: [40%], parallel: 2}
"""
_CONFLICT = ("CONCURRENT", "Concurrent", "PROTOCOL_CHANGED", "ProtocolChanged", "METADATA_CHANGED")
_LAST_RUNS = 20
"""runs without a kill in which the rollout must end"""


class Writer(threading.Thread):
    """Appends rows with ids of its own to the tables, one after the other, until it is stopped."""

    def __init__(self, spark: SparkSession, tables: Mapping[str, Path], number: int) -> None:
        super().__init__(daemon=True)
        self._spark, self._tables = spark, tables
        self._next, self._random = 1_000_000 * number, random.Random(number)
        self.written: dict[str, set[int]] = {name: set() for name in tables}
        self.rejected: dict[str, set[int]] = {name: set() for name in tables}
        self.unexpected: list[str] = []
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.2):
            name, self._next = self._random.choice([*self._tables]), self._next + 1
            sql = f"insert into delta.`{self._tables[name]}` (id, s) values ({self._next}, 'new')"
            try:
                self._spark.sql(sql)
            except Exception as error:
                self.rejected[name].add(self._next)
                if not any(word in str(error) for word in _CONFLICT):
                    self.unexpected.append(f"{name}: {str(error)[:300]}")
            else:
                self.written[name].add(self._next)


def ids(spark: SparkSession, table: Path) -> Counter[int]:
    """How often each id is in a table."""
    rows = spark.read.format("delta").load(str(table)).select("id").collect()
    return Counter(row[0] for row in rows)


def command(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    line = [sys.executable, "-m", "deltaproto", *map(str, words)]
    return subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def run_until(plans: Path, seconds: float | None) -> tuple[bool, int]:
    """Apply, and kill the process after `seconds`. Return whether it was killed, and its code."""
    process = subprocess.Popen(
        [*apply_command(plans), "--detailed-exitcode"],
        env=ENVIRONMENT,
        stdout=(plans.parent / "last.json").open("w"),
        stderr=(plans.parent / "last.err").open("w"),
        start_new_session=True,
    )
    try:
        return False, process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return True, process.wait()


def moved(plans: Path, to: Path) -> Path:
    """Another machine has the plans, and not what the last one recorded."""
    shutil.copytree(plans, to, ignore=lambda *_: [STATE_FOLDER])
    return to


def completed_twice(plans: Path) -> Iterator[str]:
    """Steps that were not completed exactly once."""
    for file in sorted(plans.glob("*.json")):
        plan = json.loads(file.read_text())
        if file.name == ROLLOUT_FILE or "steps" not in plan:
            continue
        ends: Counter[tuple[str, str]] = Counter()
        for commit in sorted(Path(plan["table"], "_delta_log").glob("*.json")):
            infos = (json.loads(line).get("commitInfo") for line in commit.open())
            for info in filter(None, infos):
                mark = json.loads(info.get("userMetadata") or "{}").get("deltaproto")
                if mark is not None and mark["plan"] == plan["plan_id"]:
                    ends[mark["step"], info["operation"]] += 1
        for step in plan["steps"]:
            times = ends[step["id"], step["operations"][-1]] if step["operations"] else 1
            if times != 1:
                yield f"{plan['table']}: {step['id']} was completed {times} times"


def lost_or_doubled(
    before: Counter[int], after: Counter[int], writers: list[Writer], name: str
) -> Iterator[str]:
    """What is wrong with the rows of a table."""
    written = set().union(*(each.written[name] for each in writers))
    rejected = set().union(*(each.rejected[name] for each in writers))
    expected = before + Counter(written)
    for row in expected - after:
        yield f"{name}: row {row} is lost"
    for row, times in (after - expected).items():
        # It is not known of a rejected commit whether it was made.
        if row not in rejected or times > 1:
            yield f"{name}: row {row} is there {times} times more than it should"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=25.0, help="seconds of a run")
    arguments = parser.parse_args()
    dice, started = random.Random(arguments.seed), time.monotonic()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="deltaproto-rollout-") as scratch:
        root = Path(scratch)
        spark = spark_session(SparkSettings(conf=SMALL_TABLES))
        made, tables = RealTables(spark), dict[str, Path]()
        for number in range(arguments.tables):
            kind = KINDS[number % len(KINDS)]
            name = f"{kind}_{number // len(KINDS)}"
            tables[name] = root / "lake" / name
            shutil.copytree(made[kind], tables[name])
        before = {name: ids(spark, table) for name, table in tables.items()}
        policy, plans = root / "policy.yaml", root / "plans-0"
        policy.write_text(POLICY)
        asked = (*tables.values(), "--policy", policy)
        planned = command("plan", *asked, "--out", plans, "--detailed-exitcode")
        assert planned.returncode == 10, planned.stderr
        writers = [Writer(spark, tables, number) for number in (1, 2)]
        for writer in writers:
            writer.start()
        kills = runs = 0
        code = -1
        while code != 0 and runs < arguments.kills + _LAST_RUNS:
            limit = dice.uniform(4, arguments.longest) if kills < arguments.kills else None
            killed, code = run_until(plans, limit)
            kills, runs = kills + killed, runs + 1
            print(f"run {runs}: {'killed' if killed else f'exit {code}'}", flush=True)
            plans = moved(plans, root / f"plans-{runs}")
        for writer in writers:
            writer.stop.set()
            writer.join()
            wrong += writer.unexpected
        if code != 0:
            wrong.append(
                f"the last run ended with {code}: {(root / 'last.err').read_text()[-500:]}"
            )
        wrong += completed_twice(plans)
        for name, table in tables.items():
            wrong += lost_or_doubled(before[name], ids(spark, table), writers, name)
        for words in (("plan", *asked, "--detailed-exitcode"), ("check", *asked)):
            ran = command(*words)
            if ran.returncode != 0:
                wrong.append(f"{words[0]} exits with {ran.returncode}: {ran.stdout[-800:]}")
        rows = sum(len(each) for writer in writers for each in writer.written.values())
        rejected = sum(len(each) for writer in writers for each in writer.rejected.values())
    print("\n".join(wrong))
    print(
        f"{len(tables)} tables, {kills} kills in {runs} runs, {rows} rows written and {rejected} "
        f"rejected: {len(wrong)} mistakes, {time.monotonic() - started:.0f} s"
    )
    return 1 if wrong or kills < arguments.kills else 0


if __name__ == "__main__":
    sys.exit(main())
