"""What a goal objects to, and what it gives up first."""

from __future__ import annotations

from typing import Any

import pytest

from deltaproto.clients.model import Access
from deltaproto.clients.requirements import (
    ABSOLUTE_PATHS,
    HIDDEN_PARTITIONS,
    ISO_TIMESTAMPS,
    MAPPED_PARTITIONS,
    RANDOM_PREFIXES,
    SPECIAL_LOCATION,
)
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.plan import Alternative
from deltaproto.planning.request import UpgradeRequest, approvable_goal, goal_text
from deltaproto.planning.search.cost import Cost
from deltaproto.planning.search.goals import (
    AllGoals,
    BothGoals,
    ClientsSupported,
    EndState,
    FeaturesAbsent,
    Goal,
    VersionsAtMost,
    requirements_after,
)
from deltaproto.planning.steps import NOT_STORED, block_secrets
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_classics import carrying, given, use
from tests.support.failures import each_row

OLD = "deltalake/engine@0.25.0"
VECTORS = carrying("deletionVectors")
ON = {"delta.enableDeletionVectors": "true"}


def usable(*uses: tuple[str, Access]) -> ClientsSupported:
    needs = given(VECTORS, ON, vectors=True).needs
    return ClientsSupported(tuple(use(client, access) for client, access in uses), needs)


def test_a_client_objects_to_what_it_cannot_take() -> None:
    goal = usable((OLD, Access.APPEND))
    now = EndState(VECTORS)
    assert not goal.reached(now)
    assert goal.objections(now) == {"deletionVectors"}
    later = EndState(Protocol(1, 2))
    assert goal.reached(later)
    assert goal.objections(later) == frozenset()


def test_each_access_that_can_be_had_is_kept() -> None:
    goal = ClientsSupported((use(OLD, Access.APPEND, Access.READ),), given(VECTORS, ON).needs)
    asked: list[Goal] = []

    def reading_alone(weaker: Goal) -> bool:
        assert isinstance(weaker, ClientsSupported)
        asked.append(weaker)
        return all(use.access == (Access.READ,) for use in weaker.uses)

    (weaker,) = goal.weaker(reading_alone)
    assert isinstance(weaker, ClientsSupported)
    assert [(u.candidate.reference, u.access) for u in weaker.uses] == [
        (goal.uses[0].candidate.reference, (Access.READ,))
    ]
    assert len(asked) == 2
    (all_of_it,) = goal.weaker(lambda _: True)
    assert isinstance(all_of_it, ClientsSupported)
    assert [u.access for u in all_of_it.uses] == [(Access.APPEND,), (Access.READ,)]


def test_versions_and_features_as_goals() -> None:
    assert VersionsAtMost(1, 2).reached(EndState(Protocol(1, 2)))
    assert not VersionsAtMost(1, 2).reached(EndState(Protocol(1, 3)))
    assert not VersionsAtMost(1, 7).reached(EndState(Protocol(2, 5)))
    assert FeaturesAbsent(frozenset({"deletionVectors"})).objections(EndState(VECTORS)) == {
        "deletionVectors"
    }
    assert FeaturesAbsent(frozenset({"rowTracking"})).reached(EndState(VECTORS))


def test_files_that_are_rewritten_are_no_longer_those_of_a_clone() -> None:
    """Delta rewrites every file to remove column mapping, and names it by a relative path."""
    hazards = frozenset({ABSOLUTE_PATHS, MAPPED_PARTITIONS, SPECIAL_LOCATION})
    for mode, left in (("name", {SPECIAL_LOCATION}), ("none", {ABSOLUTE_PATHS, SPECIAL_LOCATION})):
        configuration = {"delta.columnMapping.mode": mode}
        needs = given(carrying("columnMapping"), configuration).needs._replace(hazards=hazards)
        after = requirements_after(needs, EndState(Protocol(1, 2)))
        assert after.hazards == left


