"""Tables with every kind of damage in one batch: each has its own result, and nothing hangs."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from deltaproto.errors import TableError
from deltaproto.fleet.read_inventory import facts_from_row
from deltaproto.fleet.scan_history import PastScan
from deltaproto.inspection import inspect as inspecting
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.planning.request import PlanInput
from tests.conftest import Ran
from tests.support.contract import validate
from tests.support.failures import collect_failures
from tests.support.hostile import KINDS, make_hostile
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
# Damage that takes nothing from the answer: what is damaged is not needed, or says nothing of it.
ANSWERED = {
    "healthy",
    "commit-empty",
    "commit-blank",
    "commit-nan",
    "commit-surrogate",
    "commit-info-odd",
    "commit-info-late",
    "commit-txn-odd",
    "commit-controls",
    "features-many",
    "features-controls",
    "version-negative",
    "version-zero",
    "schema-text",
    "schema-deep",
    "schema-deep-whole",
    "schema-deep-structs",
    "schema-fields-odd",
    "configuration-nested",
    "configuration-large",
    "domain-deep",
    "domain-odd",
    "domain-number",
    "parts-announced",
    "checksum-cut",
    "checksum-list",
    "checksum-odd-domains",
    "checksum-odd-files",
    "checksum-odd-protocol",
    "checksum-odd-transaction",
    "checkpoint-random",
    "checkpoint-magic",
    "checkpoint-json-sidecar",
    "folder-as-checksum",
    "folder-as-checkpoint",
    "zero-as-checksum",
    "zero-as-checkpoint",
    "pipe-as-checksum",
    "pipe-as-checkpoint",
    "sparse-checksum",
    "sparse-checkpoint",
    "sparse-json-checkpoint",
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The path of each kind of damage."""
    made = make_hostile(tmp_path_factory.mktemp("hostile"))
    return dict(zip(KINDS, made, strict=True))


