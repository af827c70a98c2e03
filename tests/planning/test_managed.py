"""Catalog-managed tables in plans: what Delta Spark refuses there, and what it takes."""

from __future__ import annotations

import pytest

from deltaproto.execution.verify import RETENTION_WAIT_ERRORS
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import Engine
from deltaproto.planning.from_state import with_history
from deltaproto.planning.predict.before_drop import prepare_drop
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.table import PROTECTED_BEFORE, Table
from deltaproto.planning.search.droppable import find_droppable
from deltaproto.planning.search.goals import HistoryChoice
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.protocol.feature_catalog import features_blocking_drop
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_classics import given

FEATURES = {"catalogManaged", "deletionVectors", "rowTracking", "v2Checkpoint", "columnMapping"}
MANAGED = Table(
    Protocol.carrying(FEATURES),
    {"delta.enableInCommitTimestamps": "true", "delta.enableDeletionVectors": "true"},
    vectors=False,
    widened=False,
    traced=frozenset(),
    aged=frozenset(),
)
OPERATION = "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"
DEPENDENCIES = "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES"
SET = "alter table t set tblproperties"


def done(sql: str) -> Outcome:
    (parsed,) = parse_script(sql)
    return predict_statement(parsed.statement, MANAGED, Engine())


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("optimize t", OPERATION),
        ("vacuum t", OPERATION),
        ("reorg table t apply (purge)", OPERATION),
        ("reorg table t apply (upgrade uniform (iceberg_compat_version = 2))", OPERATION),
        (f"{SET} ('delta.enableInCommitTimestamps' = 'true')", DEPENDENCIES),
        (f"{SET} ('DELTA.enableInCommitTimestamps' = 'false', 'a' = 'b')", DEPENDENCIES),
        ("alter table t unset tblproperties ('delta.enableInCommitTimestamps')", DEPENDENCIES),
        (
            "alter table t drop feature catalogManaged",
            "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
        ),
        ("alter table t drop feature inCommitTimestamp", "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"),
        ("alter table t drop feature vacuumProtocolCheck", "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"),
        (f"{SET} ('delta.feature.catalogManaged' = 'supported')", None),
        (f"{SET} ('delta.enableDeletionVectors' = 'false')", None),
        ("alter table t drop feature rowTracking", None),
    ],
)
def test_what_is_refused(sql: str, error: str | None) -> None:
    said = done(sql)
    assert (None if said.refusal is None else said.refusal.error) == error
    if error is not None:
        assert said.commits == ()
    if said.refusal is not None and error == OPERATION:
        command = sql.split()[0].upper()
        assert said.refusal.message == (
            f"a catalog manages the table, so Delta Spark refuses {command}"
        )


def test_dropping_deletion_vectors_is_left_half_done() -> None:
    said = done("alter table t drop feature deletionVectors")
    assert said.refusal is not None
    assert said.refusal.error == OPERATION
    assert [commit.operation for commit in said.commits] == ["UNSET TBLPROPERTIES"]
    assert said.table.protocol == MANAGED.protocol
    assert not said.table.is_on("delta.enableDeletionVectors")


def test_a_plan_does_not_begin_what_cannot_be_finished() -> None:
    assert "deletionVectors" in find_droppable(MANAGED, Engine()).undroppable
    table = given(MANAGED.protocol)
    table = table._replace(table=MANAGED, needs=table.needs._replace(by_name=True))
    plan = plan_downgrade(table, DowngradeRequest(drop=("deletionVectors",)))
    assert plan.steps == ()
    (blocked,) = plan.blocked
    assert (blocked.feature, blocked.error) == ("deletionVectors", OPERATION)


WIDENED = MANAGED._replace(
    protocol=Protocol.carrying({*FEATURES, "typeWidening"}),
    configuration={**MANAGED.configuration, "delta.enableTypeWidening": "true"},
)


