"""Versions as people write them, and their order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version as Packaged

from deltaproto.clients import version_scheme
from deltaproto.clients.version_scheme import SCHEMES, Version
from tests.support.failures import each_row

ORDERED = {
    "dotted": (
        ("0.6.4", "v0.6.4"),
        ("0.24",),
        ("0.299", "0.299.0"),
        ("1.0.dev1", "1.0a1", "1.0rc2", "1.0-SNAPSHOT", "1.0.0-preview", "1.0-beta.1"),
        ("1", "1.0", "1.0.0", " 1.0 ", "1.0.post1"),
        ("1.0.1",),
        ("1.9",),
        ("1.10",),
        ("4.0.0rc1",),
        ("4.0.0",),
    ),
    "number": (("3", "engine v3", "Engine version 3", "v3"), ("99",), ("476",), ("1000",)),
    "runtime": (
        ("9.1", "9.1 LTS", "DBR 9.1"),
        ("14.2",),
        ("14.3 LTS", "14.3", "14.3.x-photon-scala2.12", "Databricks Runtime 14.3 LTS"),
        ("18.0-beta", "18.0-rc1", "18.0.x-beta-scala2.13", "18.0-snapshot"),
        ("18.0", "18.0.x-scala2.13"),
        ("18.2", "18.2.x-photon-scala2.13"),
        ("18 (Beta)", "18-beta"),
        ("18 LTS", "18", "DBR 18", "18.x-photon-scala2.13"),
        ("18 LTS+2026-08-18", "18 2026-08-18", "18 (2026-08-18)", "18.x-2026-08-18"),
        ("18 LTS, 2026-09-01", "18:2026-09-01"),
        ("19", "19.0", "19.x-scala2.13"),
        ("19+2026-07-23",),
    ),
    "date": (
        ("2025-12-31",),
        ("2026-03-02", "2026.3.2", "2026.03.02"),
        ("2026-03-10",),
        ("2026.11.1",),
    ),
}

REFUSED = {
    "dotted": ("", "latest", "1.x", "1..2", ".1", "1.", "1.2.3.4.5.6", "-1", "1.0+cu118", "١.٢"),
    "number": ("", "476.1", "v", "engine", "-3", "1234567", "three"),
    "runtime": (
        *("", "14", "14.3.3.3", "LTS", "14.3 later", "serverless", "19.1", "17 LTS"),
        *("14.3+2026-01-01", "19+2026-13-01", "19+2026", "19 2026-02-30"),
    ),
    "date": ("", "2026-03", "02.03.2026", "2026-13-01", "2026-02-30", "0000-01-01", "today"),
    "none": ("", "1", "2026-03-02"),
}


def number(text: str, name: str) -> Version:
    version = version_scheme.parse_version(name, text)
    assert version is not None, f"{text} is no {name} version"
    return version


@pytest.mark.parametrize("name", ORDERED)
def test_spellings_of_a_version_are_equal_and_versions_are_in_order(name: str) -> None:
    for earlier, later in pairwise(ORDERED[name]):
        assert {number(text, name) for text in earlier} == {number(earlier[0], name)}
        assert number(earlier[-1], name) < number(later[0], name)


@each_row(("name", "text"), [(n, t) for n, texts in REFUSED.items() for t in texts])
def test_what_is_no_version(name: str, text: str) -> None:
    assert version_scheme.parse_version(name, text) is None


def test_every_scheme_has_versions_and_refusals_here() -> None:
    assert set(ORDERED) | {"none"} == set(SCHEMES) == set(REFUSED)
    assert all(
        version_scheme.parse_version(name, text) is not None
        for name, text in version_scheme.VERSION_EXAMPLES.items()
    )


@given(
    st.sampled_from(SCHEMES), st.text(st.sampled_from("0123456789.-vrcalts ex()") | st.characters())
)
def test_no_text_makes_it_fail(name: str, text: str) -> None:
    found = version_scheme.parse_version(name, text)
    assert found is None or (name != "none" and all(part >= 0 for part in found.numbers))


plain_dotted = st.lists(st.integers(0, 30), min_size=1, max_size=5).map(
    lambda parts: ".".join(map(str, parts))
)
suffixes = st.sampled_from(["", "", "rc1", "a2", ".dev3", "b1"])


@given(plain_dotted, plain_dotted)
def test_dotted_order_is_that_of_python_packages(one: str, other: str) -> None:
    ours, theirs = (
        (number(one, "dotted"), number(other, "dotted")),
        (Packaged(one), Packaged(other)),
    )
    assert (ours[0] < ours[1]) == (theirs[0] < theirs[1])
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])


@given(plain_dotted, suffixes, plain_dotted, suffixes)
def test_a_pre_release_never_passes_its_release(one: str, a: str, other: str, b: str) -> None:
    ours = number(one + a, "dotted"), number(other + b, "dotted")
    # Pre-releases of one release are equal here; packaging tells them apart.
    if ours[0] != ours[1]:
        assert (ours[0] < ours[1]) == (Packaged(one + a) < Packaged(other + b))
    if a:
        assert number(one + a, "dotted") < number(one, "dotted")
