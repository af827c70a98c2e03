"""Waves of a rollout, and what a table's new plan may not change."""

from __future__ import annotations

import pytest

from deltaproto.clients.model import Access, Verdict
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.plan import Blocked, ClientChange, Plan
from deltaproto.planning.rollout import RolloutTable, assign_waves, find_objections
from deltaproto.planning.search.cost import Cost
from deltaproto.policy.document.model import RolloutSettings, WaveSize
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_classics import given

PLAN = plan_downgrade(
    given(Protocol(1, 3), {"delta.constraints.c": "id > 0"}),
    DowngradeRequest(drop=("checkConstraints",)),
)
COST = Cost(1, 0, 2_000, 1, 4)


def table(name: str, location: str, plan_id: str = "1") -> RolloutTable:
    return RolloutTable(plan_id, name, location, f"{name}.json")


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ((), [5]),
        ((WaveSize(2), WaveSize(1)), [2, 1, 2]),
        ((WaveSize(5),), [5]),
        ((WaveSize(9), WaveSize(1)), [5]),
        ((WaveSize(1, percent=True), WaveSize(41, percent=True)), [1, 3, 1]),
        ((WaveSize(100, percent=True),), [5]),
    ],
)
def test_sizes_of_waves(sizes: tuple[WaveSize, ...], lengths: list[int]) -> None:
    planned = [(table(f"t{n}", f"file:/lake/t{n}"), Cost()) for n in range(5)]
    found = assign_waves(RolloutSettings(waves=sizes), planned)
    assert [(wave.name, len(wave.tables)) for wave in found] == [
        (f"wave {number}", length) for number, length in enumerate(lengths, 1)
    ]
    assert [each for wave in found for each in wave.tables] == [each for each, _ in planned]


def test_equal_costs_are_ordered_by_location_and_canaries_match_names_or_locations() -> None:
    tables = [
        table("c", "file:/lake/aaa", "2"),
        table("b", "file:/lake/bbb"),
        table("main.a", "file:/lake/ccc"),
        table("c", "file:/lake/aaa", "1"),
    ]
    planned = [(each, Cost()) for each in tables]
    (only,) = assign_waves(RolloutSettings(), planned)
    assert only == ("wave 1", (tables[3], tables[0], tables[1], tables[2]))
    settings = RolloutSettings(canary=("main.a", "file:/lake/bbb"))
    assert [*assign_waves(settings, planned)] == [
        ("canary", (tables[1], tables[2])),
        ("wave 1", (tables[3], tables[0])),
    ]


def change(client: str, access: Access, before: Verdict, after: Verdict) -> ClientChange:
    return ClientChange(client, None, access, before, after, ("f",), "why")


def objections(old: Plan, new: Plan) -> list[str]:
    return [*find_objections(old._replace(cost=COST), new)]


@pytest.mark.parametrize(
    ("member", "more", "text"),
    [
        ("irreversible", 2, "2 losses cannot be reverted, instead of 1"),
        ("history", 1, "it deletes history"),
        ("bytes", 3_000, "it rewrites up to 3,000 bytes, instead of 2,000"),
        ("waits", 2, "it waits 2 times, instead of 1"),
        ("commits", 5, "it makes up to 5 commits, instead of 4"),
    ],
)
def test_a_new_plan_may_cost_less_but_not_more(member: str, more: int, text: str) -> None:
    assert objections(PLAN, PLAN._replace(cost=COST)) == []
    assert objections(PLAN, PLAN._replace(cost=Cost())) == []
    assert objections(PLAN, PLAN._replace(cost=COST._replace(**{member: more}))) == [text]


def test_an_objection_to_one_has_the_singular() -> None:
    old, new = PLAN._replace(cost=Cost()), PLAN._replace(cost=Cost(waits=1, irreversible=1))
    assert [*find_objections(old, new)] == [
        "1 loss cannot be reverted, instead of 0",
        "it waits 1 time, instead of 0",
    ]


def test_a_new_plan_may_take_no_other_access() -> None:
    known = change("a@1", Access.READ, Verdict.OK, Verdict.REFUSED)
    new = (
        known._replace(after=Verdict.WRONG),
        change("a@1", Access.APPEND, Verdict.OK, Verdict.UNKNOWN),
        change("b@1", Access.READ, Verdict.OK, Verdict.REFUSED),
        change("c@1", Access.READ, Verdict.REFUSED, Verdict.OK),
    )
    plan = PLAN._replace(cost=COST)
    # An access that the old plan keeps counts as another.
    old = plan._replace(clients=(known, change("b@1", Access.READ, Verdict.OK, Verdict.OK)))
    assert objections(old, plan._replace(clients=new)) == [
        "a@1 append would be unknown",
        "b@1 read would be refused",
    ]


def test_a_new_plan_must_do_something_and_not_be_blocked() -> None:
    reasons = tuple(Blocked(None, text, "") for text in ("one", "two"))
    plan = PLAN._replace(cost=COST)
    assert objections(PLAN, plan._replace(blocked=reasons)) == [
        "it is blocked: one",
        "it is blocked: two",
    ]
    assert objections(PLAN, plan._replace(unmet=reasons)) == []
    assert objections(PLAN, plan._replace(unmet=reasons, steps=())) == [
        "no statement improves the table's compliance: one"
    ]
