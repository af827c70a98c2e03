"""One plan, killed at one moment with SIGKILL, Spark and all, and then run again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.tables.log.reader import LogReader
from tests.planning.random_tables import age
from tests.support.engines import for_running
from tests.support.spark_settings import SHORT_LIVED, SMALL_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.002
_LONGEST_SECONDS = 600
_DAYS_LATER = 72
_WITHIN_SECONDS = 0.7
ENVIRONMENT = {**os.environ, "JAVA_TOOL_OPTIONS": SHORT_LIVED}
"""for processes that apply"""

Rows = list[tuple[Any, ...]]


class Scenario(NamedTuple):
    """A table, and what is planned for it."""

    name: str
    create: tuple[str, ...]
    """statements; `{t}` is the table"""
    plan: tuple[str, ...]
    """words of the command line after the table"""


class Moment(NamedTuple):
    """When to kill."""

    step: int
    """from 0"""
    when: str
    """`sent`, `within` (so many seconds later), `commit N`, or `done`"""


class Outcome(NamedTuple):
    """What came of one kill."""

    scenario: str
    moment: Moment
    killed: bool
    """False: it had ended before"""
    mismatches: tuple[str, ...]


SCENARIOS = (
    Scenario(
        "vectors",
        (
            "create table {t} (id bigint, s string) using delta tblproperties "
            "('delta.enableDeletionVectors'='true')",
            "insert into {t} select id, 'x' from range(0, 100, 1, 2)",
            "delete from {t} where id % 10 = 3",
        ),
        ("plan-downgrade", "--drop", "deletionVectors"),
    ),
    Scenario(
        "row-tracking",
        (
            "create table {t} (id bigint, s string) using delta",
            "insert into {t} select id, 'x' from range(0, 90, 1, 2)",
        ),
        ("plan-upgrade", "--enable", "rowTracking", "--set", "delta.appendOnly=false"),
    ),
    Scenario(
        "truncating",
        (
            "create table {t} (id bigint, s string) using delta tblproperties "
            "('delta.enableDeletionVectors'='true')",
            "insert into {t} select id, 'x' from range(0, 100, 1, 1)",
            "delete from {t} where id % 10 = 3",
        ),
        ("plan-downgrade", "--drop", "deletionVectors", "--history", "truncate"),
    ),
    Scenario(
        "mapping",
        (
            "create table {t} (id bigint, s string) using delta tblproperties "
            "('delta.columnMapping.mode'='name')",
            "insert into {t} select id, 'x' from range(0, 90, 1, 3)",
        ),
        ("plan-downgrade", "--drop", "columnMapping"),
    ),
    Scenario(
        "lowest",
        (
            "create table {t} (id bigint, s string) using delta tblproperties "
            "('delta.enableTypeWidening'='true','delta.enableInCommitTimestamps'='true',"
            "'delta.enableChangeDataFeed'='true')",
            "insert into {t} select id, 'x' from range(0, 90, 1, 1)",
            "alter table {t} add constraint positive check (id >= 0)",
        ),
        ("plan-downgrade", "--lowest", "--include-enabled"),
    ),
)


def template(spark: SparkSession, scenario: Scenario, folder: Path) -> tuple[Path, Rows]:
    """The scenario's table, and its rows."""
    path = folder / scenario.name
    for statement in scenario.create:
        spark.sql(statement.format(t=f"delta.`{path}`"))
    return path, contents(spark, path)


def contents(spark: SparkSession, path: Path) -> Rows:
    """The rows of a table, in an order of their own."""
    return sorted(tuple(row) for row in spark.read.format("delta").load(str(path)).collect())


def planned(scenario: Scenario, made: Path, folder: Path) -> tuple[Path, Path]:
    """A copy of the table, and the plan file for it."""
    folder.mkdir(parents=True)
    table, file = folder / "table", folder / "plan.json"
    shutil.copytree(made, table)
    command, *words = scenario.plan
    out = ("--format", "json", "--output", str(file))
    words = [*for_running((command, str(table), *words, *out))]
    subprocess.run(_command(*words), check=True)
    return table, file


def moments(file: Path) -> Iterator[Moment]:
    """The moments of a plan: before, within and after every statement."""
    for number, step in enumerate(_plan(file)["steps"]):
        if step["sql"] is None:
            continue
        yield Moment(number, "sent")
        yield Moment(number, "within")
        for commit in range(1, step["commits"]["max"] + 1):
            yield Moment(number, f"commit {commit}")
        yield Moment(number, "done")