def by_kind(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {Path(entry["table"]).name: entry for entry in entries}


def no_defects(entries: Mapping[str, Mapping[str, Any]]) -> None:
    with_error = {kind: entry["error"] for kind, entry in entries.items() if entry.get("error")}
    assert {k: e for k, e in with_error.items() if e["code"] == "internal"} == {}
    assert all(len(error["message"]) < 1000 for error in with_error.values())


def test_inspect_has_a_result_for_each(cli: Cli, hostile: dict[str, str]) -> None:
    ran = cli("inspect", *hostile.values(), "--format", "json")
    validate("inspect", ran.json)
    found = by_kind(ran.json["tables"])
    assert list(found) == list(hostile)
    no_defects(found)
    answered = {kind for kind, entry in found.items() if "error" not in entry}
    assert answered == ANSWERED & hostile.keys()
    assert ran.code == 3
    short = {kind: entry for kind, entry in found.items() if kind not in LARGE}
    assert {k: len(json.dumps(e)) for k, e in short.items() if len(json.dumps(e)) > 20_000} == {}


LARGE = {"features-many", "configuration-large", "schema-deep"}


def test_check_has_a_result_for_each(cli: Cli, hostile: dict[str, str]) -> None:
    ran = cli("check", *hostile.values(), "--client", "trino@476", "--format", "json")
    validate("check", ran.json)
    assert ran.code == 3
    unreadable = by_kind(ran.json["errors"] if "errors" in ran.json else ran.json["unreadable"])
    no_defects(unreadable)
    assert unreadable.keys() == hostile.keys() - ANSWERED


@pytest.mark.parametrize("parallel", ["1", "2"])
def test_a_scan_has_a_row_for_each(cli: Cli, hostile: dict[str, str], parallel: str) -> None:
    root = str(Path(hostile["healthy"]).parent)
    ran = cli("scan", root, "--format", "json", "--parallel", parallel, "--timeout", "60")
    assert ran.code == 3
    assert ran.json["tables"] + ran.json["errors"] == len(hostile)


@pytest.mark.parametrize("format_", ["text", "markdown", "html"])
def test_what_people_read_stays_bounded(format_: str, cli: Cli, log: Log) -> None:
    """The rest is counted, and JSON has all of it."""
    names = [f"strange-{number:04d}" for number in range(3000)]
    log.commit(0, commit_info(), protocol(3, 7, names, names), metadata())
    shown = cli("inspect", log.table, "--format", format_).out
    assert len(shown) < 300_000
    assert "and 2,800 more features; --format json has all of them" in shown
    assert "more findings of this table" in shown
    (table,) = cli("inspect", log.table, "--format", "json").json["tables"]
    assert len(table["features"]) == len(names)
    checked = cli("check", log.table, "--client", "trino@476", "--format", "text")
    assert checked.code == 1
    assert len(checked.out) < 200_000
    assert "1 error" in checked.out
    verdicts = cli("check", log.table, "--client", "trino@476", "--format", "json").json["verdicts"]
    assert "and 2960 more, an unknown feature" in verdicts[0]["reason"]
    assert len(verdicts[0]["because"]) == len(names)


def test_history_ends_for_each(cli: Cli, hostile: dict[str, str]) -> None:
    with collect_failures() as failures:
        for kind, table in hostile.items():
            with failures.of(kind):
                ran = cli("history", table, "--format", "json")
                assert ran.code in (0, 3)
                assert "internal error" not in ran.out + ran.err
                assert len(ran.out) < 3_000_000


def test_a_plan_or_an_error_for_each(cli: Cli, hostile: dict[str, str]) -> None:
    ran = cli("plan-downgrade", *hostile.values(), "--lowest", "--format", "jsonl")
    plans = [json.loads(line) for line in ran.out.splitlines()]
    found = by_kind([plan.get("plan", plan) for plan in plans])
    assert found.keys() == hostile.keys()
    no_defects(found)
    assert ran.code == 3


@pytest.mark.parametrize(
    "raised", [MemoryError(), RecursionError("too deep"), KeyError("x" * 9999)]
)
def test_a_defect_on_one_table_is_the_error_of_that_table(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception
) -> None:
    names = [str(tmp_path / name) for name in ("before", "odd", "after")]
    for name in names:
        Log(Path(name)).commit(0, protocol(1, 2), metadata())
    judged = inspecting.run_rules

    def fails(state: Any, *more: Any) -> Any:
        if state.table.endswith("odd"):
            raise raised
        return judged(state, *more)

    monkeypatch.setattr(inspecting, "run_rules", fails)
    for command, more in (("inspect", ()), ("check", ("--client", "trino@476"))):
        ran = cli(command, *names, *more, "--format", "json")
        assert ran.code == 3
        assert f"internal error, {type(raised).__name__}" in ran.out
        assert ran.out.count('"internal"') == 1
        assert len(ran.out) < 100_000
        validate(command, ran.json)
    monkeypatch.setattr("deltaproto.plan_inputs.from_log.run_rules", fails)
    ran = cli("plan-downgrade", *names, "--lowest", "--format", "jsonl")
    assert [name in ran.out for name in names] == [True] * 3
    assert ran.code == 3
    assert ran.out.count('"internal"') == 1


def test_a_planner_that_fails_on_one_table_plans_the_others(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [str(tmp_path / name) for name in ("before", "odd", "after")]
    for name in names:
        Log(Path(name)).commit(0, protocol(1, 2), metadata())
    on = ClientScope.with_clients

    def fails(users: ClientScope, given: PlanInput) -> PlanInput:
        if given.name.endswith("odd"):
            raise RecursionError
        return on(users, given)

    monkeypatch.setattr(ClientScope, "with_clients", fails)
    ran = cli("plan-downgrade", *names, "--lowest", "--format", "jsonl")
    assert ran.out.count('"internal"') == 1
    assert ran.out.count('"plan_id"') == 2
    assert ran.code == 3


@pytest.mark.parametrize(("hours", "warned"), [(72, True), (1e9, True), (0.01, False), (-1, False)])
def test_a_commit_from_the_future_is_planned_with_a_warning(
    cli: Cli, log: Log, hours: float, warned: bool
) -> None:
    stamp = int((time.time() + hours * 3600) * 1000)
    log.commit(
        0, commit_info(inCommitTimestamp=stamp), protocol(1, 7, None, ["appendOnly"]), metadata()
    )
    plan = cli("plan-downgrade", log.table, "--lowest", "--format", "json").json
    about = [each for each in plan["warnings"] if "in-commit timestamp of version 0" in each]
    assert bool(about) is warned
    if hours == 72:
        assert "72.0 hours ahead of this machine's clock" in about[0]


def test_a_log_file_from_the_future_makes_a_drop_wait_longer(cli: Cli, log: Log) -> None:
    features, now = ["deletionVectors"], time.time()
    settings = {"delta.enableDeletionVectors": "true"}
    log.commit(0, protocol(3, 7, features, features), metadata(settings))
    os.utime(log.path(0, ".json"), (now + 72 * 3600,) * 2)
    goal = ("--drop", *features, "--history", "truncate")
    plan = cli("plan-downgrade", log.table, *goal, "--format", "json").json
    (wait,) = (step for step in plan["steps"] if step["action"] == "wait")
    assert wait["wait"]["hours"] == pytest.approx(96, abs=0.1)
    until = datetime.fromisoformat(wait["not_before"]).timestamp()
    assert until == pytest.approx(now + 96 * 3600, abs=360)
    assert any("72.0 hours ahead of this machine's clock" in text for text in plan["warnings"])


def test_a_saved_version_below_zero_is_refused(cli: Cli, log: Log, tmp_path: Path) -> None:
    log.commit(0, protocol(1, 2), metadata())
    saved = cli("inspect", log.table, "--format", "json").out
    file = tmp_path / "saved.json"
    file.write_text(saved.replace('"version": 0,', '"version": -5,'))
    for words in (("check", "--client", "trino@476"), ("plan-downgrade", "--lowest")):
        ran = cli(words[0], str(file), *words[1:])
        assert ran.code in (2, 3)
        assert "-5 is not a table version" in ran.out + ran.err


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("version", -5, "the inventory has -5 as the table's version"),
        ("version", None, "the inventory has null as the table's version"),
        ("min_reader_version", None, "the inventory has null as the table's min reader version"),
        ("min_writer_version", "7", "the inventory has 7 as the table's min writer version"),
    ],
)
def test_an_inventory_row_with_an_impossible_version_is_an_error(
    column: str, value: Any, message: str
) -> None:
    row = {"table": "t", "location": "file:///t", "features": (), "findings": ()}
    numbers = {"version": 1, "min_reader_version": 1, "min_writer_version": 2}
    with pytest.raises(TableError, match=re.escape(message)):
        facts_from_row({**row, **numbers, column: value})


