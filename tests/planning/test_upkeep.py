"""RESTORE and VACUUM: which versions there are, and which retention counts."""

from __future__ import annotations

from pathlib import Path

from deltaproto.plan_inputs.cache import CachingPlanner
from deltaproto.plan_inputs.client_scope import ClientScope, PolicyCheckedPlan
from deltaproto.plan_inputs.from_log import load_plan_input, with_restored_versions
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.restore import (
    FILES_MAY_BE_MISSING,
    HISTORY_MAY_BE_MISSING,
    VECTORS_MAY_BE_REFUSED,
)
from deltaproto.planning.engine import Engine, parse_engine
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput, UpgradeRequest
from deltaproto.planning.search.cost import Files
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.test_search import planned_for
from tests.support.failures import each_row
from tests.support.logs import Log, commit_info, metadata, protocol

TABLE = Table(Protocol(1, 2))


@each_row(
    ("sql", "error"),
    [
        ("restore table t to version as of 4", "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        ("restore table t to version as of 3", None),
        ("alter table t set tblproperties ('k' = 'v'); restore t to version as of 4", None),
        ("alter table t set tblproperties ('k' = 'v'); restore t to version as of 5", ...),
        ("optimize t; restore t to version as of 4", None),
        ("restore table t to timestamp as of 'yesterday'", "DELTA_TIMESTAMP_INVALID"),
        ("restore table t to timestamp as of '2026-01-01 10:00'", None),
    ],
)
def test_a_version_that_does_not_exist_is_refused(sql: str, error: object) -> None:
    given = planned_for(TABLE)
    given = given._replace(fingerprint=given.fingerprint._replace(version=3))
    plan = plan_upgrade(given, UpgradeRequest(statements=tuple(parse_script(sql))))
    if error is None:
        assert not plan.blocked
    else:
        (blocked,) = plan.blocked
        assert error in (blocked.error, ...)


def test_the_newest_version_is_there_already() -> None:
    given = planned_for(TABLE)
    given = given._replace(fingerprint=given.fingerprint._replace(version=3))
    asked = UpgradeRequest(statements=tuple(parse_script("restore t to version as of 3")))
    assert not plan_upgrade(given, asked).steps


def test_an_older_version_may_be_gone() -> None:
    (each,) = parse_script("restore t to version as of 2")
    said = each.statement.outcome(TABLE._replace(version=3), Engine())
    assert HISTORY_MAY_BE_MISSING in said.warnings
    assert said.fewest == 0


def test_only_versions_that_the_log_still_has_are_known(tmp_path: Path) -> None:
    log = Log(tmp_path)
    name = "vacuumProtocolCheck"
    listed = protocol(3, 7, [name], [name])
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(1, commit_info(), listed, metadata({"team": "a"}))
    log.commit(2, commit_info(), protocol(1, 2), metadata())
    log.checkpoint(1, listed, metadata({"team": "a"}))
    log.path(0, ".json").unlink()
    sql = "restore t to version as of 0; restore t to version as of 1; restore t to version as of 9"
    given = load_plan_input(str(tmp_path), {}, SparkSettings(), 0.0)
    known = with_restored_versions(given, parse_script(sql), {}, SparkSettings())
    assert {*known.table.earlier} == {1}
    asked = UpgradeRequest(statements=tuple(parse_script("restore t to version as of 1")))
    assert plan_upgrade(given, asked).protocol_after == Protocol(1, 2)
    plan = plan_upgrade(known, asked)
    assert plan.protocol_after.supported == Protocol(1, 2).supported | {name}


def test_deletion_vectors_may_prevent_restoring_a_version() -> None:
    """Files that the table still has are not added again."""
    listed = Table(Protocol.carrying({"deletionVectors"}), vectors=True, version=3)
    (each,) = parse_script("restore t to version as of 2")
    for past, now, engine, refused, warned in (
        (True, False, Engine(), True, False),
        (True, False, parse_engine("databricks@16.4"), False, True),
        (True, True, Engine(), False, True),
        (None, False, Engine(), False, True),
        (False, False, Engine(), False, False),
    ):
        table = listed._replace(vectors=now).with_earlier({2: listed._replace(vectors=past)})
        said = each.statement.outcome(table, engine)
        assert (said.refusal is not None) is refused
        assert (VECTORS_MAY_BE_REFUSED in said.warnings) is warned


def test_a_script_can_restore_the_version_before_it() -> None:
    given = planned_for(TABLE)
    given = given._replace(fingerprint=given.fingerprint._replace(version=3))
    sql = """
        alter table t set tblproperties ('delta.enableRowTracking' = 'true');
        alter table t drop feature rowTracking;
        alter table t set tblproperties ('team' = 'a');
        restore t to version as of 3
    """
    plan = plan_upgrade(given, UpgradeRequest(statements=tuple(parse_script(sql))))
    assert not plan.blocked
    assert any(FILES_MAY_BE_MISSING in warning for warning in plan.warnings)


def test_tables_of_different_versions_are_not_planned_alike() -> None:
    asked = UpgradeRequest(statements=tuple(parse_script("restore t to version as of 4")))
    plans = CachingPlanner(
        lambda given: PolicyCheckedPlan(plan_upgrade(given, asked)),
        ClientScope(None, (), ()),
        by_version=True,
    )
    given = planned_for(TABLE)
    blocked = [
        bool(plans(given._replace(fingerprint=given.fingerprint._replace(version=v))).plan.blocked)
        for v in (3, 5)
    ]
    assert blocked == [True, False]


def test_files_matter_only_to_plans_that_rewrite_them() -> None:
    calls: list[PlanInput] = []

    def plan(given: PlanInput) -> PolicyCheckedPlan:
        calls.append(given)
        return PolicyCheckedPlan(plan_upgrade(given, asked))

    for script, expected in (
        ("alter table t set tblproperties ('delta.appendOnly' = 'true')", 1),
        ("reorg table t apply (purge)", 3),
    ):
        asked = UpgradeRequest(statements=tuple(parse_script(script)))
        plans = CachingPlanner(plan, ClientScope(None, (), ()))
        calls.clear()
        for size in (100, 200, 300):
            files = Files(1, size, 1, size)
            given = planned_for(TABLE._replace(vectors=True))._replace(
                files=files, name="/lake/orders", location="file:///lake/orders"
            )
            cached = plans(given).plan
            assert cached.cost == plan_upgrade(given, asked).cost
            assert cached.table == given.name
        assert len(calls) == expected


@each_row(
    ("engine", "hours", "refused"),
    [
        ("delta-spark@4.4.0", "0", True),
        ("delta-spark@4.4.0", "0.4", True),
        ("delta-spark@4.4.0", "0.5", False),
        ("delta-spark@4.4.0", "47", False),
        ("delta-spark@4.0.1", "47", True),
        ("delta-spark@4.0.1", "47.6", False),
        ("delta-spark@4.0.1", "48", False),
    ],
)
def test_hours_count_in_older_releases_only(engine: str, hours: str, refused: bool) -> None:
    table = TABLE.with_properties({"delta.deletedFileRetentionDuration": "interval 2 days"})
    (each,) = parse_script(f"vacuum t retain {hours} hours")
    refusal = each.statement.outcome(table, parse_engine(engine)).refusal
    assert (refusal is not None) is refused
    assert refusal is None or refusal.error == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
