"""Catalog-managed tables in plans: what Delta Spark refuses there, and what it takes."""

from __future__ import annotations

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.droppable import find_droppable
from deltaproto.planning.search.route import predict_statement
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


def test_dropping_deletion_vectors_is_left_half_done() -> None:
    said = done("alter table t drop feature deletionVectors")
    assert said.refusal is not None
    assert said.refusal.error == OPERATION
    assert [commit.operation for commit in said.commits] == ["UNSET TBLPROPERTIES"]
    assert said.table.protocol == MANAGED.protocol
    assert not said.table.on("delta.enableDeletionVectors")


def test_a_plan_does_not_begin_what_cannot_be_finished() -> None:
    assert "deletionVectors" in find_droppable(MANAGED, Engine()).undroppable
    table = given(MANAGED.protocol)
    table = table._replace(table=MANAGED, needs=table.needs._replace(by_name=True))
    plan = plan_downgrade(table, DowngradeRequest(drop=("deletionVectors",)))
    assert plan.steps == ()
    (blocked,) = plan.blocked
    assert (blocked.feature, blocked.error) == ("deletionVectors", OPERATION)


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
