"""What `make mutation` counts and draws; mutmut itself is not run here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.mutation import drawn, interval, told, tried
from tools.trying import CONTROL

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


@pytest.mark.parametrize(
    ("lines", "told_so_far"),
    [
        ((f"{CONTROL} survived", f"{NAMES[0]} killed"), {NAMES[0]: "killed"}),
        ((f"{CONTROL} killed", f"{NAMES[0]} killed"), "fail without a mutant"),
        ((), "stopped before"),
    ],
)
def test_a_run_that_is_stopped_tells_what_it_has_tried(
    lines: tuple[str, ...], told_so_far: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(words: list[str], **_: object) -> None:
        Path(words[4]).write_text("\n".join(lines))
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", stopped)
    if isinstance(told_so_far, dict):
        assert tried(NAMES, 2) == told_so_far
    else:
        with pytest.raises(SystemExit, match=str(told_so_far)):
            tried(NAMES, 2)
