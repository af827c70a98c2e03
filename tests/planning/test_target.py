"""Plans for a target: as cheap as any sequence of statements, and honest about what stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.caches import BoundedCache
from deltaproto.clients.model import Access
from deltaproto.planning.builder import is_clustered
from deltaproto.planning.converge import plan_target
from deltaproto.planning.enable import FeatureToEnable, enabling_statements
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.plan import Blocked
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search import prediction
from deltaproto.planning.search.goals import (
    AllGoals,
    EndState,
    FeaturesAbsent,
    Goal,
    HistoryChoice,
    VersionsAtMost,
)
from deltaproto.planning.search.lowest import is_higher
from deltaproto.planning.search.route import raise_to_pair
from deltaproto.planning.search.search import SearchTask
from deltaproto.planning.statement import DropFeature, SetProperties, Statement
from deltaproto.planning.steps import NOT_STORED
from deltaproto.planning.target import Requirements, Target, goal_of, is_set, join_accesses
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol
from tests.planning.brute import cheapest
from tests.planning.test_classics import carrying, use
from tests.planning.test_classics import given as table_of
from tests.planning.test_search import FILES, planned_for, tables
from tests.support.examples import examples
from tests.support.failures import each_row

ENGINE = Engine(EngineName.DELTA_SPARK, "4.4.0")
ADDED = ("changeDataFeed", "deletionVectors", "inCommitTimestamp", "v2Checkpoint", "appendOnly")
PROPERTIES = {
    "delta.appendOnly": ("true", "false"),
    "delta.enableDeletionVectors": ("true", "false"),
    "delta.enableChangeDataFeed": ("true",),
    "delta.checkpointPolicy": ("classic", "v2"),
    "delta.dataSkippingNumIndexedCols": ("4",),
}


@st.composite
def requirements(draw: st.DrawFn, table: Table) -> Requirements:
    """Some requirements, which the table may meet, or which contradict each other."""
    supported = sorted(table.protocol.supported) or ["none"]
    keys = draw(st.sets(st.sampled_from(sorted(PROPERTIES)), max_size=2))
    return Requirements(
        features=frozenset(
            draw(st.sets(st.sampled_from(sorted({*ADDED, *table.protocol.supported})), max_size=2))
        ),
        absent=frozenset(draw(st.sets(st.sampled_from(supported), max_size=2))),
        properties={key: draw(st.sampled_from(PROPERTIES[key])) for key in sorted(keys)},
        at_least=draw(st.sampled_from([(1, 1), (1, 1), (1, 3), (2, 5)])),
        at_most=draw(st.sampled_from([(3, 7), (3, 7), (2, 7), (1, 4), (1, 7)])),
    )


def split(whole: Requirements, table: Table) -> Target:
    """The target that a policy makes: what the table lacks, and what it keeps."""
    missing, kept = Requirements(), Requirements()
    for part in whole.parts():
        if is_met(part, table):
            kept = kept.merged_with(part)
        else:
            missing = missing.merged_with(part)
    return Target(missing, kept)


def searched_goal(wanted: Requirements) -> Goal:
    return AllGoals((FeaturesAbsent(wanted.absent), VersionsAtMost(*wanted.at_most)))


def is_met(wanted: Requirements, table: Table) -> bool:
    return (
        searched_goal(wanted).reached(EndState(table.protocol))
        and wanted.features <= table.protocol.supported
        and not is_higher(table.protocol.versions, wanted.at_least)
        and all(is_set(table.configuration, key, value) for key, value in wanted.properties.items())
    )


def additions(wanted: Requirements, table: Table) -> Iterator[Statement]:
    """Each statement alone, and all properties in one."""
    together: dict[str, str] = {}
    for name in sorted(wanted.features - table.protocol.supported):
        found = enabling_statements(FeatureToEnable(name), table, ENGINE)
        if not isinstance(found, Blocked):
            yield from found
            for each in found:
                assert isinstance(each, SetProperties)
                together |= each.properties
    different = {
        key: value
        for key, value in wanted.properties.items()
        if not is_set(table.configuration, key, value)
    }
    if different:
        yield SetProperties(different)
        yield from (SetProperties({key: value}) for key, value in different.items())
        if together:
            yield SetProperties({**together, **different})
    if together:
        yield SetProperties(together)
    if wanted.at_least != (1, 1):
        yield raise_to_pair(wanted.at_least)
    for reader, writer in legacy_pairs(wanted.at_most):
        if reader <= wanted.at_most[0] and writer <= wanted.at_most[1]:
            yield raise_to_pair((reader, writer))


def legacy_pairs(ceiling: tuple[int, int]) -> Sequence[tuple[int, int]]:
    """The legacy protocols to which a plan may raise a table without being asked for it.

    Under a ceiling, such a pair may imply what would need feature lists by itself. Without one, it
    would only add features that nobody asked for.
    """
    return feature_catalog.LEGACY_PAIRS if ceiling[1] < 7 else ()


def assert_cheapest(data: st.DataObject, table: Table) -> None:
    whole = data.draw(requirements(table))
    target = split(whole, table)
    inputs = planned_for(table)._replace(engine=ENGINE, files=FILES)
    plan = plan_target(inputs, target)
    task = SearchTask(table, searched_goal(whole), ENGINE, FILES)
    best = cheapest(
        task,
        lambda now: additions(whole, now),
        lambda now: is_met(whole, now),
        legacy_pairs(whole.at_most),
    )
    if plan.unmet:
        assert best is None, plan.unmet
    elif not plan.blocked:
        # A plan may raise the versions in the statement that sets the properties.
        assert best is not None
        assert plan.cost <= best, [step.sql for step in plan.steps]


@pytest.mark.rotating
@given(data=st.data())
@settings(max_examples=examples(24))
def test_no_sequence_of_statements_is_cheaper(data: st.DataObject) -> None:
    assert_cheapest(data, data.draw(tables(most=1)))


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=examples(120))
def test_no_sequence_of_statements_on_a_larger_table_is_cheaper(data: st.DataObject) -> None:
    assert_cheapest(data, data.draw(tables(most=2)))


OLD, NEW = "deltalake/engine@0.25.0", "delta-spark@4.4.0"
EVERYTHING = Requirements(
    frozenset({"rowTracking", "v2Checkpoint"}),
    frozenset({"clustering", "changeDataFeed"}),
    {"b": "1", "a": "2"},
    ("id",),
    (1, 4),
    (2, 7),
    (use(OLD, Access.READ, Access.APPEND), use(NEW, Access.DML)),
)


def test_parts_are_each_requirement_alone_and_make_the_whole() -> None:
    assert [*EVERYTHING.parts()] == [
        Requirements(absent=frozenset({"changeDataFeed"})),
        Requirements(absent=frozenset({"clustering"})),
        Requirements(at_most=(2, 7)),
        Requirements(clients=(use(OLD, Access.READ),)),
        Requirements(clients=(use(OLD, Access.APPEND),)),
        Requirements(clients=(use(NEW, Access.DML),)),
        Requirements(features=frozenset({"rowTracking"})),
        Requirements(features=frozenset({"v2Checkpoint"})),
        Requirements(properties={"a": "2"}),
        Requirements(properties={"b": "1"}),
        Requirements(at_least=(1, 4)),
        Requirements(cluster_by=("id",)),
    ]
    whole = Requirements()
    for part in EVERYTHING.parts():
        whole = whole.merged_with(part)
    assert whole._replace(clients=join_accesses(whole.clients)) == EVERYTHING
    assert [*Requirements().parts()] == []
    assert [*Requirements(cluster_by=()).parts()] == [Requirements(cluster_by=())]


def test_joined_requirements_are_the_stricter_ones() -> None:
    one = Requirements(at_least=(1, 4), at_most=(2, 7), cluster_by=("id",))
    two = Requirements(at_least=(2, 3), at_most=(3, 5), properties={"a": "1"})
    for both in (one.merged_with(two), two.merged_with(one)):
        assert (both.at_least, both.at_most) == ((2, 4), (2, 5))
        assert (both.cluster_by, both.properties) == (("id",), {"a": "1"})
    assert one.merged_with(Requirements(cluster_by=())).cluster_by == ()


def test_the_stored_goal_has_what_the_plan_brings_about() -> None:
    assert goal_of(Requirements(), Target(EVERYTHING)) == {"kind": "policy"}
    assert goal_of(EVERYTHING, Target(Requirements(), history=HistoryChoice.TRUNCATE)) == {
        "kind": "policy",
        "enable": ["rowTracking", "v2Checkpoint"],
        "set": {"b": "1", "a": "2"},
        "cluster_by": ["id"],
        "to": {"reader": 1, "writer": 4},
        "features": ["changeDataFeed", "clustering"],
        "at_most": {"reader": 2, "writer": 7},
        "clients": [
            {"client": OLD, "access": ["read", "append"]},
            {"client": NEW, "access": ["dml"]},
        ],
        "history": "truncate",
    }
    assert goal_of(Requirements(cluster_by=()), Target(EVERYTHING))["cluster_by"] == []


def test_values_of_properties_are_compared_without_case_and_blanks() -> None:
    assert is_set({"a": " True"}, "a", "true ")
    assert not is_set({"a": "false"}, "a", "true")
    assert not is_set({}, "a", "")
    assert is_set({"a": ""}, "a", "")


def test_accesses_of_a_client_are_joined_in_order() -> None:
    uses = (use(OLD, Access.READ), use(NEW, Access.DML), use(OLD, Access.APPEND, Access.READ))
    assert join_accesses(uses) == (use(OLD, Access.READ, Access.APPEND), use(NEW, Access.DML))


def test_clustering_columns_are_changed_only_if_they_differ() -> None:
    table = table_of(carrying("clustering", "domainMetadata"), clustering=("id", "St.a"))
    for columns, statement in (
        (("ID", "st.A"), None),
        (("st.a", "id"), "ALTER TABLE t CLUSTER BY (`st`.`a`, `id`)"),
        (("id",), "ALTER TABLE t CLUSTER BY (`id`)"),
        ((), "ALTER TABLE t CLUSTER BY NONE"),
    ):
        target = Target(Requirements(cluster_by=columns))
        plan = plan_target(table, target)
        assert [step.sql for step in plan.steps] == ([] if statement is None else [statement])
        assert plan.unmet == ()
    assert not is_clustered(table.table._replace(clustering=None), ())
    assert is_clustered(table.table._replace(clustering=()), ())


WITH = Requirements(features=frozenset({"deletionVectors"}))
WITHOUT = Requirements(absent=frozenset({"deletionVectors"}))
VECTORS = table_of(carrying("deletionVectors"), {"delta.enableDeletionVectors": "true"})
OLDEST, CLUSTERED = table_of(Protocol(1, 2)), table_of(carrying("clustering"), clustering=("id",))
ON, OFF = (Requirements(properties={"delta.appendOnly": each}) for each in ("true", "false"))
ENABLED = Requirements(properties={"delta.enableDeletionVectors": "true"})


@each_row(
    ("table", "missing", "kept", "contradiction"),
    [
        (
            *(OLDEST, WITH, Requirements(at_most=(1, 2))),
            "keep deletionVectors; reader version 1 and writer version 2 at most",
        ),
        (VECTORS, WITHOUT, WITH, "keep deletionVectors; without deletionVectors"),
        (VECTORS, WITHOUT, ENABLED, "keep deletionVectors enabled; without deletionVectors"),
        (OLDEST, OFF, ON, "delta.appendOnly = true"),
        (
            *(CLUSTERED, Requirements(cluster_by=()), Requirements(cluster_by=("id", "s"))),
            "clustering by id, s",
        ),
        (
            *(CLUSTERED, Requirements(cluster_by=("s",)), Requirements(cluster_by=())),
            "clustering by no column",
        ),
        (
            *(table_of(Protocol(2, 5)), Requirements(at_most=(1, 4))),
            *(Requirements(at_least=(2, 5)), "reader version 2 and writer version 5 at least"),
        ),
    ],
)
def test_contradictions_are_named_and_nothing_is_planned(
    table: PlanInput, missing: Requirements, kept: Requirements, contradiction: str
) -> None:
    plan = plan_target(table, Target(missing, kept))
    assert plan.steps == ()
    (unmet,) = plan.unmet
    name = next(iter(missing.features | missing.absent), None)
    assert unmet == (
        name,
        f"these requirements contradict each other: {contradiction}",
        "change the policy; features that protect rows are disabled only if it forbids them",
        "",
    )


def test_what_no_statement_brings_about_is_left_out_with_the_reason() -> None:
    (unknown,) = plan_target(OLDEST, Target(Requirements(features=frozenset({"new"})))).unmet
    assert unknown == (
        *("new", "no released Delta Spark supports it", "see `deltaproto features`"),
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
    )
    secret = Requirements(properties={"note": "https://x/a?sig=c4n4ryV4lue9c4n4ryV4lue9"})
    assert plan_target(OLDEST, Target(secret)).unmet == (NOT_STORED,)
    wrong = Requirements(frozenset({"rowTracking"}), properties={"delta.enableRowTracking": "no"})
    plan = plan_target(OLDEST, Target(wrong))
    assert [step.feature for step in plan.steps] == ["rowTracking"]
    assert [each.reason for each in plan.unmet] == ["delta.enableRowTracking cannot be no"]


def test_the_goal_of_a_plan_in_words() -> None:
    vectors = plan_target(VECTORS, Target(WITHOUT.merged_with(Requirements(at_most=(1, 2)))))
    assert vectors.goal_text == (
        "without deletionVectors; reader version 1 and writer version 2 at most"
    )
    clients = plan_target(VECTORS, Target(Requirements(clients=(use(OLD, Access.APPEND),))))
    assert clients.goal_text == f"{OLD} can append"


def test_drops_lead_to_the_legacy_pair_that_a_property_needs() -> None:
    wanted = Requirements(
        absent=frozenset({"domainMetadata", "rowTracking"}),
        properties={"delta.enableChangeDataFeed": "true"},
        at_most=(3, 6),
    )
    table = table_of(carrying("checkConstraints", "domainMetadata", "rowTracking"))
    plan = plan_target(table, Target(wanted))
    assert plan.unmet == ()
    assert plan.protocol_after == Protocol(1, 4)
    assert not any(step.feature == "checkConstraints" for step in plan.steps)
    assert [step.sql for step in plan.steps][-1:] == [
        "ALTER TABLE t SET TBLPROPERTIES ('delta.minReaderVersion' = '1', "
        "'delta.minWriterVersion' = '4', 'delta.enableChangeDataFeed' = 'true')"
    ]


def test_feature_lists_become_the_legacy_pair_with_the_required_features() -> None:
    """One statement adds what the pair implies, though its versions are below the table's."""
    table = table_of(Protocol.carrying({"checkConstraints"}))
    wanted = Requirements(features=frozenset({"appendOnly"}), at_most=(1, 4))
    plan = plan_target(table, Target(wanted))
    assert (plan.unmet, plan.protocol_after) == ((), Protocol(1, 3))
    assert [step.sql for step in plan.steps] == [
        "ALTER TABLE t SET TBLPROPERTIES ('delta.minReaderVersion' = '1', "
        "'delta.minWriterVersion' = '2')"
    ]


