"""Plans for a target: as cheap as any sequence of statements, and honest about what stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.planning.converge import plan_target
from deltaproto.planning.enable import CannotEnable, FeatureToEnable, enabling_statements
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.goals import (
    AllGoals,
    EndState,
    FeaturesAbsent,
    Goal,
    VersionsAtMost,
)
from deltaproto.planning.search.lowest import is_higher, protocol_versions
from deltaproto.planning.search.route import raise_to_pair
from deltaproto.planning.search.search import SearchTask
from deltaproto.planning.statement import SetProperties, Statement
from deltaproto.planning.target import Requirements, Target, is_set
from tests.planning.brute import cheapest
from tests.planning.test_search import FILES, planned_for, tables
from tests.support.examples import examples

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
            kept = kept.joined(part)
        else:
            missing = missing.joined(part)
    return Target(missing, kept)


def goal_of(wanted: Requirements) -> Goal:
    return AllGoals((FeaturesAbsent(wanted.absent), VersionsAtMost(*wanted.at_most)))


def is_met(wanted: Requirements, table: Table) -> bool:
    return (
        goal_of(wanted).reached(EndState(table.protocol))
        and wanted.features <= table.protocol.supported
        and not is_higher(protocol_versions(table.protocol), wanted.at_least)
        and all(is_set(table.configuration, key, value) for key, value in wanted.properties.items())
    )


def additions(wanted: Requirements, table: Table) -> Iterator[Statement]:
    """Each statement alone, and all properties in one."""
    together: dict[str, str] = {}
    for name in sorted(wanted.features - table.protocol.supported):
        found = enabling_statements(FeatureToEnable(name), table, ENGINE)
        if not isinstance(found, CannotEnable):
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


def assert_cheapest(data: st.DataObject, table: Table) -> None:
    whole = data.draw(requirements(table))
    target = split(whole, table)
    inputs = planned_for(table)._replace(engine=ENGINE, files=FILES)
    plan = plan_target(inputs, target)
    task = SearchTask(table, goal_of(whole), ENGINE, FILES)
    best = cheapest(task, lambda now: additions(whole, now), lambda now: is_met(whole, now))
    if plan.unmet:
        assert best is None, plan.unmet
    elif not plan.blocked:
        # A plan may raise the versions in the statement that sets the properties.
        assert best is not None
        assert plan.cost <= best, [step.sql for step in plan.steps]


@given(data=st.data())
@settings(max_examples=examples(24))
def test_no_sequence_of_statements_is_cheaper(data: st.DataObject) -> None:
    assert_cheapest(data, data.draw(tables(most=1)))


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=examples(120))
def test_no_sequence_of_statements_on_a_larger_table_is_cheaper(data: st.DataObject) -> None:
    assert_cheapest(data, data.draw(tables(most=2)))
