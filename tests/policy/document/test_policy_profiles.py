"""Named settings that patterns inherit."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.policy.document import Policy, PolicyError, load_policy
from deltaproto.policy.document.merging import Merged, find_matching, merge_settings
from deltaproto.policy.document.patterns import TableNames

Load = Callable[[str], Policy]
PROFILES = """\
profiles:
  gold-2026.1:
    clients: [trino@476]
    max_reader_version: 1
    require_features: [appendOnly]
    require_properties: {delta.enableChangeDataFeed: true, delta.appendOnly: false}
    severities: {DP201: warning}
"""


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def loaded(text: str) -> Policy:
        file = tmp_path / "p.yaml"
        file.write_text(f"policy_version: 1\n{text}", encoding="utf-8")
        return load_policy(str(file), rules=("DP201",), today=datetime.date(2026, 11, 26))

    return loaded


def merged(policy: Policy, table: str) -> Merged:
    return merge_settings(policy, find_matching(policy, TableNames(table, None)))


def test_a_pattern_inherits_the_settings(load: Load) -> None:
    for text in (
        # Profiles may stand below the patterns that name them.
        f'tables:\n  "gold.*": {{profile: gold-2026.1}}\n{PROFILES}',
        f'{PROFILES}tables:\n  "gold.*": {{profile: gold-2026.1}}\n',
    ):
        policy = load(text)
        found = merged(policy, "gold.orders")
        assert [each.text for each in found.settings.clients or ()] == ["trino@476"]
        assert found.settings.max_reader_version == 1
        assert {each.profile for each in found.decisions} == {"gold-2026.1"}
        assert {each.pattern for each in found.decisions} == {"gold.*"}
        assert found.notices == ()
        assert merged(policy, "silver.orders").settings.clients is None
        assert [each.text for each in policy.declared()] == ["trino@476"]


OWN = """\
tables:
  "gold.*":
    profile: gold-2026.1
    clients: [duckdb@1.1.0]
    max_reader_version: 3
    require_features: [rowTracking]
    require_features_replace: true
    require_properties: {delta.appendOnly: true}
"""


def test_settings_of_the_pattern_come_after_those_of_the_profile(load: Load) -> None:
    found = merged(load(PROFILES + OWN), "gold.orders")
    assert [each.text for each in found.settings.clients or ()] == ["trino@476", "duckdb@1.1.0"]
    assert found.settings.max_reader_version == 3
    assert found.settings.require_features == ("rowTracking",)
    assert found.settings.require_properties == {
        "delta.enableChangeDataFeed": "true",
        "delta.appendOnly": "true",
    }
    sources = {each.setting: each.profile for each in found.decisions}
    assert sources["max_reader_version"] is None
    assert sources["severities.DP201"] == "gold-2026.1"
    # A setting that weakens the profile gets a notice, one that adds to it does not.
    messages = [notice.message for notice in found.notices]
    assert any('overriding 1 for "gold.*" (profile gold-2026.1)' in each for each in messages)
    assert any("appendOnly not required there" in each for each in messages)
    assert not any("adds to" in each for each in messages)


def test_a_narrower_pattern_decides_over_the_profile_of_a_wider_one(load: Load) -> None:
    text = '  "gold.orders": {max_reader_version: 2}\n  "gold.*": {profile: gold-2026.1}\n'
    found = merged(load(f"{PROFILES}tables:\n{text}"), "gold.orders")
    assert found.settings.max_reader_version == 2
    text = '  "gold.*": {max_reader_version: 2}\n  "gold.orders": {profile: gold-2026.1}\n'
    found = merged(load(f"{PROFILES}tables:\n{text}"), "gold.orders")
    assert found.settings.max_reader_version == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('tables: {"g.*": {profile: gold-2026.2}}\n', 'did you mean "gold-2026.1"'),
        ('tables: {"g.*": {profile: []}}\n', "expected"),
        ("tables: {}\n  # none\nprofiles: {}\n", "is already at 2:1"),
    ],
)
def test_mistakes_are_located(text: str, message: str, load: Load) -> None:
    with pytest.raises(PolicyError) as caught:
        load(PROFILES + text)
    assert message in f"{caught.value.message} {caught.value.hint}"


def test_a_profile_does_not_inherit(load: Load) -> None:
    with pytest.raises(PolicyError) as caught:
        load("profiles: {a: {profile: b}, b: {history: keep}}\n")
    assert 'unknown key "profile"' in caught.value.message


def test_a_missing_profile_is_defined_in_profiles(load: Load) -> None:
    with pytest.raises(PolicyError) as caught:
        load('tables: {"g.*": {profile: gold}}\n')
    assert caught.value.hint == "define it in profiles"


def test_a_profile_with_an_error_is_not_unknown_as_well(load: Load) -> None:
    with pytest.raises(PolicyError) as caught:
        load('tables: {"g.*": {profile: gold}}\nprofiles: {gold: {max_reader_version: none}}\n')
    assert "unknown profile" not in f"{caught.value.message} {caught.value.hint}"