@pytest.mark.parametrize("column", ["started_at", "ended_at", "tables", "errors"])
def test_a_scan_with_a_missing_value_is_damaged(column: str) -> None:
    now = datetime(2026, 11, 24, tzinfo=UTC)
    row = {
        **{"scan_id": "s", "started_at": now, "ended_at": now, "tables": 1, "errors": 0},
        **dict.fromkeys(("roots", "included", "excluded", "findings", "complete")),
    }
    assert PastScan.of(row).scan_id == "s"
    with pytest.raises(TableError, match=f"the inventory has null as {column} of scan s"):
        PastScan.of({**row, column: None})


DIGITS = "9" * 5000
LONG_NUMBERS = {
    "decimal": ({}, f"decimal({DIGITS},2)"),
    "scale": ({}, f"decimal(10,{DIGITS})"),
    "varchar": ({}, f"varchar({DIGITS})"),
    **{
        f"{key} {name}": ({key: value}, "long")
        for key in (
            "delta.columnMapping.maxColumnId",
            "delta.dataSkippingNumIndexedCols",
            "delta.checkpointInterval",
            "delta.requireCheckpointProtectionBeforeVersion",
            "delta.inCommitTimestampEnablementVersion",
        )
        for name, value in (("long", DIGITS), ("signs", "--5"), ("negative", f"-{DIGITS}"))
    },
}


@pytest.mark.parametrize("kind", LONG_NUMBERS)
def test_a_number_may_be_longer_than_python_converts(cli: Cli, log: Log, kind: str) -> None:
    configuration, type_ = LONG_NUMBERS[kind]
    mapped = {"delta.columnMapping.mode": "name", **configuration}
    schema = schema_string(column("id"), column("d", type_))
    log.commit(0, commit_info(), protocol(2, 5), metadata(mapped, schema))
    change = "alter table t alter column d type decimal(12,3)"
    for words in (
        ("inspect", log.table),
        ("check", log.table, "--client", "daft@0.7.26"),
        ("plan-downgrade", log.table, "--lowest", "--include-enabled"),
        ("plan-upgrade", log.table, "--set", f"delta.minReaderVersion={DIGITS}"),
        ("plan-upgrade", log.table, "--sql", change),
        ("plan-upgrade", log.table, "--sql", change.replace("12", DIGITS)),
        ("plan-upgrade", log.table, "--enable", "typeWidening"),
    ):
        ran = cli(*words)
        assert "internal error" not in ran.out + ran.err, words
        assert ran.code in (0, 1), words


def test_versions_may_be_longer_than_python_converts(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(), protocol(2, 5), metadata())
    for command, pair in (("plan-downgrade", f"1,{DIGITS}"), ("plan-upgrade", f"{DIGITS},7")):
        ran = cli(command, log.table, "--protocol", pair)
        assert (ran.code, "is not a pair of versions" in ran.err) == (2, True)


def test_deletion_vectors_without_their_feature(cli: Cli, log: Log) -> None:
    """delta-rs returns the deleted rows of such a table, Delta Spark 4.4.0 does not."""
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    log.commit(0, commit_info(), protocol(1, 2), metadata(), add("a", deletionVector=vector))
    inspected = cli("inspect", log.table, "--look-in-files", "--format", "json")
    (finding,) = inspected.json["tables"][0]["findings"]
    assert (finding["rule"], finding["feature"]) == ("DP103", "deletionVectors")
    assert "return deleted rows" in finding["message"]
    planned = cli("plan-upgrade", log.table, "--enable", "appendOnly", "--set", "a=b")
    assert "data files have deletion vectors" in planned.out
