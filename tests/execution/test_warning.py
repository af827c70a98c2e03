"""What is told before anything is committed, and the gates that need no table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from deltaproto.errors import ExitCode
from deltaproto.execution.preflight import (
    engine_gate,
    irreversible_gate,
    plan_gate,
    policy_gate,
    window_gate,
)
from deltaproto.execution.runner import EngineFacts
from deltaproto.execution.warning import ApplyWarning, MaintenanceWindowStatus, build_warning
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.plan import Plan
from deltaproto.planning.policy_impact import PolicyImpact
from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.model import Window
from deltaproto.policy.finding import Finding, Severity
from tests.planning.test_classics import carrying, given

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
TABLE = given(
    carrying("deletionVectors"), {"delta.enableDeletionVectors": "true"}, vectors=True, traced=None
)
PLAN = plan_downgrade(TABLE, DowngradeRequest(drop=("deletionVectors",)))
TRUNCATING = plan_downgrade(TABLE, DowngradeRequest(lowest=True, include_enabled=True))
SPARK = EngineFacts(EngineName.DELTA_SPARK, "4.4.0", "4.2.0", True, {})


def told(plan: Plan = PLAN, **conf: str) -> ApplyWarning:
    return build_warning(plan, plan.steps, None, SPARK._replace(conf=conf), None, NOW)


def on(location: str) -> Plan:
    return PLAN._replace(location=location)


class TestWarning:
    def test_it_names_who_fails_with_what_on_each_engine(self) -> None:
        hits = told().hits
        found = {(hit.engine, name) for hit in hits for name in hit.exceptions if hit.steps}
        assert {
            ("delta-spark", "MetadataChangedException"),
            ("delta-spark", "ProtocolChangedException"),
            ("databricks", "ProtocolChangedException"),
            ("delta-rs", "CommitFailedError"),
        } <= found
        assert [hit.loser for hit in hits] == sorted((h.loser for h in hits), reverse=True)

    def test_streams_that_just_go_on_are_left_out(self) -> None:
        assert told().streams
        assert all(stream.effect.value != "continues" for _, stream in told().streams)

    @pytest.mark.parametrize("scheme", ["s3", "s3a"])
    def test_s3_needs_a_log_store_that_coordinates(self, scheme: str) -> None:
        plan = on(f"{scheme}://bucket/orders")
        assert any("commits can be lost" in note for note in told(plan).notes)
        store = {f"spark.delta.logStore.{scheme}.impl": "io.delta.storage.S3DynamoDBLogStore"}
        assert not any("commits can be lost" in note for note in told(plan, **store).notes)

    def test_other_places_and_databricks_do_not(self) -> None:
        assert not any("commits can be lost" in note for note in told(on("abfss://c@a/t")).notes)
        facts = SPARK._replace(name=EngineName.DATABRICKS)
        found = build_warning(on("s3://b/t"), PLAN.steps, None, facts, None, NOW)
        assert not any("commits can be lost" in note for note in found.notes)

    def test_what_brings_a_dropped_feature_back(self) -> None:
        key = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
        assert any(f"{key} is true" in note for note in told(**{key: "true"}).sources)
        assert not any(f"{key} is true" in note for note in told(**{key: "false"}).sources)

    def test_restore_is_no_way_back(self) -> None:
        assert any("RESTORE" in note for note in told(TRUNCATING).notes)

    def test_without_steps_there_is_nothing_to_warn_of(self) -> None:
        found = build_warning(PLAN, (), None, None, None, NOW)
        assert (found.hits, found.streams, found.sources, found.notes) == ((), (), (), ())

    def test_windows(self) -> None:
        sunday = Window((6,), 11 * 60, 13 * 60, "UTC", Position(1, 1))
        open_ = build_warning(PLAN, PLAN.steps, None, SPARK, (sunday,), NOW).window
        assert open_ is not None
        assert open_.open
        monday = sunday._replace(days=(0,))
        closed = build_warning(PLAN, PLAN.steps, None, SPARK, (monday,), NOW).window
        assert closed == MaintenanceWindowStatus(False, datetime(2026, 11, 23, 11, tzinfo=UTC))


class TestGates:
    def test_a_plan_that_saw_only_a_part_is_refused(self) -> None:
        gate = plan_gate(PLAN._replace(complete=False))
        assert (gate.passed, gate.code) == (False, ExitCode.UNREADABLE)

    def test_a_copy_into_a_new_table_is_made_by_hand(self) -> None:
        from deltaproto.planning.statement import Action

        steps = tuple(step._replace(action=Action.REWRITE) for step in PLAN.steps)
        gate = plan_gate(PLAN._replace(steps=steps))
        assert (gate.passed, gate.code) == (False, ExitCode.USAGE)
        assert plan_gate(PLAN).passed

    @pytest.mark.parametrize(
        ("facts", "passed", "said"),
        [
            (SPARK, True, "4.4.0"),
            (SPARK._replace(version="4.4.7"), True, "4.4.7"),
            (SPARK._replace(version="4.3.0"), False, "may behave differently"),
            (SPARK._replace(version=None), True, "does not report its Delta version"),
            (SPARK._replace(delta=False), False, "SQL extension"),
            (SPARK._replace(name=EngineName.DATABRICKS, version="16.4"), False, "databricks@16.4"),
        ],
    )
    def test_the_engine_is_the_one_that_was_predicted(
        self, facts: EngineFacts, passed: bool, said: str
    ) -> None:
        gate = engine_gate(Engine(), facts)
        assert gate.passed is passed
        assert said in gate.message

    def test_the_irreversible_needs_a_word(self) -> None:
        assert irreversible_gate(PLAN.steps, False).passed
        assert irreversible_gate(TRUNCATING.steps, True).passed
        gate = irreversible_gate(TRUNCATING.steps, False)
        assert (gate.passed, gate.code) == (False, ExitCode.USAGE)
        assert "history is deleted" in gate.message

    def test_a_closed_window(self) -> None:
        shut = MaintenanceWindowStatus(False, datetime(2026, 11, 23, 11, tzinfo=UTC))
        assert not window_gate(shut, outside=False).passed
        assert "2026-11-23 11:00 UTC" in window_gate(shut, outside=False).message
        assert window_gate(shut, outside=True).passed
        assert window_gate(MaintenanceWindowStatus(True, None), outside=False).passed

    def test_the_policy(self) -> None:
        finding = Finding("DP205", Severity.ERROR, "typeWidening is forbidden", "drop it", "t")
        assert policy_gate(PolicyImpact((), (), (), 3)).passed
        gate = policy_gate(
            PolicyImpact((), (), (finding, finding._replace(message="so is that")), 0)
        )
        assert (gate.passed, gate.code) == (False, ExitCode.FINDINGS)
        assert "typeWidening is forbidden; so is that" in gate.message
