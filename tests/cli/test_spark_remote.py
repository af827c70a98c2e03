"""Every command that can use Spark, through a Spark Connect server: the answer is the same."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from deltaproto.cli.declare import Command
from deltaproto.cli.main import COMMANDS, load_command
from deltaproto.cli.options import SPARK_REMOTE
from tests.conftest import Ran
from tests.support.command_lines import ran
from tests.support.connect_server import TOKEN, Answer, ConnectServer
from tests.support.engines import RUNNING, needs_delta
from tests.support.logs import Log, metadata, protocol
from tests.support.parsed import allowed_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.heavy

NAME = "connected.orders"
DROPPED = "deletionVectors" if RUNNING.at_least("4.0") else "vacuumProtocolCheck"
SQL = (
    "create table {t} (id bigint, s string) using delta "
    "tblproperties ('delta.enableDeletionVectors'='true', "
    "'delta.feature.vacuumProtocolCheck'='supported')",
    "insert into {t} select id, 'x' from range(0, 20, 1, 1)",
    "delete from {t} where id = 3",
)
JSON = ("--format", "json")
POLICY = Path(__file__).parents[2] / "policies" / "spark-oss.yaml"
READS = (
    f"inspect {NAME}",
    f"inspect spark_catalog.{NAME} --activity",
    f"inspect {NAME} --reader all",
    "inspect {lake}/orders --reader spark",
    "inspect {lake}/orders --reader all",
    "inspect connected.logs",
    "inspect connected.seen",
    "inspect connected.nobody",
    f"check {NAME} --client delta-spark@2.2.0",
    "check {lake}/orders --reader spark --client delta-spark@2.2.0",
    "check {lake}/orders --reader all --client delta-spark@2.2.0",
    f"history {NAME}",
    f"discover {NAME}",
    "discover {lake}/orders --engine spark",
    f"conflicts {NAME} --operation UPDATE --against DELETE",
    f"conflicts {NAME} --exception ConcurrentAppendException --at 2030-01-01",
    f"plan {NAME} --policy {POLICY}",
    f"plan-upgrade {NAME} --set delta.appendOnly=true --output {{lake}}/up.json",
    f"plan-downgrade {NAME} --drop {DROPPED} --output {{lake}}/down.json",
    "scan --catalog connected --inventory {lake}/local",
    "scan {lake}/orders --engine spark --inventory {lake}/other",
    "scan {lake}/orders --inventory {lake}/inventory",
    "scan {lake}/orders --inventory {lake}/inventory",
    "drift {lake}/inventory --engine spark",
    "forecast {lake}/inventory --engine spark --client delta-spark@2.2.0",
    "check {lake}/inventory --engine spark --client delta-spark@2.2.0",
)
WRITES = (
    "runbook {lake}/up.json",
    "rehearse {lake}/up.json --scratch {lake}/scratch",
    "apply {lake}/up.json --yes --dry-run",
    "apply {lake}/down.json --yes --allow-irreversible",
    "apply {lake}/down.json --yes --allow-irreversible",
    "apply {lake}/down.json --yes --allow-irreversible --undo",
)
WITHOUT = {
    "report": "asks the inventory's files only",
    "status": "asks Spark only where a named table is, as apply does",
}
"""commands that take the option and cannot use a server"""
RUN = re.compile(
    r'"(?:generated_at|seconds|plan_id|seal)": [^,\n]+|\b\d{8}T\d{6}Z-\w{8}\b|\b[0-9a-f]{16}\b'
)
"""what two runs of one command differ by: time, and ids of scans and plans"""
OWN_SPARK = re.compile(r"; deltaproto started this Spark, .*? need no Spark")
CLOCK = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z| UTC)?|\d+(\.\d+)? s\b")


def ways(command: Command) -> set[tuple[str, ...]]:
    """How a command can come to use Spark: by a table's name, by a choice, or by a catalog."""
    found: set[tuple[str, ...]] = {(command.name,)}
    for option in command.options:
        flag = option.flags[0]
        found |= {(command.name, flag, c) for c in allowed_values(option) if c in ("spark", "all")}
        if flag == "--catalog":
            found.add((command.name, flag))
    return found


def used(line: str) -> set[tuple[str, ...]]:
    """The ways that a command line goes."""
    name, *words = line.split()
    pairs = {(name, flag, value) for flag, value in pairwise(words)}
    return {(name,), *pairs, *((name, word) for word in words if word == "--catalog")}