@pytest.mark.parametrize("features", [(), ("appendOnly", "invariants"), ("checkConstraints",)])
@pytest.mark.parametrize("pair", [(1, 3), (1, 4)])
def test_one_statement_lowers_feature_lists_to_the_required_versions(
    features: Sequence[str], pair: tuple[int, int]
) -> None:
    """A protocol in a higher form, as Databricks writes it, is not normalized first."""
    table = table_of(Protocol(3, 7, frozenset(), frozenset(features)))
    for target in (
        Target(Requirements(at_most=(1, 4), at_least=pair)),
        Target(Requirements(at_most=(1, 4)), Requirements(at_least=pair)),
    ):
        plan = plan_target(table, target)
        assert (plan.unmet, plan.protocol_after) == ((), Protocol(*pair))
        assert len(plan.steps) == 1


def test_no_unrequested_features_are_added_to_reach_a_version() -> None:
    """Without checkConstraints, (1,3) becomes (1,2); only features of (1,4) would prevent that."""
    wanted = Requirements(absent=frozenset({"checkConstraints"}))
    plan = plan_target(table_of(Protocol(1, 3)), Target(wanted, Requirements(at_least=(1, 3))))
    assert plan.steps == ()
    assert [each.reason for each in plan.unmet] == [
        "these requirements contradict each other: reader version 1 and writer version 3 at least"
    ]


