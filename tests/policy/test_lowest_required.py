"""`protocol: lowest`: the features that a policy calls unneeded, against every choice of drops."""

from __future__ import annotations

from itertools import combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltaproto.clients.requirements import TableRequirements, table_requirements
from deltaproto.policy.document.model import PolicySettings
from deltaproto.policy.rules.lowest_required import find_unneeded
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol
from tests.support.examples import examples

DROPPABLE = [each.name for each in feature_catalog.all_features() if each.droppable]
SWITCHLESS = {each.name for each in feature_catalog.all_features() if each.switchless}
STUCK = ["appendOnly", "invariants", "clustering", "changeDataFeed", "generatedColumns"]


@st.composite
def listed_tables(draw: st.DrawFn) -> TableRequirements:
    """Tables with feature lists, of which some features are in use."""
    names = draw(st.sets(st.sampled_from(DROPPABLE), min_size=1, max_size=6))
    names |= draw(st.sets(st.sampled_from(STUCK), max_size=4))
    protocol = Protocol.carrying(feature_catalog.with_required_features(names))
    idle = draw(st.sets(st.sampled_from(sorted(protocol.supported))))
    # A feature without a switch counts as used.
    usage = {name: name not in idle or name in SWITCHLESS for name in protocol.supported}
    return table_requirements(protocol, usage, {}, absent=idle)


def sizes(protocol: Protocol) -> tuple[int, int, int]:
    above = [n for n in protocol.supported if feature_catalog.feature_record(n).min_writer > 2]
    return protocol.min_reader_version, protocol.min_writer_version, len(above)


def without(protocol: Protocol, dropped: frozenset[str]) -> Protocol:
    return Protocol.carrying(protocol.supported - dropped)


def idle_row_tracking() -> TableRequirements:
    """rowTracking requires domainMetadata, which comes first by name; without both it is (1,4)."""
    names = {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}
    protocol = Protocol.carrying({*names, "rowTracking"})
    usage = {name: name in SWITCHLESS for name in protocol.supported}
    return table_requirements(protocol, usage, {}, absent=set(protocol.supported))


@example(table=idle_row_tracking(), required=set(), history=None)
@given(
    table=listed_tables(),
    required=st.sets(st.sampled_from(DROPPABLE), max_size=2),
    history=st.sampled_from([None, "keep", "truncate"]),
)
@settings(max_examples=examples(300))
def test_no_choice_of_drops_is_lower(
    table: TableRequirements, required: set[str], history: str | None
) -> None:
    wanted = PolicySettings(
        protocol="lowest", require_features=tuple(sorted(required)), history=history
    )
    found = find_unneeded(table, wanted)
    protocol = table.protocol
    if not protocol.uses_table_features:
        assert found == frozenset()
        return
    may_go = {
        name
        for name in table.absent & set(DROPPABLE)
        if name != CHECKPOINT_PROTECTION and (name in table.unused or name in SWITCHLESS)
    } - feature_catalog.with_required_features(required)
    if history != "keep" and CHECKPOINT_PROTECTION not in required:
        may_go |= {CHECKPOINT_PROTECTION} & protocol.supported
    assert found <= may_go
    choices = [
        frozenset(each)
        for size in range(len(may_go) + 1)
        for each in combinations(sorted(may_go), size)
        # A feature stays while another one requires it.
        if not feature_catalog.with_required_features(protocol.supported - set(each)) & set(each)
    ]
    assert found in choices
    assert sizes(without(protocol, found)) == min(
        sizes(without(protocol, each)) for each in choices
    )


@given(table=listed_tables())
@settings(max_examples=examples(50))
def test_nothing_is_unneeded_unless_the_policy_asks(table: TableRequirements) -> None:
    assert find_unneeded(table, PolicySettings()) == frozenset()
