"""Goals that remove clustering meanwhile: it comes back, unless that is not wanted or possible."""

from __future__ import annotations

import pytest

from deltaproto.execution.goal_limits import find_unrequested_change
from deltaproto.planning.builder import PlanBuilder
from deltaproto.planning.converge import plan_target
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.schema import Atomic, Column, Struct
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.search.goals import HistoryChoice
from deltaproto.planning.search.route import DropMode, DropSelection, build_route
from deltaproto.planning.statement import ClusterBy, SetProperties, Wait
from deltaproto.planning.target import Requirements, Target
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_search import planned_for


def clustered(indexed: str) -> Table:
    """A table clustered by `id`, with statistics of its first `indexed` columns."""
    names = {"clustering", "columnMapping", "deletionVectors", "domainMetadata", "typeWidening"}
    table = Table(
        Protocol.carrying({"invariants", *names}),
        {"delta.columnMapping.mode": "name", "delta.dataSkippingNumIndexedCols": indexed},
        clustering=("id",),
        vectors=True,
        row_ids=False,
        domains=("delta.clustering",),
    )
    columns = tuple(Column(name, Atomic("long")) for name in ("id", "x"))
    return table.with_schema(Struct(columns))._replace(widened=None)


@pytest.mark.parametrize("indexed", ["0", "32"])
def test_clustering_that_is_no_longer_wanted_does_not_come_back(indexed: str) -> None:
    choice = DropSelection(off=frozenset({"clustering", "deletionVectors"}))
    route = build_route(clustered(indexed), choice, Engine(), DropMode.FAST)
    after = route[-1].outcome.table
    assert (after.clustering, after.vectors) == ((), False)
    assert not any(each.outcome.refusal for each in route)


@pytest.mark.parametrize("feature", ["columnMapping", "deletionVectors", "typeWidening"])
def test_clustering_that_could_not_come_back_blocks_the_drop(feature: str) -> None:
    asked = DowngradeRequest(drop=(feature,))
    (blocked,) = plan_downgrade(planned_for(clustered("0")), asked).blocked
    assert "CLUSTER BY is refused after it: Delta stores no statistics for id" in blocked.reason
    assert "CLUSTER BY NONE" in blocked.remedy
    plan = plan_downgrade(planned_for(clustered("32")), asked)
    assert plan.steps[-1].sql == "ALTER TABLE t CLUSTER BY (`id`)"


@pytest.mark.parametrize("feature", ["columnMapping", "deletionVectors", "typeWidening"])
def test_apply_accepts_a_drop_that_removes_clustering_meanwhile(feature: str) -> None:
    inputs = planned_for(clustered("32"))
    plan = plan_downgrade(inputs, DowngradeRequest(drop=(feature,)))
    assert [find_unrequested_change(plan, None, plan.steps[n:]) for n in range(3)] == [None] * 3
    others = plan_upgrade(inputs, UpgradeRequest(set={"delta.appendOnly": "true"}))
    for number in (0, 2):
        forged = others._replace(steps=(plan.steps[number],))
        assert "the clustering" in (find_unrequested_change(forged) or "")


def test_apply_accepts_an_upgrade_that_purges_a_clustered_table() -> None:
    asked = UpgradeRequest(enable=(FeatureToEnable("icebergCompatV2"),))
    plan = plan_upgrade(planned_for(clustered("32")), asked)
    assert [step.sql for step in plan.steps][:3] == [
        *("ALTER TABLE t CLUSTER BY NONE", "REORG TABLE t APPLY (PURGE)"),
        "ALTER TABLE t CLUSTER BY (`id`)",
    ]
    assert find_unrequested_change(plan) is None


@pytest.mark.parametrize("columns", [(), ("x",)])
def test_a_policy_with_other_columns_needs_no_statement_for_the_old_ones(
    columns: tuple[str, ...],
) -> None:
    wanted = Requirements(absent=frozenset({"deletionVectors"}), cluster_by=columns)
    plan = plan_target(planned_for(clustered("32")), Target(wanted))
    dropped = ["ALTER TABLE t CLUSTER BY NONE", "ALTER TABLE t DROP FEATURE `deletionVectors`"]
    last = [f"ALTER TABLE t CLUSTER BY (`{name}`)" for name in columns]
    assert [step.sql for step in plan.steps] == [*dropped, *last]


@pytest.mark.parametrize("feature", ["columnMapping", "deletionVectors", "typeWidening"])
@pytest.mark.parametrize("history", HistoryChoice)
def test_a_plan_that_waits_does_not_leave_the_table_without_clustering(
    feature: str, history: HistoryChoice
) -> None:
    asked = DowngradeRequest(drop=(feature,), history=history)
    plan = plan_downgrade(planned_for(clustered("32")), asked)
    words = [step.sql and step.sql.removeprefix("ALTER TABLE t ") for step in plan.steps]
    around = ["CLUSTER BY NONE", words[1], "CLUSTER BY (`id`)"]
    assert words == [*around, *((None, words[1]) if history is HistoryChoice.TRUNCATE else ())]
    assert find_unrequested_change(plan) is None


def test_a_removal_of_checkpoint_protection_waits_while_the_table_is_clustered() -> None:
    choice = DropSelection(dropped=frozenset({"deletionVectors", CHECKPOINT_PROTECTION}))
    route = build_route(clustered("32"), choice, Engine(), DropMode.FAST)
    waits = [each for each in route if isinstance(each.statement, Wait)]
    assert [each.before.clustering for each in waits] == [("id",)]
    assert route[-1].outcome.table.clustering == ("id",)


@pytest.mark.parametrize(("columns", "set_again"), [((), []), (("x",), [("x",)])])
def test_a_policy_with_other_columns_sets_them_before_the_wait(
    columns: tuple[str, ...], set_again: list[tuple[str, ...]]
) -> None:
    absent = frozenset({"deletionVectors", CHECKPOINT_PROTECTION})
    wanted = Requirements(absent=absent, cluster_by=columns)
    plan = plan_target(planned_for(clustered("32")), Target(wanted))
    words = [step.sql and step.sql.removeprefix("ALTER TABLE t ") for step in plan.steps]
    drop = "DROP FEATURE `deletionVectors` TRUNCATE HISTORY"
    sets = [f"CLUSTER BY ({', '.join(f'`{each}`' for each in again)})" for again in set_again]
    assert words == ["CLUSTER BY NONE", drop, *sets, None, drop]


def test_columns_that_only_get_statistics_later_are_set_last() -> None:
    builder = PlanBuilder(planned_for(clustered("1")._replace(clustering=())))
    builder.cluster_by(("id",))
    builder.set_properties({"delta.dataSkippingNumIndexedCols": "2"})
    builder.cluster_by(("x",))
    assert builder.blocked == []
    assert [type(each.statement) for each in builder.predictions] == [
        *(ClusterBy, SetProperties, ClusterBy)
    ]
    assert builder.table.clustering == ("x",)
