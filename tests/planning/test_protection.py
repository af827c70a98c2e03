"""When checkpointProtection is dropped, and what history was left before."""

from __future__ import annotations

import pytest

from deltaproto.clients.requirements import table_requirements
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import Engine
from deltaproto.planning.plan import Fingerprint
from deltaproto.planning.predict.drop_feature import drop_feature
from deltaproto.planning.predict.schema import Atomic, Column, Struct
from deltaproto.planning.predict.table import PROTECTED_BEFORE, Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.goals import HistoryChoice
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol


def test_a_truncating_drop_may_have_deleted_what_was_protected() -> None:
    # Measured with Delta Spark 4.4.0: then there is no empty commit.
    table = Table(
        Protocol.carrying({CHECKPOINT_PROTECTION, "columnMapping"}),
        {PROTECTED_BEFORE: "9"},
        traced=frozenset(),
        aged=frozenset({CHECKPOINT_PROTECTION, "columnMapping"}),
    )
    alone = drop_feature(table, CHECKPOINT_PROTECTION, Engine(), truncate=True)
    assert (alone.fewest, alone.most) == (3, 3)
    first = drop_feature(table, "columnMapping", Engine(), truncate=True)
    assert first.refusal is None
    then = drop_feature(first.table, CHECKPOINT_PROTECTION, Engine(), truncate=True)
    assert (then.fewest, then.most) == (2, 3)


@pytest.mark.parametrize("protected_versions", [2, 9])
def test_what_a_clone_lacks_up_to_the_protected_version_no_wait_brings(
    protected_versions: int,
) -> None:
    # Measured with Delta Spark 4.4.0: the clone has the value of its source.
    clone = Table(
        Protocol.carrying({CHECKPOINT_PROTECTION}),
        {PROTECTED_BEFORE: "9"},
        traced=frozenset({CHECKPOINT_PROTECTION}),
        protected_versions=protected_versions,
    )
    outcome = drop_feature(clone, CHECKPOINT_PROTECTION, Engine(), truncate=True)
    assert outcome.refusal is not None
    assert not outcome.refusal.retry
    assert "UNSET TBLPROPERTIES" in outcome.refusal.remedy
    plan = plan_downgrade(_input(clone), DowngradeRequest(to=(1, 2)))
    assert not plan.steps
    assert {each.error for each in plan.blocked} == {outcome.refusal.error}
    one_left = clone._replace(protected_versions=1, traced=frozenset())
    assert plan_downgrade(_input(one_left), DowngradeRequest(to=(1, 2))).steps
    unset = clone.without_properties(PROTECTED_BEFORE)
    assert drop_feature(unset, CHECKPOINT_PROTECTION, Engine(), truncate=True).refusal is None


def test_a_fast_drop_replaces_the_protected_version_of_a_clone() -> None:
    # Measured with Delta Spark 4.4.0: it stores the version of its own commit.
    clone = Table(
        Protocol.carrying({CHECKPOINT_PROTECTION, "columnMapping"}),
        {PROTECTED_BEFORE: "19", "delta.columnMapping.mode": "name"},
        traced=frozenset({CHECKPOINT_PROTECTION}),
        schema=Struct((Column("id", Atomic("long")),)),
        protected_versions=19,
    )
    dropped = drop_feature(clone, "columnMapping", Engine(), truncate=False)
    assert dropped.refusal is None
    waiting = drop_feature(dropped.table, CHECKPOINT_PROTECTION, Engine(), truncate=True).refusal
    assert waiting is not None
    assert waiting.retry
    plan = plan_downgrade(_input(clone), DowngradeRequest(to=(1, 2)))
    assert not plan.blocked
    assert [step.feature for step in plan.steps if step.sql and "DROP FEATURE" in step.sql] == [
        "columnMapping",
        CHECKPOINT_PROTECTION,
    ]
    kept = plan_downgrade(_input(clone), DowngradeRequest(to=(1, 2), history=HistoryChoice.KEEP))
    assert kept.blocked


def test_history_that_was_deleted_needs_no_empty_commit() -> None:
    protected = Table(
        Protocol.carrying({CHECKPOINT_PROTECTION}), {PROTECTED_BEFORE: "9"}, traced=frozenset()
    )
    for aged, commits in (
        (frozenset({CHECKPOINT_PROTECTION}), (3, 3)),
        (frozenset({"columnMapping"}), (2, 2)),
        (frozenset[str](), (2, 2)),
        (None, (2, 3)),
    ):
        table = protected._replace(aged=aged)
        found = drop_feature(table, CHECKPOINT_PROTECTION, Engine(), truncate=True)
        assert found.refusal is None
        assert (found.fewest, found.most) == commits, aged
        assert PROTECTED_BEFORE not in found.table.configuration
        # Spark stores no such column again: the feature's own commit fails, the others are made.
        odd = table.with_schema(Struct((Column("i", Atomic("interval day to second")),)))
        refused = drop_feature(odd, CHECKPOINT_PROTECTION, Engine(), truncate=True)
        assert refused.refusal is not None
        assert refused.refusal.error == "DELTA_UNSUPPORTED_DATA_TYPES"
        assert refused.most == commits[1] - 2
        assert refused.table.protocol == odd.protocol


def test_a_commit_takes_removable_history_into_the_newest_run() -> None:
    table = Table(
        Protocol(1, 2),
        traced=frozenset({"a"}),
        aged=frozenset({"b", "c"}),
        aged_in_newest_run=frozenset({"b"}),
    )
    sure, maybe = table.grown(5, sure=True), table.grown(5, sure=False)
    assert (sure.traced, sure.aged, sure.hours_left["b"]) == ({"a", "b"}, {"c"}, 5)
    assert (maybe.traced, maybe.aged, maybe.unsure) == ({"a"}, {"c"}, {"b"})
    unknown = table._replace(traced=None).grown(5, sure=True)
    assert (unknown.traced, unknown.unsure) == (None, {"b"})
    idle = table._replace(aged_in_newest_run=frozenset({"d"})).grown(5, sure=True)
    assert (idle.traced, idle.aged, idle.aged_in_newest_run) == ({"a"}, {"b", "c"}, frozenset())


def _input(table: Table) -> PlanInput:
    return PlanInput(
        name="t",
        location="file:///t",
        sql="t",
        table=table,
        needs=table_requirements(table.protocol, {}, table.configuration),
        states=(),
        fingerprint=Fingerprint(None, 0, table.protocol, None),
    )