def test_files_that_a_purge_rewrites_are_no_longer_those_of_a_clone() -> None:
    hazards = frozenset({ABSOLUTE_PATHS, SPECIAL_LOCATION})
    needs = given(VECTORS, {}).needs._replace(hazards=hazards)
    for relative, left in ((True, {SPECIAL_LOCATION}), (False, hazards)):
        assert (
            requirements_after(needs, EndState(VECTORS, absolute_rewritten=relative)).hazards
            == left
        )


def test_rewritten_files_show_their_partition_values_unless_they_are_timestamps() -> None:
    needs = given(carrying("columnMapping"), {"delta.columnMapping.mode": "name"}).needs
    hidden, prefixes = {HIDDEN_PARTITIONS}, {RANDOM_PREFIXES}
    for hazards, left in (
        (hidden, set()),
        (hidden | {ISO_TIMESTAMPS}, hidden | {ISO_TIMESTAMPS}),
        (hidden | prefixes, prefixes),
    ):
        before = needs._replace(hazards=frozenset(hazards))
        assert requirements_after(before, EndState(Protocol(1, 2))).hazards == left


def test_the_mode_of_column_mapping_is_kept_changed_or_gone() -> None:
    protocol = carrying("columnMapping")
    needs = given(protocol, {"delta.columnMapping.mode": "id"}).needs
    assert dict(needs.modes) == {"columnMapping": "id"}
    for ending, mode in (
        (EndState(protocol), "id"),
        (EndState(protocol, mode="NAME"), "name"),
        (EndState(protocol, frozenset({"columnMapping"})), "none"),
        (EndState(protocol, frozenset({"columnMapping"}), mode="name"), "none"),
    ):
        assert dict(requirements_after(needs, ending).modes) == {"columnMapping": mode}
    assert requirements_after(needs, EndState(Protocol(1, 2))).modes == ()


def test_weaker_goals_end_with_one_that_requires_nothing() -> None:
    end = EndState(VECTORS)
    wanted = FeaturesAbsent(frozenset({"deletionVectors", "invariants"}), "lowest")
    alone, nothing = wanted.weaker(lambda goal: "invariants" in str(goal))
    assert alone == FeaturesAbsent(frozenset({"invariants"}), "lowest")
    assert nothing == FeaturesAbsent(frozenset(), "lowest")
    assert nothing.reached(end)
    pairs = [*VersionsAtMost(2, 5).weaker(lambda _: False)]
    assert pairs[0] == VersionsAtMost(2, 5)
    assert pairs[-1] == VersionsAtMost(3, 7)
    assert {(each.reader, each.writer) for each in pairs if isinstance(each, VersionsAtMost)} == {
        (reader, writer) for reader in (2, 3) for writer in (5, 6, 7)
    }


def test_both_goals_must_be_reached() -> None:
    one, two = (FeaturesAbsent(frozenset({name})) for name in ("deletionVectors", "invariants"))
    both = BothGoals(one, two)
    assert both.objections(EndState(VECTORS)) == {"deletionVectors", "invariants"}
    reached = [
        both.reached(EndState(Protocol.carrying({name, "appendOnly"})))
        for name in ("deletionVectors", "invariants", "changeDataFeed")
    ]
    assert reached == [False, False, True]
    assert (both.kind, both.text) == (one.kind, f"{one.text}; {two.text}")
    assert [*both.weaker(lambda _: True)] == [*one.weaker(lambda _: True)]


def test_all_goals_object_together_and_are_given_up_one_by_one() -> None:
    one, two = (FeaturesAbsent(frozenset({name})) for name in ("deletionVectors", "invariants"))
    low = VersionsAtMost(1, 2)
    every = AllGoals((one, low, two))
    assert every.text == f"{one.text}; {low.text}; {two.text}"
    assert every.objections(EndState(VECTORS)) == {"deletionVectors", "invariants"}
    assert AllGoals(()).objections(EndState(VECTORS)) == frozenset()
    (weaker,) = every.weaker(lambda goal: "deletionVectors" not in goal.text)
    assert weaker == AllGoals((low, two))
    assert [*every.weaker(lambda goal: True)] == [every]
    assert not every.reached(EndState(VECTORS))
    assert every.reached(EndState(Protocol(1, 1)))