def tried(
    spark: SparkSession, scenario: Scenario, made: Path, rows: Rows, moment: Moment, folder: Path
) -> Outcome:
    """Kill at the moment, run again, and say what is not as it should be."""
    table, file = planned(scenario, made, folder)
    killed = _killed(table, file, moment)
    found = list(_resumed(table, file))
    found += checked(table, file)
    now = contents(spark, table)
    if now != rows:
        found.append(f"{len(now)} rows, not the {len(rows)} of before: {now[:3]}…")
    return Outcome(scenario.name, moment, killed, tuple(found))


def _killed(table: Path, file: Path, moment: Moment) -> bool:
    process = subprocess.Popen(
        apply_command(file),
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    step = _plan(file)["steps"][moment.step]["id"]
    until = time.monotonic() + _LONGEST_SECONDS
    aged = False
    while time.monotonic() < until:
        if _has_come(table, file, step, moment):
            break
        if process.poll() is not None:
            if aged or not _waits(file):
                break
            later(table, file)
            aged = True
            process = subprocess.Popen(
                apply_command(file),
                env=ENVIRONMENT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        time.sleep(_POLL_SECONDS)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return running


def _has_come(table: Path, file: Path, step: str, moment: Moment) -> bool:
    if moment.when in ("sent", "within", "done"):
        event = "done" if moment.when == "done" else "start"
        told = [each for each in events(file) if (each["event"], each.get("step")) == (event, step)]
        # Long enough for Spark to be at work, and shorter than most statements take.
        since = time.time() - told[-1]["at"] if told else 0.0
        return bool(told) and (moment.when != "within" or since > _WITHIN_SECONDS)
    wanted = int(moment.when.removeprefix("commit "))
    sent = any(each["event"] == "start" and each.get("step") == step for each in events(file))
    return sent and len(own(table, step)) >= wanted


def _resumed(table: Path, file: Path) -> Iterator[str]:
    for _ in range(3):
        ran = subprocess.run(
            apply_command(file), env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        try:
            result = json.loads(ran.stdout)["results"][0]
        except (ValueError, LookupError):
            yield f"run again: {ran.returncode}, {ran.stdout[-500:]} {ran.stderr[-500:]}"
            return
        if result["status"] == "waiting":
            later(table, file)
            continue
        if (ran.returncode, result["status"]) != (0, "done"):
            yield f"run again: {ran.returncode}, {result['status']}, {result['message']}"
        return
    yield "it waits for ever"


def checked(table: Path, file: Path) -> Iterator[str]:
    """What is not as it should be after a plan that was carried out."""
    plan = _plan(file)
    state = LogReader(use_checksums=False).read(str(table))
    stored = {"readerFeatures": None, "writerFeatures": None, **state.protocol.to_action()}
    if stored != plan["protocol_after"]:
        yield f"{stored} instead of {plan['protocol_after']}"
    for step in plan["steps"]:
        made = own(table, step["id"])
        last = step["operations"][-1] if step["operations"] else None
        if (
            last is not None
            and last in made[:-1]
            and made.count(last) > step["operations"].count(last)
        ):
            yield f"{step['id']} was executed twice: {made}"
        real = [operation for operation in made if operation != "Empty Commit"]
        if len(real) > step["commits"]["max"]:
            yield f"{step['id']} made {made}; at most {step['commits']['max']} were predicted"


def later(table: Path, file: Path, hours: float = _DAYS_LATER) -> None:
    """Let time pass: for the table's log, and for the journal."""
    age(str(table), hours)
    (journal,) = (file.parent / ".deltaproto").glob("*.journal.jsonl")
    told = events(file)
    for event in told:
        event["at"] -= hours * 3600
    journal.write_text("".join(json.dumps(event) + "\n" for event in told))


def events(file: Path) -> list[dict[str, Any]]:
    """What the journal of a plan file holds."""
    found = []
    for journal in (file.parent / ".deltaproto").glob("*.journal.jsonl"):
        for line in journal.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def own(table: Path, step: str) -> list[str]:
    """The operations of the commits that carry a step's mark, in order."""
    found = []
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            if '"commitInfo"' in line:
                try:
                    info = json.loads(line)["commitInfo"]
                    mark = json.loads(info.get("userMetadata") or "{}").get("deltaproto", {})
                except (ValueError, KeyError):
                    continue
                if mark.get("step") == step:
                    found.append(info["operation"])
    return found


def _waits(file: Path) -> bool:
    return any(event["event"] == "waiting" for event in events(file))


def _plan(file: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(file.read_text())
    return document


def apply_command(file: Path, conf: Mapping[str, str] = SMALL_TABLES) -> list[str]:
    """The words that carry a plan out."""
    settings = [word for item in conf.items() for word in ("--spark-conf", "=".join(item))]
    words = ("--yes", "--allow-irreversible", "--format", "json", "--no-progress")
    return _command("apply", str(file), *words, *settings)


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "deltaproto", *words]