def test_a_feature_that_is_added_later_lets_an_earlier_one_go() -> None:
    """Without deletionVectors, the table would fall below writer version 7."""
    table = table_of(carrying("checkpointProtection"))
    wanted = Requirements(
        features=frozenset({"deletionVectors", "new"}),
        absent=frozenset({"checkpointProtection"}),
    )
    plan = plan_target(table, Target(wanted, Requirements(at_least=(1, 7))))
    assert plan.protocol_after == carrying("deletionVectors")
    assert [each.feature for each in plan.unmet] == ["new"]


def test_no_statement_is_predicted_twice_for_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders and legacy pairs have statements in common; each prediction is slow."""
    seen: list[tuple[Statement, Table]] = []

    def record(statement: Statement, before: Table, engine: Engine) -> Outcome:
        seen.append((statement, before))
        return predict(statement, before, engine)

    predict = prediction._predict
    monkeypatch.setattr(prediction, "_predict", record)
    # A cache that is full is emptied.
    monkeypatch.setattr(prediction, "_predictions", BoundedCache(512))
    wanted = WITHOUT.merged_with(Requirements(properties={"delta.enableChangeDataFeed": "true"}))
    plan = plan_target(VECTORS._replace(table=VECTORS.table.with_properties({})), Target(wanted))
    assert plan.unmet == ()
    assert len(seen) == len({(repr(statement), id(before)) for statement, before in seen})
    # Legacy pairs that cost more than enabling the feature are not tried to the end.
    assert sum(isinstance(statement, DropFeature) for statement, _ in seen) < 12
