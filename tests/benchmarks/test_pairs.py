"""Sides run in turns, and ratios are those of their rounds."""

from __future__ import annotations

import sys
from functools import partial

import pytest

from benchmarks.pairs import Cost, Side, in_turns, ratio, run


def recorded(names: str) -> tuple[dict[str, Side], list[str]]:
    """Sides of these names, and the order in which they run."""
    order: list[str] = []

    def side(name: str) -> Cost:
        order.append(name)
        return Cost(float(len(order)))

    return {name: partial(side, name) for name in names}, order


def test_every_other_round_is_in_reverse_after_one_that_does_not_count() -> None:
    sides, order = recorded("ab")
    costs = in_turns(sides, 4)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab" + "ba"
    assert [cost.seconds for cost in costs["a"]] == [3, 6, 7, 10]


def test_a_slow_side_runs_in_fewer_rounds() -> None:
    sides, order = recorded("abc")
    costs = in_turns(sides, 3, {"b": 1}, warm=False)
    assert "".join(order) == "abc" + "ca" + "ac"
    assert {name: len(each) for name, each in costs.items()} == {"a": 3, "b": 1, "c": 3}


def test_a_ratio_is_the_median_of_the_rounds_own() -> None:
    # A machine that slows down by and by moves both sides, and not their ratio.
    found = ratio([1, 2, 4, 8, 16], [2, 4, 8, 16, 32])
    assert (found.median, found.low, found.high, found.pairs) == (0.5, 0.5, 0.5, 5)


def test_the_spread_is_the_same_whenever_it_is_asked_for() -> None:
    ones, others = [1.0, 1.1, 0.9, 1.3, 1.0, 1.05, 0.8], [2.0, 2.1, 2.2, 2.0, 1.9, 2.0, 2.0]
    found = ratio(ones, others)
    assert found == ratio(ones, others)
    assert 0.4 <= found.low < found.median < found.high <= 0.65


def test_rounds_that_one_side_lacks_are_in_no_ratio() -> None:
    assert ratio([1, 1, 100], [2, 2]).pairs == 2


def test_a_process_tells_its_own_processor_time_and_memory() -> None:
    code = "import time; held = b'x' * 100_000_000; began = time.process_time()\n"
    busy = code + "while time.process_time() < began + 0.2: pass"
    cost = run([sys.executable, "-c", busy])
    assert cost.processor is not None
    assert cost.mebibytes is not None
    assert 0.2 <= cost.processor < cost.seconds * 2
    assert cost.mebibytes > 95


def test_a_process_that_fails_ends_the_measurement() -> None:
    with pytest.raises(SystemExit, match="exit code 3"):
        run([sys.executable, "-c", "raise SystemExit(3)"], codes=(0, 1))