def test_every_way_to_spark_is_tried() -> None:
    commands = [load_command(name) for name in COMMANDS]
    takes = [each for each in commands if SPARK_REMOTE in each.options]
    assert {each.name for each in takes} > set(WITHOUT)
    wanted = set().union(*(ways(each) for each in takes if each.name not in WITHOUT))
    assert wanted - set().union(*map(used, READS + WRITES)) == set()
    # Nobody uses Spark who has no way to say which; certify must use one of this machine.
    source = Path(load_command.__code__.co_filename).parent
    users = [path for path in source.glob("*.py") if "spark_settings(" in path.read_text()]
    mine = {path.stem.replace("_", "-") for path in users} & set(COMMANDS)
    assert mine - {each.name for each in takes} == {"certify"}


class Side(NamedTuple):
    """One of two copies of a lake, and what was answered about it."""

    lake: Path
    answers: dict[str, list[Answer]]


def words(line: str, lake: Path) -> list[str]:
    form = () if line.startswith("runbook") else JSON
    return [*line.format(lake=lake).split(), "--no-progress", *form]


def answered(lake: Path, run: Callable[[list[list[str]]], list[Answer]]) -> Side:
    lines = READS + WRITES
    got: dict[str, list[Answer]] = {}
    for line, answer in zip(lines, run([words(each, lake) for each in lines]), strict=True):
        got.setdefault(line, []).append(answer)
    return Side(lake, got)


def names(lake: Path) -> tuple[str, ...]:
    """What tells a catalog of a lake."""
    return (
        f"create schema connected location '{lake}/warehouse'",
        f"create table {NAME} using delta location '{lake}/orders'",
        "create table connected.logs (id bigint) using parquet",
        f"create view connected.seen as select * from {NAME}",
    )


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same lake twice: for this machine's Spark, and for the server."""
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    for statement in SQL:
        spark.sql(statement.format(t=f"delta.`{here}/orders`"))
    shutil.copytree(here, there, dirs_exist_ok=True)
    return here, there


@pytest.fixture(scope="module")
def here(spark: SparkSession, lakes: tuple[Path, Path]) -> Iterator[Side]:
    """The lake under names of this session, and its answers."""
    for statement in names(lakes[0]):
        spark.sql(statement)
    yield answered(lakes[0], lambda asked: [Answer(*ran(each)) for each in asked])
    spark.sql("drop schema connected cascade")


@pytest.fixture(scope="module")
def there(connect: ConnectServer, lakes: tuple[Path, Path]) -> Iterator[Side]:
    """The lake under the same names of the server, and its answers."""
    connect.sql(*names(lakes[1]))
    yield answered(lakes[1], lambda asked: connect.answers(*asked))
    connect.sql("drop schema connected cascade")


def plain(line: str, text: str, lake: Path) -> str:
    """An answer without what two copies and two runs differ by."""
    bare = RUN.sub("", text.replace(str(lake), "LAKE"))
    # A table's own times are the same in both copies; those of scans and plans are not.
    timed = line.startswith(("scan", "drift", "runbook", "plan")) or "inventory" in line
    return CLOCK.sub("", bare) if timed else bare


@needs_delta("4.0", "a server that asks for a token")
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["", "/;token=another"])
def test_a_wrong_token_is_told(connect: ConnectServer, wrong: str) -> None:
    line = ["inspect", NAME, "--no-progress", *JSON]
    (answer,) = connect.answers(line, remote=connect.address + wrong)
    (entry,) = json.loads(answer.out)["tables"]
    assert (answer.code, entry["error"]["code"]) == (3, "engine-unavailable")
    assert ("rejects the token" if wrong else "requires a token") in entry["error"]["message"]


