"""What `make mutation` counts and draws; mutmut itself is not run here."""

from __future__ import annotations

import pytest

from tools.mutation import drawn, interval, told

NAMES = [
    f"deltaproto.{package}.x_f__mutmut_{number}"
    for package in ("planning", "protocol")
    for number in range(10, 40)
]


def test_a_sample_is_the_same_for_a_seed_and_takes_of_each_package() -> None:
    sample = [*drawn(NAMES, 4, 1)]
    assert sample == [*drawn([*reversed(NAMES)], 4, 1)]
    assert sample != [*drawn(NAMES, 4, 2)]
    assert len({*sample}) == 8
    assert sum(".planning." in name for name in sample) == 4
    assert sorted(drawn(NAMES, 99, 1)) == sorted(NAMES)


@pytest.mark.parametrize(
    ("killed", "tried", "low", "high"),
    # From the table in Newcombe (1998), "Two-sided confidence intervals for the single proportion".
    [(81, 263, 25.53, 36.62), (15, 148, 6.24, 16.05), (0, 20, 0.0, 16.11), (1, 29, 0.61, 17.18)],
)
def test_wilsons_interval(killed: int, tried: int, low: float, high: float) -> None:
    assert interval(killed, tried) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))


def test_what_no_test_calls_has_survived(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = ("killed", "killed", "endless", "survived", "not called")
    found = dict(zip(NAMES, outcomes, strict=False))
    assert told("planning", NAMES, found) == pytest.approx(60)
    printed = capsys.readouterr().out
    assert f"survived: {NAMES[3]}" in printed
    assert f"not called: {NAMES[4]}" in printed
    assert "planning: 30 mutants, 5 tried, 3 killed (1 without an end)" in printed
