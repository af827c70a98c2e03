"""The section `rollout` of a policy, and which tables it puts into which wave."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from deltaproto.planning.rollout import RolloutTable, assign_waves
from deltaproto.planning.search.cost import Cost
from deltaproto.policy.document import PolicyError, load_policy
from deltaproto.policy.document.model import RolloutSettings
from deltaproto.policy.document.source import parse_text
from tests.policy.document.test_ready_policies import VALIDATOR, accepted, plain

FULL = """
policy_version: 1
rollout:
  canary: ["lake/dev/*"]
  waves: [2, 10%, 50%]
  soak: 36h
  parallel: 4
  max_failures: 1
  hook_timeout: 30m
  rehearse: true
"""
REFUSED = {
    "{}": "a rollout without waves",
    "{waves: []}": "a rollout without waves",
    "{waves: [0]}": "a number of tables such as 5",
    "{waves: [60%, 50%]}": "more than 100%",
    "{waves: [1], rehearse: perhaps}": "true or false",
    "{waves: [1], soak: 36}": "a time such as 30m, 24h or 7d",
    "{waves: [1], soak: 1w}": "a time such as 30m, 24h or 7d",
    "{waves: [1], parallel: 0}": "a number from 1 to 64",
    "{waves: [1], hook_timeout: 2d}": "a time from 1m to 24h",
    "{waves: [1], soaks: 1h}": 'did you mean "soak"',
    '{canary: ["[ab]"]}': "can never match",
}


def loaded(text: str, tmp_path: Path) -> RolloutSettings:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    found = load_policy(str(path), rules=(), today=datetime.date(2026, 11, 26)).rollout
    assert found is not None
    return found


def waves(settings: RolloutSettings, count: int) -> dict[str, list[str]]:
    planned = [
        (RolloutTable(f"{n:016x}", f"t{n}", f"file:/lake/{'dev' if n < 2 else 'p'}/t{n}", ""), cost)
        for n in range(count)
        for cost in [Cost(bytes=-n)]
    ]
    assigned = assign_waves(settings, planned)
    assert assigned == assign_waves(settings, reversed(planned))
    return {wave.name: [table.table for table in wave.tables] for wave in assigned}


def test_every_key_is_read_and_in_the_schema(tmp_path: Path) -> None:
    settings = loaded(FULL, tmp_path)
    assert (settings.soak_hours, settings.parallel, settings.max_failures) == (36, 4, 1)
    assert (settings.canary, settings.hook_minutes) == (("lake/dev/*",), 30)
    assert settings.rehearse
    assert VALIDATOR.is_valid(plain(parse_text(FULL)))


@pytest.mark.parametrize("text", REFUSED)
def test_mistakes_are_errors(text: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        loaded(f"policy_version: 1\nrollout: {text}", tmp_path)
    assert REFUSED[text] in caught.value.message + caught.value.hint
    # A schema cannot add percentages, and does not know which patterns never match.
    if text not in ("{waves: [60%, 50%]}", "{waves: [1], hook_timeout: 2d}", '{canary: ["[ab]"]}'):
        assert accepted(f"policy_version: 1\nrollout: {text}", tmp_path) == (False, False)


def test_waves_are_canaries_then_cheapest_first_then_the_rest(tmp_path: Path) -> None:
    settings = loaded(FULL, tmp_path)
    found = waves(settings, 13)
    assert found["canary"] == ["t1", "t0"]
    assert found["wave 1"] == ["t12", "t11"]
    # Percentages are of the 11 tables that are not canaries, rounded up.
    assert [len(tables) for tables in found.values()] == [2, 2, 2, 6, 1]
    flat = [table for tables in found.values() for table in tables]
    assert flat == [*found["canary"], *(f"t{n}" for n in range(12, 1, -1))]
    # A small folder has no empty wave.
    assert waves(settings, 3) == {"canary": ["t1", "t0"], "wave 1": ["t2"]}
