"""What keeps every verdict from being ok."""

from __future__ import annotations

from deltaproto.policy.doubts import doubts


def test_a_property_without_a_value_is_one() -> None:
    (doubt,) = doubts((), {"a": None, "b": "c"})
    assert doubt == "the property a is stored without a value, on which some clients fail"
