"""The search: exact, quick, and honest about what it cannot reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.clients.requirements import table_requirements
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.impact import end_state_of
from deltaproto.planning.plan import Fingerprint
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.cost import Files
from deltaproto.planning.search.goals import (
    EndState,
    FeaturesAbsent,
    Goal,
    HistoryChoice,
    VersionsAtMost,
)
from deltaproto.planning.search.search import (
    SearchTask,
    find_nearest_goal,
    find_solutions,
    is_reachable,
)
from deltaproto.planning.statement import ClusterBy, DropFeature, SetProperties, Wait
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol
from tests.planning.brute import cheapest
from tests.support.examples import examples

# What only a catalog makes is left out: no plan is made for such tables.
NAMES = sorted(
    f.name
    for f in feature_catalog.all_features()
    if feature_catalog.is_registered(f.name)
    and not feature_catalog.with_required_features({f.name}) & {"catalogManaged"}
)
FILES = Files(10, 1000, 3, 300, 5, 500)


@st.composite
def tables(draw: st.DrawFn, most: int = 3) -> Table:
    """A table whose features are used or not; small enough to try everything.

    `most` limits the features beyond those of a legacy pair: one more multiplies the states.
    """
    names = draw(st.sets(st.sampled_from(NAMES), max_size=most))
    protocol = draw(
        st.sampled_from(
            [
                Protocol.carrying({"appendOnly", "invariants", *names}),
                Protocol.carrying(names),
                Protocol(1, 3).merge(Protocol.carrying(names)),
                Protocol(1, 4).merge(Protocol.carrying(names)),
                Protocol(2, 5).merge(Protocol.carrying(names)),
            ]
        )
    )
    if draw(st.integers(0, 3)) == 0:
        # As Databricks and older releases of Delta Spark store it.
        names = protocol.supported
        of_readers = {n for n in names if feature_catalog.feature_record(n).min_reader > 1}
        protocol = Protocol(3, 7, frozenset(of_readers), names)
    used = draw(st.sets(st.sampled_from(sorted(protocol.supported) or ["none"])))
    configuration = {
        "deletionVectors": {"delta.enableDeletionVectors": "true"},
        "columnMapping": {"delta.columnMapping.mode": draw(st.sampled_from(["name", "id"]))},
        "typeWidening": {"delta.enableTypeWidening": "true"},
        "rowTracking": {"delta.enableRowTracking": "true"},
        "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
        "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
        "checkConstraints": {"delta.constraints.c": "id > 0"},
        CHECKPOINT_PROTECTION: {"delta.requireCheckpointProtectionBeforeVersion": "3"},
    }
    properties = {key: value for name in used for key, value in configuration.get(name, {}).items()}
    traced = draw(st.sets(st.sampled_from(sorted(protocol.supported) or ["none"])))
    idle = sorted(protocol.supported - traced - used - {CHECKPOINT_PROTECTION})
    aged = draw(st.sets(st.sampled_from(idle))) if idle else set()
    return Table(
        protocol=protocol,
        configuration=properties,
        vectors="deletionVectors" in used and draw(st.booleans()),
        widened="typeWidening" in used and draw(st.booleans()),
        v2_checkpoint="v2Checkpoint" in protocol.supported and draw(st.booleans()),
        row_ids="rowTracking" in used,
        untracked="rowTracking" in used and draw(st.booleans()),
        domains=("delta.rowTracking",) if "rowTracking" in used else (),
        traced=frozenset(traced | used),
        hours_left=dict.fromkeys(
            draw(st.sets(st.sampled_from(sorted(traced | used) or ["none"]))), 5.0
        ),
        aged=frozenset(aged),
        aged_in_newest_run=frozenset(draw(st.sets(st.sampled_from(sorted(aged)))) if aged else ()),
    )


@st.composite
def goals(draw: st.DrawFn, table: Table) -> Goal:
    if draw(st.booleans()):
        supported = sorted(table.protocol.supported) or ["deletionVectors"]
        return FeaturesAbsent(
            frozenset(draw(st.sets(st.sampled_from(supported), min_size=1, max_size=3)))
        )
    reader = draw(st.integers(1, 3))
    return VersionsAtMost(reader, draw(st.integers(1, 7)))


@given(data=st.data())
@settings(max_examples=examples(40))
def test_the_cheapest_plan_is_the_cheapest_of_all(data: st.DataObject) -> None:
    assert_cheapest(data, data.draw(tables(most=2)))


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=examples(150))
def test_the_cheapest_plan_of_a_larger_table_is_the_cheapest_of_all(data: st.DataObject) -> None:
    assert_cheapest(data, data.draw(tables(most=3)))


def test_the_drop_that_spares_the_others_a_wait_comes_first() -> None:
    """DROP FEATURE deletionVectors begins with a commit that comes without a checkpoint."""
    names = frozenset({"deletionVectors", "geospatial"})
    table = Table(
        protocol=Protocol.carrying({"appendOnly", "invariants", *names}),
        vectors=False,
        geospatial=(),
        traced=frozenset(),
        aged=names,
        aged_in_newest_run=names,
    )
    task = SearchTask(table, VersionsAtMost(1, 4), Engine(EngineName.DELTA_SPARK, "4.4.0"), FILES)
    best = find_solutions(task)[0]
    assert best.cost == cheapest(task)
    assert best.cost.waits == 0
    assert [prediction.statement for prediction in best.predictions] == [
        DropFeature("geospatial", truncate=True),
        DropFeature("deletionVectors", truncate=True),
    ]


@pytest.mark.parametrize(
    ("left", "aged", "features"),
    [
        # A call that only leaves a checkpoint, which is a classic one.
        ({}, {"v2Checkpoint"}, ["columnMapping", None, "columnMapping", "v2Checkpoint"]),
        ({"columnMapping": 5.0}, {"v2Checkpoint"}, [None, "columnMapping", "v2Checkpoint"]),
        (
            {"columnMapping": 5.0, "v2Checkpoint": 7.0},
            set[str](),
            [None, "columnMapping", "v2Checkpoint"],
        ),
        (
            {"columnMapping": 5.0},
            set[str](),
            ["columnMapping", None, "columnMapping", "v2Checkpoint"],
        ),
    ],
)
@pytest.mark.parametrize("version", ["4.4.0", "3.3.0"])
def test_v2_checkpoints_go_last_where_another_drop_writes_the_classic_one(
    left: dict[str, float], aged: set[str], features: list[str | None], version: str
) -> None:
    names = frozenset({"columnMapping", "v2Checkpoint"})
    table = Table(
        protocol=Protocol.carrying(names),
        vectors=False,
        v2_checkpoint=True,
        traced=names - aged,
        hours_left=left,
        aged=frozenset(aged),
    )
    task = SearchTask(table, FeaturesAbsent(names), Engine(EngineName.DELTA_SPARK, version), FILES)
    if version == "4.4.0":
        task = task._replace(goal=VersionsAtMost(1, 1))
    best = find_solutions(task)[0]
    assert best.cost == cheapest(task)
    predictions = [prediction.statement for prediction in best.predictions]
    assert [getattr(prediction, "feature", None) for prediction in predictions] == features
    waits = [prediction.hours for prediction in predictions if isinstance(prediction, Wait)]
    known = left.keys() == names - aged
    assert waits == [(max(left.values()) if known else 24) if version == "4.4.0" else 720]


def test_the_call_that_only_leaves_a_checkpoint_is_the_shortest() -> None:
    """A call for deletionVectors would commit tombstones first."""
    names = frozenset({"deletionVectors", "v2Checkpoint"})
    table = Table(
        protocol=Protocol.carrying(names),
        vectors=False,
        v2_checkpoint=False,
        traced=names,
        aged=frozenset(),
    )
    task = SearchTask(table, VersionsAtMost(1, 1), Engine(EngineName.DELTA_SPARK, "4.4.0"), FILES)
    best = find_solutions(task)[0]
    assert best.cost == cheapest(task)
    assert best.predictions[0].statement == DropFeature("v2Checkpoint", truncate=True)


def test_nothing_is_dropped_only_for_the_checkpoint_that_the_drop_leaves() -> None:
    """Delta refuses to drop columnMapping, and v2Checkpoint could then go without a wait."""
    names = frozenset({"appendOnly", "invariants", "checkConstraints", "changeDataFeed"})
    table = Table(
        protocol=Protocol.carrying({*names, "generatedColumns", "columnMapping", "v2Checkpoint"}),
        vectors=False,
        v2_checkpoint=True,
        traced=frozenset({"columnMapping"}),
        aged=frozenset(),
    )
    task = SearchTask(table, VersionsAtMost(2, 5), Engine(EngineName.DELTA_SPARK, "4.4.0"), FILES)
    best = find_solutions(task)[0]
    assert best.cost == cheapest(task)
    drops = {
        prediction.statement.feature
        for prediction in best.predictions
        if isinstance(prediction.statement, DropFeature)
    }
    assert drops == {"v2Checkpoint"}


def assert_cheapest(data: st.DataObject, table: Table) -> None:
    goal = data.draw(goals(table))
    history = data.draw(st.sampled_from([None, HistoryChoice.KEEP]))
    version = data.draw(st.sampled_from(["4.4.0", "4.0.0"]))
    task = SearchTask(table, goal, Engine(EngineName.DELTA_SPARK, version), FILES, history=history)
    found = find_solutions(task)
    best = cheapest(task)
    assert (found[0].cost if found else None) == best, [m.statement for m in found[0].predictions]
    assert is_reachable(task) is bool(found)
    for each in found:
        after = each.predictions[-1].outcome.table.protocol if each.predictions else table.protocol
        assert goal.reached(EndState(after))


class Unused(NamedTuple):
    """Of what was in use, these features are not any longer: what clients ask for, and no more."""

    features: frozenset[str]
    used: frozenset[str]
    kind: str = "unused"
    text: str = "not in use"

    def reached(self, ending: EndState) -> bool:
        return not self.objections(ending)

    def objections(self, ending: EndState) -> frozenset[str]:
        return (self.features & self.used & ending.protocol.supported) - ending.off

    def weaker(self, reachable: Callable[[Goal], bool]) -> Iterator[Goal]:
        yield self._replace(features=frozenset())


SWITCHED = {
    "appendOnly": {"delta.appendOnly": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
    "columnMapping": {"delta.columnMapping.mode": "name"},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "icebergCompatV1": {"delta.enableIcebergCompatV1": "true"},
    "icebergCompatV2": {"delta.enableIcebergCompatV2": "true"},
    "icebergCompatV3": {
        "delta.enableIcebergCompatV3": "true",
        "delta.enableRowTracking": "true",
    },
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "checkConstraints": {"delta.constraints.c": "id > 0", "delta.constraints.d": "id > 1"},
}
NEW_COMPAT = {"icebergCompatV1", "icebergCompatV2", "icebergCompatV3"}


@st.composite
def tables_in_use(draw: st.DrawFn) -> tuple[Table, frozenset[str]]:
    """A table and what is used of it; at most one IcebergCompat version, with what it needs."""
    names = draw(st.sets(st.sampled_from([*SWITCHED, "clustering", "rowTracking"]), max_size=3))
    used = draw(st.sets(st.sampled_from(sorted(names) or ["none"]))) & {*SWITCHED, "clustering"}
    for extra in sorted(used & NEW_COMPAT)[1:]:
        used.remove(extra)
    if used & NEW_COMPAT:
        used |= {"columnMapping"}
        used -= set() if used & {"icebergCompatV3"} else {"deletionVectors"}
    if "columnMapping" in used:
        # Mapping that goes breaks a clustered table, which only the planner knows to be harm.
        used -= {"clustering"}
    protocol = Protocol.carrying({"invariants", *names, *used})
    table = Table(
        protocol=protocol,
        configuration={k: v for name in used for k, v in SWITCHED.get(name, {}).items()},
        vectors="deletionVectors" in used and draw(st.booleans()),
        unmappable=("a b",) if draw(st.booleans()) and "columnMapping" in used else (),
        clustering=("id",) if "clustering" in used else (),
        row_ids="icebergCompatV3" in used,
        domains=("delta.clustering",) if "clustering" in used else (),
        traced=frozenset(used),
        aged=frozenset(),
    )
    return table, frozenset(used)


@given(data=st.data())
@settings(max_examples=examples(100))
def test_switching_off_is_as_cheap_as_can_be(data: st.DataObject) -> None:
    table, used = data.draw(tables_in_use())
    wanted = data.draw(st.sets(st.sampled_from(sorted(used) or ["none"])))
    goal: Goal = Unused(frozenset(wanted), used)
    history = data.draw(st.sampled_from([None, HistoryChoice.KEEP]))
    version = data.draw(st.sampled_from(["4.4.0", "4.0.0", "3.2.0"]))
    before = planned_for(table).needs._replace(used=used)
    engine = Engine(EngineName.DELTA_SPARK, version)
    task = SearchTask(table, goal, engine, FILES, before, history)
    found = find_solutions(task)
    statements = [m.statement for m in found[0].predictions] if found else None
    # Vectors are removed only while the table is not clustered, and then it is clustered again.
    again = (ClusterBy(table.clustering),) if table.clustering else ()
    least = cheapest(
        task,
        lambda _: again,
        lambda after: "clustering" in wanted or after.clustering == table.clustering,
    )
    assert (found[0].cost if found else None) == least, statements
    for each in found:
        for prediction in each.predictions:
            assert prediction.outcome.refusal is None or prediction.outcome.refusal.retry, (
                prediction.statement
            )
        after = each.predictions[-1].outcome.table if each.predictions else table
        assert goal.reached(EndState(after.protocol, end_state_of(after, after).off))


def test_files_are_not_purged_before_mapping_rewrites_them_all() -> None:
    used = frozenset({"appendOnly", "columnMapping", "deletionVectors"})
    table = Table(
        protocol=Protocol.carrying({"invariants", *used}),
        configuration={key: value for name in used for key, value in SWITCHED[name].items()},
        vectors=True,
        clustering=(),
        row_ids=False,
        traced=used,
        aged=frozenset(),
    )
    needs = planned_for(table).needs._replace(used=used)
    goal = Unused(used, used)
    task = SearchTask(table, goal, Engine(EngineName.DELTA_SPARK, "4.4.0"), FILES, needs)
    best = find_solutions(task)[0]
    assert best.cost == cheapest(task)
    assert [prediction.statement for prediction in best.predictions] == [
        SetProperties({"delta.appendOnly": "false"}, "appendOnly"),
        SetProperties({"delta.enableDeletionVectors": "false"}, "deletionVectors"),
        SetProperties({"delta.columnMapping.mode": "none"}, "columnMapping"),
    ]


def planned_for(table: Table) -> PlanInput:
    return PlanInput(
        name="t",
        location="file:///t",
        sql="t",
        table=table,
        needs=table_requirements(table.protocol, {}, table.configuration),
        states=(),
        fingerprint=Fingerprint(None, 0, table.protocol, None),
    )


@given(data=st.data())
def test_what_cannot_be_reached_has_a_nearest_protocol(data: st.DataObject) -> None:
    table = data.draw(tables())
    goal = data.draw(goals(table))
    task = SearchTask(table, goal, files=FILES)
    if find_solutions(task):
        return
    asked = (
        DowngradeRequest(to=goal[:2])
        if isinstance(goal, VersionsAtMost)
        else DowngradeRequest(drop=(*goal.features,))
    )
    plan = plan_downgrade(planned_for(table), asked)
    assert plan.blocked
    assert not plan.steps
    weaker, found = find_nearest_goal(task)
    after = (
        found[0].predictions[-1].outcome.table.protocol if found[0].predictions else table.protocol
    )
    assert weaker.reached(EndState(after))
    assert not goal.reached(EndState(after))