CLIENTS = [{"client": OLD, "access": ["read", "append"]}]


@each_row(
    ("goal", "text"),
    [
        ({"undo": "abc", "kind": "drop"}, "undo plan abc"),
        ({"kind": "drop", "features": ["deletionVectors", "x"]}, "without deletionVectors"),
        ({"kind": "drop", "features": ["x"]}, "nothing to drop"),
        (
            {"kind": "to", "reader": "1", "writer": 4},
            "reader version 1 and writer version 4 at most",
        ),
        ({"kind": "for-client", "clients": CLIENTS}, f"{OLD} can read and append"),
        (
            {"kind": "lowest", "include_enabled": False},
            "the lowest protocol: drop what nothing uses",
        ),
        (
            {"kind": "lowest", "include_enabled": True, "clients": CLIENTS},
            f"the lowest protocol: drop what is in use, too; {OLD} can read and append",
        ),
        (
            {"kind": "upgrade", "enable": ["columnMapping"], "mapping_mode": "id", "set": {"a": 1}},
            "enable columnMapping id; set a=1",
        ),
        (
            {
                **{"kind": "upgrade", "enable": ["a", "columnMapping"], "cluster_by": ["a", "b"]},
                **{"isolation": "", "to": {"reader": 2, "writer": 5}, "sql": [1, 2], "keep": [OLD]},
            },
            "enable a, columnMapping; cluster by a, b; isolation level ; reader version 2 and "
            f"writer version 5 at least; 2 SQL statements; {OLD} keep working",
        ),
        ({"kind": "upgrade", "sql": ["x"]}, "1 SQL statement"),
        ({"kind": "policy"}, "what the policy requires"),
    ],
)
def test_goals_in_words(goal: dict[str, Any], text: str) -> None:
    assert goal_text(goal, VECTORS) == text


def test_a_goal_of_another_kind_is_an_error_and_sql_is_part_of_what_is_approved() -> None:
    with pytest.raises(ValueError, match="'more' is not a goal"):
        goal_text({"kind": "more"}, VECTORS)
    plan = plan_upgrade(given(VECTORS), UpgradeRequest(isolation="Serializable"))
    assert approvable_goal(plan) == "isolation level Serializable"
    sql = plan._replace(goal={**plan.goal, "sql": ["a", "b"]})
    assert approvable_goal(sql) == "isolation level Serializable: a; b"


SIGNED = "https://x/a?sig=c4n4ryV4lue9c4n4ryV4lue9"


def test_a_plan_with_a_credential_is_blocked_and_does_not_show_it() -> None:
    plan = plan_upgrade(given(VECTORS), UpgradeRequest(set={"a": SIGNED, "b": "c"}))
    assert (plan.steps, plan.blocked) == ((), (NOT_STORED,))
    assert plan.goal == {"kind": "upgrade", "set": {"a": "https://x/a?sig=***", "b": "c"}}
    assert plan.goal_text == "set a=https://x/a?sig=***, b=c"
    made = plan_downgrade(given(VECTORS), DowngradeRequest(drop=("deletionVectors",)))
    (step,) = made.steps
    secret = step._replace(sql=f"ALTER TABLE t DROP FEATURE `{SIGNED}`")
    other = Alternative("fast", "a", True, VECTORS, Cost(), (step,))
    hidden = block_secrets(
        made._replace(steps=(step, secret), alternatives=(other._replace(steps=(secret,)), other))
    )
    assert (hidden.steps, hidden.blocked) == ((), (NOT_STORED,))
    assert hidden.protocol_after == hidden.protocol_before
    assert hidden.alternatives == (other,)
    assert block_secrets(made) == made


def test_a_hidden_value_is_lost_and_not_part_of_a_rollback() -> None:
    for old, undo in (("y", "('a' = 'y')"), (f"{SIGNED[:-20]}***", None)):
        table = given(Protocol(1, 2), {"a": old})
        (step,) = plan_upgrade(table, UpgradeRequest(set={"a": "x"})).steps
        assert (step.undo is None, step.reversible) == (undo is None, undo is not None)
        assert undo is None or (step.undo or "").endswith(undo)
