"""Spark starts only for plans that pass every gate which is decided without it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.errors import EngineError
from deltaproto.execution import prepare
from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.prepare import ApplyContext, predict_gates
from deltaproto.execution.runner import StatementRunner
from deltaproto.protocol.table_state import SparkSettings
from tests.conftest import Ran
from tests.support.contract import validate
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
CLOSED = "tables: {'**': {maintenance_windows: []}}"
CLIENT = "clients: [{client: deltalake/engine@1.6.6, access: [read]}]"


@pytest.fixture(autouse=True)
def starts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The settings of every session that a real run would start."""
    found: list[object] = []

    def started(settings: object) -> StatementRunner:
        found.append(settings)
        raise EngineError("Spark was started")

    monkeypatch.setattr(StatementRunner, "started", started)
    return found


@pytest.fixture
def table(log: Log) -> Log:
    return log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())


def plan(cli: Cli, table: Log, *words: str, name: str = "plan") -> str:
    folder = Path(table.table).parent / "plans"
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.json"
    command = "plan-upgrade" if "--enable" in words else "plan-downgrade"
    ran = cli(command, table.table, *words, "--format", "json", "--output", str(file))
    assert ran.code in (0, 1), ran.err
    return str(file)


def policy(table: Log, *lines: str) -> str:
    file = Path(table.table).parent / "policy.yaml"
    file.write_text("\n".join(["policy_version: 1", *lines]) + "\n")
    return str(file)


def changed_since(table: Log) -> None:
    table.commit(1, commit_info("SET TBLPROPERTIES"), metadata({"delta.appendOnly": "true"}))


def failing(ran: Ran) -> list[list[str]]:
    validate("apply", ran.json)
    return [
        [gate["name"] for gate in result["gates"] if not gate["passed"]]
        for result in ran.json["results"]
    ]


@pytest.mark.parametrize("command", [("apply", "--yes"), ("apply", "--dry-run"), ("rehearse",)])
def test_a_plan_that_passes_the_cheap_gates_starts_spark(
    cli: Cli, table: Log, starts: list[object], command: tuple[str, ...]
) -> None:
    file = plan(cli, table, "--enable", "deletionVectors")
    assert cli(*command, file).code == 3
    assert len(starts) == 1


@pytest.mark.parametrize("words", [("--yes",), ("--dry-run",), ()], ids=["yes", "dry-run", "asks"])
@pytest.mark.parametrize(
    ("drop", "lines", "stale", "failed", "code"),
    [
        (False, (), True, ["fingerprint"], 4),
        (False, (CLOSED,), False, ["window"], 4),
        (False, (CLIENT,), False, ["policy"], 1),
        (True, (), False, ["irreversible"], 2),
        (True, (CLOSED,), True, ["fingerprint", "window", "irreversible"], 4),
        (False, (CLOSED, CLIENT), False, ["policy", "window"], 4),
    ],
    ids=["stale", "window", "policy", "irreversible", "three", "two"],
)
def test_cheap_gates_decide_together_before_spark_starts(
    cli: Cli,
    log: Log,
    drop: bool,
    lines: tuple[str, ...],
    stale: bool,
    failed: list[str],
    code: int,
    words: tuple[str, ...],
    starts: list[object],
) -> None:
    vectors = ["deletionVectors"]
    versions = protocol(3, 7, vectors, vectors) if drop else protocol(1, 2)
    log.commit(0, commit_info("CREATE TABLE"), versions, metadata())
    goal = ("--drop", *vectors, "--history", "truncate") if drop else ("--enable", "typeWidening")
    file = plan(cli, log, *goal)
    if stale:
        changed_since(log)
    judging = ("--policy", policy(log, *lines)) if lines else ()
    ran = cli("apply", file, *words, *judging, "--format", "json")
    assert (failing(ran), ran.code) == ([failed], code)
    (result,) = ran.json["results"]
    names = [gate["name"] for gate in result["gates"]]
    assert "engine" not in names
    assert not starts
    assert all(name in result["message"] for name in failed) or len(failed) == 1


def test_the_gates_are_those_that_a_runbook_shows(cli: Cli, table: Log) -> None:
    """What is decided before Spark starts does not depend on whether there is one."""
    file = plan(cli, table, "--enable", "typeWidening")
    changed_since(table)
    ran = cli("apply", file, "--yes", "--format", "json")
    (planned,) = (each for each in read_plans(file) if isinstance(each, LoadedPlan))
    context = ApplyContext({}, SparkSettings(), folder=lambda path: f"{path}.d")
    found = predict_gates(planned, context, time.time())
    (result,) = ran.json["results"]
    shown = [(each.name, each.passed, each.message) for each in found]
    assert [(each["name"], each["passed"], each["message"]) for each in result["gates"]] == shown


def test_a_folder_of_stale_plans_starts_no_spark(
    cli: Cli, table: Log, starts: list[object]
) -> None:
    plan(cli, table, "--enable", "typeWidening", name="one")
    folder = Path(plan(cli, table, "--enable", "rowTracking", name="two")).parent
    changed_since(table)
    for words in ((), ("--parallel", "2")):
        ran = cli("apply", str(folder), "--yes", *words, "--format", "json")
        assert (failing(ran), ran.code) == ([["fingerprint"]] * 2, 4)
    assert not starts


def test_rehearse_refuses_a_stale_plan_without_spark(
    cli: Cli, table: Log, starts: list[object]
) -> None:
    file = plan(cli, table, "--enable", "typeWidening")
    changed_since(table)
    ran = cli("rehearse", file, "--format", "json")
    assert (failing(ran), ran.code) == ([["fingerprint"]], 4)
    assert not starts


def test_rehearse_with_nothing_to_do_starts_no_spark(
    cli: Cli, table: Log, starts: list[object]
) -> None:
    ran = cli("rehearse", plan(cli, table, "--lowest"), "--format", "json")
    assert ran.code == 0
    assert ran.json["results"][0]["status"] == "nothing-to-do"
    assert not starts


@pytest.mark.parametrize(
    ("words", "stale", "read"),
    [
        (("--lowest",), False, 1),
        (("--lowest",), True, 0),
        (("--lowest", "--include-enabled"), False, 0),
        (("--drop", "columnMapping"), False, 0),
    ],
)
def test_files_are_read_only_for_goals_that_depend_on_them(
    words: tuple[str, ...],
    stale: bool,
    read: int,
    cli: Cli,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a table uses costs a reading of all its files, and a stale plan is refused anyway."""
    log.commit(0, commit_info("CREATE TABLE"), protocol(2, 5), metadata())
    file = plan(cli, log, *words)
    if stale:
        changed_since(log)
    used: list[object] = []
    reading = prepare._read_use
    monkeypatch.setattr(prepare, "_read_use", lambda *given: used.append(given) or reading(*given))
    ran = cli("apply", file, "--yes", "--allow-irreversible", "--format", "json")
    assert failing(ran) == [["fingerprint" if stale else "engine"]]
    assert len(used) == read