@pytest.mark.parametrize(
    ("widened", "error", "sure"),
    [(True, OPERATION, True), (None, OPERATION, False), (False, None, None)],
)
@pytest.mark.parametrize("truncate", [" truncate history", ""])
def test_recorded_type_changes_stay_because_their_drop_runs_reorg(
    widened: bool | None, error: str | None, sure: bool | None, truncate: str
) -> None:
    (parsed,) = parse_script(f"alter table t drop feature typeWidening{truncate}")
    table = WIDENED._replace(widened=widened)
    said = predict_statement(parsed.statement, table, Engine())
    assert (said.refusal and said.refusal.error) == error
    if said.refusal is not None:
        assert said.refusal.sure is sure
        assert [commit.operation for commit in said.commits] == ["UNSET TBLPROPERTIES"]
        assert said.table.widened is widened
    refused = "typeWidening" in find_droppable(table, Engine()).undroppable
    assert refused is (widened is not False)


@pytest.mark.parametrize(
    ("name", "supported", "keepers"),
    [
        ("deletionVectors", {"deletionVectors"}, ()),
        ("deletionVectors", {"deletionVectors", "catalogManaged"}, ("catalogManaged",)),
        ("inCommitTimestamp", {"inCommitTimestamp"}, ()),
        ("inCommitTimestamp", FEATURES | {"inCommitTimestamp"}, ("catalogManaged",)),
        ("rowTracking", FEATURES, ()),
        ("domainMetadata", {"domainMetadata", "clustering"}, ("clustering",)),
        ("domainMetadata", {"domainMetadata", "rowTracking"}, ()),
        ("nosuch", {"nosuch", "catalogManaged"}, ()),
    ],
)
def test_what_keeps_a_feature_on_a_table(
    name: str, supported: set[str], keepers: tuple[str, ...]
) -> None:
    assert features_blocking_drop(name, supported) == keepers


KEPT = {"catalogManaged", "deletionVectors"}
CLASSIC = MANAGED._replace(protocol=Protocol.carrying({*KEPT, "v2Checkpoint"}), v2_checkpoint=False)
PROTECTED = MANAGED._replace(
    protocol=Protocol.carrying({*KEPT, "checkpointProtection"}),
    configuration={**MANAGED.configuration, PROTECTED_BEFORE: "1"},
)
DROPS = {"v2Checkpoint": CLASSIC, "checkpointProtection": PROTECTED}


@pytest.mark.parametrize("name", DROPS)
@pytest.mark.parametrize("unpublished", [True, False])
def test_a_drop_is_called_before_the_wait_so_that_commits_are_published(
    name: str, unpublished: bool
) -> None:
    ready = None if unpublished else 3 * 3_600_000
    table = with_history(DROPS[name], {name: ready}, (), 0, unpublished=unpublished)
    inputs = given(table.protocol)
    inputs = inputs._replace(table=table, needs=inputs.needs._replace(by_name=True))
    plan = plan_downgrade(inputs, DowngradeRequest(drop=(name,), history=HistoryChoice.TRUNCATE))
    called = [
        f"wait {step.wait_hours}" if step.sql is None else step.expects for step in plan.steps
    ]
    if unpublished:
        error, wait, done = called
        assert error in RETENTION_WAIT_ERRORS
        assert (wait, done) == ("wait 24.0", None)
    else:
        assert called == ["wait 3.0", None]


def test_a_commit_of_the_plan_itself_may_be_unpublished() -> None:
    aged = CLASSIC._replace(
        aged=frozenset({"v2Checkpoint"}), aged_in_newest_run=frozenset({"v2Checkpoint"})
    )
    grown = aged.grown(24, sure=True)
    assert (grown.traced, grown.hours_left, grown.unpublished) == ({"v2Checkpoint"}, {}, True)
    assert grown.waited().traced == {"v2Checkpoint"}
    assert grown.ended(24).waited().traced == frozenset()


def test_what_a_drop_leaves_for_the_next_statement() -> None:
    table = MANAGED._replace(
        protocol=Protocol.carrying({"rowTracking", "v2Checkpoint"}),
        configuration={"delta.enableRowTracking": "true", "delta.checkpointPolicy": "v2"},
        v2_checkpoint=True,
        row_ids=True,
    )
    tracked = prepare_drop(table, "rowTracking", Engine()).table
    assert tracked.configuration["delta.enableRowTracking"] == "false"
    assert tracked.configuration["delta.rowTrackingSuspended"] == "true"
    assert tracked.row_ids is False
    classic = prepare_drop(table, "v2Checkpoint", Engine())
    assert classic.table.v2_checkpoint is False
    assert classic.table.configuration["delta.checkpointPolicy"] == "classic"
    assert classic.changed is True
