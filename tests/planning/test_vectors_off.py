"""Deletion vectors that are there while no more may be written.

Delta's snapshots count them only while the property is on (`aggregationsToComputeState` in 4.4.0),
so that DROP FEATURE may find nothing to unset, and purges them all the same.
"""

from __future__ import annotations

from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.drop_feature import drop_feature
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.predict.schema import Atomic, Column, Struct
from deltaproto.planning.predict.table import Table
from deltaproto.protocol.protocol import Protocol

TABLE = Table(Protocol.carrying({"deletionVectors"}), vectors=True)


def test_nothing_may_be_unset() -> None:
    said = drop_feature(TABLE, "deletionVectors", Engine())
    sure = {commit.operation: commit.sure for commit in said.commits}
    assert not sure["UNSET TBLPROPERTIES"]
    assert sure["REORG"]
    assert said.rewrites is Rewrite.VECTORS


def test_the_property_stays_where_nothing_is_unset() -> None:
    # Measured with Delta Spark 4.4.0, after REORG … UPGRADE UNIFORM.
    properties = {"delta.enableDeletionVectors": "false"}
    table = TABLE.with_properties(properties)._replace(vectors=False)
    said = drop_feature(table, "deletionVectors", Engine())
    assert "UNSET TBLPROPERTIES" not in [commit.operation for commit in said.commits]
    kept = said.table.configuration
    assert {key: kept.get(key) for key in properties} == properties


def test_with_the_property_on_it_is_unset_for_sure() -> None:
    table = TABLE.with_properties({"delta.enableDeletionVectors": "true"})
    said = drop_feature(table, "deletionVectors", Engine())
    assert all(commit.sure for commit in said.commits)


def test_a_refused_statement_may_purge_before() -> None:
    # If there is nothing to unset, the type is first checked by the drop commit.
    schema = Struct((Column("v", Atomic("interval day to second")),))
    table = TABLE.with_schema(schema)._replace(traced=frozenset())
    said = drop_feature(table, "deletionVectors", Engine())
    assert [commit.operation for commit in said.commits] == [
        *("REORG", "Deletion Vector Tombstones"),
        *["Empty Commit"] * 3,
    ]
    assert (said.fewest, said.rewrites) == (0, Rewrite.VECTORS)
    assert said.refusal is not None
    assert said.refusal.sure
    assert (said.table.vectors, said.table.protocol) == (None, table.protocol)


def test_what_may_be_refused_may_also_have_to_wait() -> None:
    schema = Struct((Column("v", Atomic("interval day to second")),))
    table = TABLE.with_schema(schema)._replace(traced=frozenset({"deletionVectors"}))
    said = drop_feature(table, "deletionVectors", Engine(), truncate=True)
    assert [commit.operation for commit in said.commits][-1] == "Empty Commit"
    assert said.refusal is not None
    # Measured with Delta Spark 4.4.0, which refuses the type only once the history is gone.
    assert said.refusal.error == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
    assert "interval" in said.refusal.message
    assert (said.refusal.sure, said.refusal.retry) == (False, False)