@pytest.mark.spark
@pytest.mark.slow
def test_the_commands_mean_something(here: Side) -> None:
    codes = {line: answers[-1].code for line, answers in here.answers.items()}
    other = {line: code for line, code in codes.items() if code}
    assert {code for line, code in other.items() if line.startswith("inspect")} == {3}
    assert {code for line, code in other.items() if line.startswith("check")} == {1}
    # The tables are below a folder, so it is not known whether Unity Catalog manages them.
    assert {code for line, code in other.items() if line.startswith("forecast")} == {3}
    assert {line.split()[0] for line in other} == {"inspect", "check", "forecast"}, other


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("line", list(dict.fromkeys(READS)))
def test_the_answer_is_the_same(here: Side, there: Side, line: str) -> None:
    for mine, its in zip(here.answers[line], there.answers[line], strict=True):
        assert its.code == mine.code, its
        # A server has catalogs of its own; only the Spark that was started here has none.
        alike, hints = OWN_SPARK.subn("", mine.out)
        assert hints == (line == "inspect connected.nobody")
        assert plain(line, its.out, there.lake) == plain(line, alike, here.lake)
        assert TOKEN not in its.out + its.err
        assert "Traceback" not in its.err
    if "--output" in line:
        name = line.rsplit("/", 1)[-1]
        plans = [plain(line, (side.lake / name).read_text(), side.lake) for side in (here, there)]
        assert plans[0] == plans[1]


def told(answer: Answer) -> list[Any]:
    """What became of plans, without times, and without what only one kind of session tells."""
    results = json.loads(answer.out)["results"]
    kept = ("status", "exit_code", "version", "protocol", "protocol_after")
    step = ("id", "state", "versions", "operations", "attempts", "message", "remarks", "delta_rs")
    return [
        (
            [each[key] for key in kept],
            # A server's files are not counted.
            each["message"].partition(";")[0],
            [[made[key] for key in step] for made in each["steps"]],
            [(gate["name"], gate["passed"]) for gate in each["gates"]],
        )
        for each in results
    ]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("line", list(dict.fromkeys(WRITES)))
def test_what_is_done_is_the_same(here: Side, there: Side, line: str) -> None:
    for mine, its in zip(here.answers[line], there.answers[line], strict=True):
        assert its.code == mine.code == 0, its
        assert TOKEN not in its.out + its.err
        assert "Traceback" not in its.err
        if line.startswith("runbook"):
            assert plain(line, its.out, there.lake) == plain(line, mine.out, here.lake)
        else:
            assert told(its) == told(mine)


@pytest.mark.spark
@pytest.mark.slow
def test_the_commits_are_the_same(here: Side, there: Side) -> None:
    def made(side: Side) -> list[Any]:
        found = []
        for commit in sorted((side.lake / "orders" / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in commit.read_text().splitlines()]
            infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
            protocols = [action["protocol"] for action in actions if "protocol" in action]
            found.append((infos[0]["operation"], "userMetadata" in infos[0], protocols))
        return found

    assert made(here) == made(there)
    assert sum(marked for _, marked, _ in made(there)) >= 3
    journals = (path.read_text() for path in (there.lake / ".deltaproto").glob("*.jsonl"))
    assert not any(TOKEN in journal for journal in journals)


@pytest.mark.spark
@pytest.mark.slow
def test_a_dead_server_is_told_in_time(there: Side, connect: ConnectServer, tmp_path: Path) -> None:
    lake = there.lake
    dead = f"sc://localhost:9/;token={TOKEN}"
    # A plan that is made anew is written over the old one; a scan of folders asks no Spark.
    lines = [
        line
        for line in dict.fromkeys(READS + WRITES)
        if "--output" not in line and line != "scan {lake}/orders --inventory {lake}/inventory"
    ]
    asked = [line.replace("{lake}/inv", f"{tmp_path}/inv") for line in lines]
    shutil.copytree(lake / "inventory", tmp_path / "inventory")
    began = time.monotonic()
    answers = connect.answers(*(words(line, lake) for line in asked), remote=dead)
    assert time.monotonic() - began < 20 * len(lines)
    assert not any(TOKEN in each.out + each.err for each in answers)
    assert not any("Traceback" in each.err for each in answers)
    said = "no Spark Connect server responds at sc://localhost:9"
    # A runbook is written without the log, too; its exit code says that a gate was not evaluated.
    wrong = [
        (line, answer)
        for line, answer in zip(lines, answers, strict=True)
        if said not in answer.out + answer.err or answer.code != 3
    ]
    assert wrong == []


def test_commands_that_need_no_server(cli: Callable[..., Ran], tmp_path: Path) -> None:
    dead = ("--spark-remote", "sc://localhost:9")
    lake = Log(tmp_path / "lake" / "t").commit(0, protocol(1, 2), metadata()).table
    inventory = str(tmp_path / "inventory")
    assert cli("scan", str(Path(lake).parent), "--inventory", inventory, *dead).code == 0
    assert cli("report", inventory, *JSON, *dead).code == 0
