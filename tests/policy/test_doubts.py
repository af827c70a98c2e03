"""What keeps every verdict from being ok."""

from __future__ import annotations

from deltaproto.policy.doubts import doubts, literal_percent


def test_a_property_without_a_value_is_one() -> None:
    (doubt,) = doubts((), {"a": None, "b": "c"})
    assert doubt == "the property a is stored without a value, on which some clients fail"


def test_only_local_paths_hold_percent_signs_literally() -> None:
    assert literal_percent("file:///t%2520")
    assert not literal_percent("file:///t%20")
    assert not literal_percent("s3://bucket/t%2520")
