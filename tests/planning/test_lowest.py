"""`--lowest`: the lowest versions that keep the most clients working."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.requirements import (
    OF_FILE_WRITERS,
    STORED_PARTITIONS,
    TableRequirements,
)
from deltaproto.execution.goal_limits import TableUse, find_unrequested_change
from deltaproto.plan_inputs.client_scope import newest_clients
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import parse_engine
from deltaproto.planning.impact import compare_clients
from deltaproto.planning.plan import Plan
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.droppable import find_droppable
from deltaproto.planning.search.goals import (
    FeaturesAbsent,
    HistoryChoice,
    TableClient,
    requirements_after,
)
from deltaproto.planning.search.lowest import (
    find_lowest_goal,
    find_unused,
    is_higher,
)
from deltaproto.planning.search.route import DropSelection
from deltaproto.planning.search.search import SearchTask, predict_end_state
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol
from tests.planning.predicted_needs import load
from tests.planning.test_classics import carrying, use
from tests.planning.test_classics import given as table_of
from tests.policy.cases import domain
from tests.support.examples import examples
from tests.support.logs import Log, add, metadata, protocol

EVERYBODY = tuple(newest_clients(ClientCatalog()))
LEGACY = {name for pair in ((2, 5), (2, 6)) for name in feature_catalog.features_implied_by(*pair)}


def lost(plan: Plan) -> set[tuple[str, str]]:
    return {
        (c.client, c.access)
        for c in plan.clients
        if c.before is Verdict.OK and c.after is not Verdict.OK
    }


def test_a_legacy_table_keeps_the_features_that_its_pair_needs() -> None:
    table = table_of(Protocol(2, 5))._replace(clients=EVERYBODY, everybody=True)
    plan = plan_downgrade(table, DowngradeRequest(lowest=True))
    assert plan.protocol_after == Protocol(1, 4)
    assert next(step.feature for step in plan.steps if step.feature) == "columnMapping"
    assert not lost(plan)
    stays = {each.feature: each.reason for each in plan.kept}
    assert "would no longer work" in stays["checkConstraints"]


@pytest.mark.parametrize("pair", [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 6)])
@pytest.mark.parametrize("history", [None, *HistoryChoice])
def test_versions_never_rise(pair: tuple[int, int], history: HistoryChoice | None) -> None:
    for everybody in (EVERYBODY, ()):
        table = table_of(Protocol(*pair))._replace(clients=everybody, everybody=bool(everybody))
        plan = plan_downgrade(table, DowngradeRequest(lowest=True, history=history))
        assert not plan.blocked
        assert plan.protocol_after.min_reader_version <= pair[0]
        assert plan.protocol_after.min_writer_version <= pair[1]
        assert not lost(plan)


def test_the_lowest_protocol_for_a_client_drops_what_it_needs_and_what_nothing_uses() -> None:
    table = table_of(
        carrying("deletionVectors", "vacuumProtocolCheck", "columnMapping"),
        {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
    )
    trino = use("trino@430")
    alone = plan_downgrade(table, DowngradeRequest(lowest=True))
    assert {"deletionVectors", "columnMapping"} <= alone.protocol_after.supported
    plan = plan_downgrade(
        table._replace(clients=(TableClient(trino.candidate, trino.access),)),
        DowngradeRequest(lowest=True, clients=(trino,)),
    )
    assert not plan.blocked
    assert plan.goal["clients"] == [{"client": "trino@430", "access": ["read", "append"]}]
    assert all(c.after is Verdict.OK for c in plan.clients)
    assert "vacuumProtocolCheck" not in plan.protocol_after.supported


@pytest.mark.parametrize(
    ("others", "kept"), [((), frozenset()), (("app",), frozenset({"domainMetadata"}))]
)
def test_a_drop_for_a_client_may_leave_nothing_that_uses_another_feature(
    others: tuple[str, ...], kept: frozenset[str], log: Log
) -> None:
    domains = (domain(name, {"a": 1}) for name in ("delta.rowTracking", *others))
    names = ["appendOnly", "domainMetadata", "invariants", "rowTracking"]
    on = metadata({"delta.enableRowTracking": "true"})
    rows = add(baseRowId=0, defaultRowCommitVersion=0)
    log.commit(0, protocol(1, 7, None, names), on, *domains, rows)
    table = load(log.table)
    spark = TableClient(ClientCatalog().resolve("delta-spark@3.1.0"), (Access.APPEND,))
    plan = plan_downgrade(table, DowngradeRequest(lowest=True, clients=(spark,)))
    assert plan.protocol_after.supported == kept | {"appendOnly", "invariants"}
    assert {each.feature for each in plan.kept if "in use" in each.reason} == kept
    used = TableUse(table.states, table.needs, ClientCatalog(), table.table.domains)
    assert find_unrequested_change(plan, used) is None
    # Nobody asked to drop a feature that another domain needs.
    forbidden = used._replace(domains=("delta.rowTracking", "app"))
    refused = find_unrequested_change(plan, forbidden)
    assert (refused is None) is bool(others)


def test_a_client_may_need_a_drop_that_raises_the_versions() -> None:
    """The kept history adds checkpointProtection, and with it writer version 7."""
    polars = use("polars@1.39.0")._replace(access=(Access.READ,))
    plan = plan_downgrade(
        table_of(Protocol(2, 5))._replace(clients=(TableClient(polars.candidate, polars.access),)),
        DowngradeRequest(lowest=True, clients=(polars,), history=HistoryChoice.KEEP),
    )
    assert not plan.blocked
    assert (plan.protocol_after.min_reader_version, plan.protocol_after.min_writer_version) == (
        1,
        7,
    )
    assert all(c.after is Verdict.OK for c in plan.clients)


def test_a_client_that_cannot_be_let_in_blocks_the_lowest_protocol() -> None:
    table = table_of(carrying("changeDataFeed"), {"delta.enableChangeDataFeed": "true"})
    old = use("databricks-runtime@7.3")
    plan = plan_downgrade(
        table._replace(clients=(TableClient(old.candidate, old.access),)),
        DowngradeRequest(lowest=True, clients=(old,)),
    )
    assert plan.goal["kind"] == "lowest"
    assert plan.blocked
    assert not plan.steps
    assert plan.goal_text.startswith("the lowest protocol")


def test_a_plan_without_steps_changes_nothing_for_clients() -> None:
    table = table_of(carrying("deletionVectors"), {"delta.enableDeletionVectors": "true"})
    # Enabled, and no file has a deletion vector.
    table = table._replace(
        clients=EVERYBODY,
        everybody=True,
        needs=table.needs._replace(absent=frozenset({"deletionVectors"})),
    )
    for asked in (
        DowngradeRequest(lowest=True),
        DowngradeRequest(to=(1, 1)),
        DowngradeRequest(drop=("invariants",)),
    ):
        plan = plan_downgrade(table, asked)
        assert not plan.steps
        assert plan.clients == ()


def test_what_is_enabled_and_unused_stays_so_for_clients() -> None:
    table = table_of(
        carrying("deletionVectors", "vacuumProtocolCheck"), {"delta.enableDeletionVectors": "true"}
    )
    table = table._replace(
        clients=EVERYBODY,
        everybody=True,
        needs=table.needs._replace(absent=frozenset({"deletionVectors"})),
    )
    plan = plan_downgrade(table, DowngradeRequest(lowest=True))
    assert plan.steps
    assert not lost(plan)


def test_a_result_that_is_better_for_others_is_an_alternative() -> None:
    """Kept history raises the writer version, so reader and writer cannot both be lowest."""
    table = table_of(carrying(*LEGACY, "inCommitTimestamp"))
    table = table._replace(clients=EVERYBODY, everybody=True)
    lowest = DowngradeRequest(lowest=True, include_enabled=True, history=HistoryChoice.KEEP)
    plan = plan_downgrade(table, lowest)
    versions = plan.protocol_after.versions
    others = [a for a in plan.alternatives if a.name in ("lower-versions", "other-clients")]
    assert others
    for other in others:
        lower = is_higher(other.protocol_after.versions, versions)
        assert lower is (other.name == "lower-versions")
        assert other.protocol_after != plan.protocol_after
        assert other.text.startswith(f"{other.protocol_after}: ")
        assert other.reaches_goal is other.text.endswith("no client lost")
        assert other.steps
    truncating = lowest._replace(history=HistoryChoice.TRUNCATE)
    assert not [a for a in plan_downgrade(table, truncating).alternatives if a.name in others]


def test_why_a_feature_stays_is_named() -> None:
    table = table_of(carrying("rowTracking", "domainMetadata", "deletionVectors", "typeWidening"))
    known: dict[str, bool | None] = {"rowTracking": None, "deletionVectors": True}
    states = tuple(
        s._replace(present=known.get(s.name, False), enabled=False, evidence="2 files")
        for s in table.states
    )
    plan = plan_downgrade(table._replace(states=states), DowngradeRequest(lowest=True))
    stays = {each.feature: (each.reason, each.remedy) for each in plan.kept}
    assert stays["rowTracking"] == (
        "it is unknown whether anything uses it",
        "--include-enabled, or --drop rowTracking",
    )
    assert stays["domainMetadata"] == ("rowTracking requires it", "--include-enabled")
    assert stays["deletionVectors"] == ("in use (2 files)", "--include-enabled")
    assert "typeWidening" not in stays


@st.composite
def tables(draw: st.DrawFn) -> PlanInput:
    """A table on a legacy pair or on lists, whose features are used or not."""
    names = sorted(
        f.name for f in feature_catalog.all_features() if feature_catalog.is_registered(f.name)
    )
    few = draw(st.sets(st.sampled_from(names), max_size=4))
    protocol = draw(
        st.sampled_from(
            [
                Protocol(1, 4),
                Protocol(2, 5),
                Protocol(1, 6),
                Protocol(2, 6),
                Protocol.carrying({"appendOnly", "invariants", *few}),
                Protocol.carrying({*LEGACY, *few}),
                Protocol(2, 5).merge(Protocol.carrying(few)),
            ]
        )
    )
    made = table_of(protocol)
    used = draw(st.sets(st.sampled_from(sorted(protocol.supported)), max_size=3))
    states = tuple(s._replace(enabled=s.name in used, present=s.name in used) for s in made.states)
    needs = made.needs._replace(
        used=frozenset(used), unused=protocol.supported - used, absent=protocol.supported - used
    )
    clients = draw(st.lists(st.sampled_from(EVERYBODY), min_size=1, max_size=8, unique_by=id))
    return made._replace(states=states, needs=needs, clients=tuple(clients))


def assert_nothing_is_lower(table: PlanInput, history: HistoryChoice | None) -> None:
    """Try every set of drops: none is lower and keeps as many clients, or keeps more of them."""
    droppable = find_droppable(table.table, table.engine)
    best = find_lowest_goal(table, droppable, include_enabled=False, history=history).best
    assert not best.losers
    allowed = find_unused(table.states) & {*droppable.names}
    residue = frozenset() if history is HistoryChoice.KEEP else {CHECKPOINT_PROTECTION}
    task = SearchTask(
        table.table, FeaturesAbsent(frozenset()), table.engine, history=history, droppable=droppable
    )
    protocol = table.table.protocol
    worked = working(table, table.needs)
    sizes = range(len(allowed) + 1)
    for some in chain.from_iterable(combinations(sorted(allowed), size) for size in sizes):
        dropped = frozenset(some)
        if any(
            set(feature_catalog.find_dependents(name, protocol.supported)) - dropped
            for name in dropped
        ):
            continue
        end = predict_end_state(task, DropSelection(dropped | residue), left=not residue)
        works = working(table, requirements_after(table.needs, end))
        lower = below(end.protocol, best.protocol) and not below(best.protocol, end.protocol)
        assert not (lower and works >= best.working), (some, end.protocol, best)
        harmless = works >= worked and below(end.protocol, protocol)
        assert not (harmless and len(works) > len(best.working)), (some, works, best)


def working(table: PlanInput, needs: TableRequirements) -> set[tuple[str, str]]:
    found = compare_clients(table.clients, needs, needs)
    return {(change.client, change.access) for change in found if change.after is Verdict.OK}


def below(one: Protocol, other: Protocol) -> bool:
    """Whether no version of one is above that of the other."""
    return (
        one.min_reader_version <= other.min_reader_version
        and one.min_writer_version <= other.min_writer_version
    )


@given(table=tables(), history=st.sampled_from([None, HistoryChoice.KEEP]))
@settings(max_examples=examples(60))
def test_no_set_of_drops_is_lower_and_keeps_more_clients(
    table: PlanInput, history: HistoryChoice | None
) -> None:
    assert_nothing_is_lower(table, history)


@pytest.mark.slow
@given(table=tables(), history=st.sampled_from([None, HistoryChoice.KEEP]))
@settings(max_examples=examples(500))
def test_no_set_of_drops_of_500_tables_is_lower(
    table: PlanInput, history: HistoryChoice | None
) -> None:
    assert_nothing_is_lower(table, history)


@given(table=tables(), history=st.sampled_from([None, HistoryChoice.KEEP]))
@settings(max_examples=examples(60))
def test_the_plan_ends_at_the_lowest_protocol(
    table: PlanInput, history: HistoryChoice | None
) -> None:
    droppable = find_droppable(table.table, table.engine)
    best = find_lowest_goal(table, droppable, include_enabled=False, history=history).best
    plan = plan_downgrade(table, DowngradeRequest(lowest=True, history=history))
    if not plan.blocked:
        assert plan.protocol_after == best.protocol
        assert not lost(plan)


def test_a_plan_says_which_verdicts_check_cannot_repeat_without_the_history() -> None:
    table = table_of(carrying("deletionVectors"))._replace(clients=EVERYBODY, everybody=True)
    drop = DowngradeRequest(drop=("deletionVectors",))
    kept, truncated = (
        plan_downgrade(table, drop._replace(history=choice)) for choice in HistoryChoice
    )
    assert any(step.truncates for step in truncated.steps)
    assert not lost(truncated), "what is known is still true"
    (warning,) = (text for text in truncated.warnings if "check says unknown" in text)
    assert "daft@" in warning
    assert "delta-spark@" not in warning
    assert not any("check says unknown" in text for text in kept.warnings)


def test_a_plan_says_that_check_forgets_who_stored_partition_columns() -> None:
    table = table_of(carrying("deletionVectors"))._replace(clients=EVERYBODY, everybody=True)
    hazards = frozenset({STORED_PARTITIONS})
    table = table._replace(needs=table.needs._replace(hazards=hazards))
    drop = DowngradeRequest(drop=("deletionVectors",), history=HistoryChoice.TRUNCATE)
    (warning,) = (
        text for text in plan_downgrade(table, drop).warnings if "check says unknown" in text
    )
    assert "polars/scan@2.1.0 (read)" in warning


def test_nothing_is_forgotten_that_was_never_known() -> None:
    table = table_of(carrying("deletionVectors"))._replace(clients=EVERYBODY, everybody=True)
    table = table._replace(needs=table.needs._replace(unseen=OF_FILE_WRITERS))
    drop = DowngradeRequest(drop=("deletionVectors",), history=HistoryChoice.TRUNCATE)
    plan = plan_downgrade(table, drop)
    assert any(step.truncates for step in plan.steps)
    assert not any("check says unknown" in text for text in plan.warnings)


def test_the_lowest_protocol_is_searched_for_the_engine_of_the_plan() -> None:
    # This engine adds no checkpointProtection, so that the drop alone lowers the protocol.
    table = table_of(carrying("clustering", "deletionVectors"), clustering=())
    plan = plan_downgrade(
        table._replace(engine=parse_engine("databricks@15.4")), DowngradeRequest(lowest=True)
    )
    assert [step.sql for step in plan.steps] == ["ALTER TABLE t DROP FEATURE `deletionVectors`"]
