"""A table as an object, and plans: the same answers as the functions and the commands."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pytest

import deltaproto
from deltaproto import EventKind, Plan, Table, TableError, UsageError
from deltaproto.app.executing import _Events
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.result import StepRecord, StepStatus
from deltaproto.redaction import Redactor
from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]


@pytest.fixture
def table(log: Log) -> str:
    features = ["appendOnly", "deletionVectors", "invariants"]
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(1, commit_info(timestamp=1_790_000_000_000), protocol(3, 7, features[1:2], features))
    return log.commit(2, commit_info(), add("a")).table


class TestSources:
    def test_a_path_a_uri_and_an_open_table_are_the_same_table(self, table: str) -> None:
        uri = Path(table).as_uri()
        opened = deltalake.DeltaTable(table)
        named = [table, Path(table), uri, opened]
        found = [Table(each).inspect() for each in named]
        assert {each.location for each in found} == {uri}
        assert len({each.protocol for each in found}) == 1
        checks = deltaproto.check(named, clients=["trino@400"])
        assert [len(each.verdicts) for each in checks] == [2] * 4

    def test_an_open_table_brings_its_storage_options(self, table: str) -> None:
        opened = deltalake.DeltaTable(table, storage_options={"timeout": "7s"})
        assert Table(opened)._arguments["storage_options"] == {"timeout": "7s"}
        assert Table(opened, storage_options={"timeout": "8s"})._arguments["storage_options"] == {
            "timeout": "8s"
        }

    @pytest.mark.parametrize("source", [3, None, ["a"]])
    def test_anything_else_is_refused(self, source: Any) -> None:
        with pytest.raises(UsageError, match=f"not a table: {type(source).__name__}"):
            Table(source)

    def test_a_table_is_read_when_it_is_used(self, tmp_path: Path) -> None:
        missing = Table(tmp_path / "later")
        for use in (missing.inspect, missing.history, lambda: missing.check(clients=["trino@480"])):
            with pytest.raises(TableError, match="does not exist") as raised:
                use()
            assert raised.value.code == "not-found"


class TestMethods:
    def test_history(self, cli: Cli, table: str) -> None:
        history = Table(table).history()
        said = cli("history", table, "--format", "json").json
        assert history.to_dict() == {key: said[key] for key in history.to_dict()}
        assert [event.version for event in history.events] == [1, 0]
        assert history.events[0].features_added == ("deletionVectors",)
        assert len(Table(table).history(limit=1).events) == 1
        after = datetime.fromtimestamp(1_790_000_001, UTC)
        assert Table(table).history(since=after).events == ()
        with pytest.raises(UsageError, match="limit 0 is less than 1"):
            Table(table).history(limit=0)

    @pytest.mark.parametrize(
        ("named", "words"),
        [
            ({}, ()),
            ({"sql": "DELETE FROM t WHERE id = 1"}, ("--sql", "DELETE FROM t WHERE id = 1")),
            (
                {"engine": "delta-spark", "operation": "merge", "against": "insert"},
                ("--engine", "delta-spark", "--operation", "merge", "--against", "insert"),
            ),
            ({"engine": "delta-rs@0.25.5"}, ("--engine", "delta-rs@0.25.5")),
            (
                {"row_level_concurrency": "on", "runtime": "14.3", "photon": True},
                ("--row-level-concurrency", "on", "--runtime", "14.3", "--photon", "on"),
            ),
            (
                {"exception": "ConcurrentAppendException", "isolation": "Serializable"},
                ("--exception", "ConcurrentAppendException", "--isolation", "Serializable"),
            ),
        ],
    )
    def test_conflicts(
        self, cli: Cli, table: str, named: dict[str, Any], words: tuple[str, ...]
    ) -> None:
        report = Table(table).conflicts(**named)
        said = cli("conflicts", table, *words, "--format", "json").json
        mine = json.loads(json.dumps(report.to_dict()))
        assert mine == {key: said[key] for key in mine}

    def test_conflicts_of_any_table(self) -> None:
        report = deltaproto.find_conflicts(engine="delta-spark", operation="INSERT")
        assert (report.table, len(report.cells)) == (None, 10)

    @pytest.mark.parametrize(
        ("named", "message"),
        [
            ({"engine": "hive"}, 'engine: unknown engine "hive"'),
            ({"operation": "look"}, 'operation: unknown operation "look"'),
            ({"isolation": "None"}, "isolation: a table cannot declare None"),
            ({"runtime": "x"}, "runtime: x is not a Databricks Runtime"),
            (
                {"sql": "OPTIMIZE t", "operation": "merge"},
                "sql and operation cannot be used together",
            ),
        ],
    )
    def test_errors_name_the_argument(self, named: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            deltaproto.find_conflicts(**named)

    def test_findings_on_the_policy_are_among_those_of_the_table(
        self, table: str, tmp_path: Path
    ) -> None:
        policy = tmp_path / "policy.yaml"
        policy.write_text(
            "policy_version: 1\nclients:\n- client: trino@480\ntables:\n"
            "  /nowhere/**:\n    forbid_features: [rowTracking]\n"
        )
        checked = Table(table).check(policy)
        assert "DP301" in [each.rule for each in checked.findings]
        assert checked.table == table

    def test_activity_is_read_if_requested(self, table: str) -> None:
        assert Table(table).inspect().activity is None
        assert Table(table).inspect(activity=True).to_dict()["activity"]["writers"]


class TestPlans:
    def test_a_saved_plan_is_loaded_with_its_id(self, cli: Cli, table: str, tmp_path: Path) -> None:
        plan = Table(table).plan_downgrade(drop=["deletionVectors"])
        plan.save(tmp_path / "plan.json")
        loaded = Plan.load(tmp_path / "plan.json")
        assert (loaded.id, loaded.steps) == (plan.id, plan.steps)
        assert (plan.features_removed, plan.features_added) == (
            ("deletionVectors",),
            ("checkpointProtection",),
        )
        (tmp_path / "plan.json").write_text("{}")
        with pytest.raises(UsageError, match="is not a plan"):
            Plan.load(tmp_path / "plan.json")

    def test_sql_is_the_script_of_the_command(self, cli: Cli, table: str) -> None:
        plan = Table(table).plan_upgrade(enable=["changeDataFeed"])
        words = ("plan-upgrade", table, "--enable", "changeDataFeed", "--script", "sql")
        assert plan.to_sql() == cli(*words).out
        assert f"{plan.steps[0].sql};\n" in plan.to_sql()


class TestEvents:
    @pytest.fixture
    def planned(self, table: str) -> LoadedPlan:
        plan = Table(table).plan_upgrade(enable=["changeDataFeed"])
        return LoadedPlan(plan.id, plan, "plan.json", (None,))

    def test_each_event_has_its_step_and_is_logged(
        self, planned: LoadedPlan, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "deltaproto")
        seen: list[deltaproto.ApplyEvent] = []
        events = _Events(seen.append, Redactor({"password": planned.plan.table}))
        (step,) = planned.plan.steps
        events.began(planned, step)
        events.progress(planned, step, 1, 2)
        events.retries(planned, step, "version 3", 2.0)
        events.waits(planned, step, 0.0)
        events.finished(planned, StepRecord(step.id, StepStatus.DONE))
        events.halts()
        assert [each.kind for each in seen] == [*EventKind]
        assert [each.step for each in seen] == [step] * 5 + [None]
        assert (seen[1].done, seen[1].known) == (1, 2)
        assert seen[4].record is not None
        assert [each.getMessage() for each in caplog.records] == [each.message for each in seen]
        assert planned.plan.table not in caplog.text

    def test_an_exception_in_it_does_not_stop_the_plan(
        self, planned: LoadedPlan, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fails(_: object) -> None:
            raise ValueError("mine")

        _Events(fails, Redactor()).halts()
        assert "on_event failed; the plan continues" in caplog.text


def test_threads_share_nothing(table: str) -> None:
    alone = Table(table).inspect()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: Table(table).inspect(), range(200)))
    assert all(each.to_dict() == alone.to_dict() for each in found)
