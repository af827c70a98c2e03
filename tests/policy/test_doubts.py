"""What keeps every verdict from being ok."""

from __future__ import annotations

from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.hazards import describe_inconsistencies


def test_a_property_without_a_value_is_one() -> None:
    (doubt,) = describe_inconsistencies((), {"a": None, "b": "c"})
    assert doubt == "the property a is stored without a value, and some clients fail on that"


def test_an_invalid_property_value_is_one() -> None:
    found = Finding("DP150", Severity.ERROR, "delta.appendOnly is 'yes'", "set it to true", "t")
    (doubt,) = describe_inconsistencies([found], {})
    assert doubt == "delta.appendOnly is 'yes' (DP150): clients handle this differently"
