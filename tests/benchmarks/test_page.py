"""The page of results: two parts that leave each other alone, and pictures that are whole."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.page import Figure, Section, row, write
from benchmarks.pairs import Cost
from benchmarks.picture import Point, Series, curves, duration

WHERE = [("processor", "one"), ("deltalake", "1.0")]
FAST = [Cost(0.1, 0.05, 20.0), Cost(0.11, 0.06, 21.0)]
SLOW = [Cost(0.2, 0.1, 40.0), Cost(0.22, 0.12, 42.0)]
SVG = "{http://www.w3.org/2000/svg}"


def section(title: str) -> Section:
    figures = [Figure("on its own", 12.0, "MiB", 10.0)]
    return Section(title, "What is counted.", [row("a / b", FAST, SLOW, at_most=0.6)], figures)


def test_a_part_is_written_anew_and_the_other_one_is_kept(tmp_path: Path) -> None:
    write(tmp_path, "bench-fleet", WHERE, [section("Fleet")])
    write(tmp_path, "bench", WHERE, [section("Old")])
    text = write(tmp_path, "bench", WHERE, [section("New")]).read_text()
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        "### New",
        "### Fleet",
    ]
    assert text == write(tmp_path, "bench", WHERE, [section("New")]).read_text()


def test_a_part_that_was_never_measured_says_so(tmp_path: Path) -> None:
    text = write(tmp_path, "bench", WHERE, []).read_text()
    assert "Not measured yet: `make bench-fleet`." in text


def test_a_row_gives_medians_least_ratio_spread_and_bound(tmp_path: Path) -> None:
    text = write(tmp_path, "bench", WHERE, [section("One")]).read_text()
    assert (
        "| a / b | time | 105 ms, least 100 ms | 210 ms, least 200 ms "
        "| 0.50 (0.50 to 0.50) | 2 | 0.60 |"
    ) in text
    assert "| on its own | 12.0 MiB | 10.0 **missed** |" in text


def test_what_is_missed_is_named() -> None:
    assert section("One").missed == ["on its own"]


@pytest.mark.parametrize(("of", "median"), [("processor", 0.5), ("peak memory", 0.5)])
def test_a_row_compares_what_it_is_asked_for(of: str, median: float) -> None:
    assert row("a / b", FAST, SLOW, of).ratio.median == pytest.approx(median)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0712, "71.2 ms"),
        (2.5, "2.50 s"),
        (123.4, "123 s"),
        (5e-5, "50.0 µs"),
        (0.9996, "1000 ms"),
    ],
)
def test_durations_have_the_unit_that_fits(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def drawn(series: list[Series]) -> ElementTree.Element:
    return ElementTree.fromstring(curves("A & B", "things", "time", series))


def test_a_picture_names_each_series_within_its_frame_and_apart() -> None:
    series = [
        Series(f"<{n}>", [Point(10, 0.09, 0.1, 0.2), Point(1000, 0.1, 0.11 + n / 1e4, 0.2)])
        for n in range(6)
    ]
    root = drawn(series)
    names = {
        t.text: float(t.get("y", "")) for t in root.iter(f"{SVG}text") if "name" in str(t.attrib)
    }
    assert set(names) == {each.name for each in series}
    heights = sorted(names.values())
    assert all(after - before >= 16 for before, after in itertools.pairwise(heights))
    assert 0 < heights[0] < heights[-1] < float(root.get("height", ""))


def test_a_point_lies_by_its_logarithm() -> None:
    root = drawn([Series("one", [Point(10**n, 10**-n, 10**-n, 10**-n) for n in range(1, 5)])])
    (curve,) = [p.get("d", "") for p in root.iter(f"{SVG}path") if "curve" in p.get("class", "")]
    places = [tuple(map(float, each)) for each in re.findall(r"([\d.]+) ([\d.]+)", curve)]
    steps = {
        (round(after[0] - before[0]), round(after[1] - before[1]))
        for before, after in itertools.pairwise(places)
    }
    assert len(places) == 4
    assert max(x for x, _ in steps) - min(x for x, _ in steps) <= 1
    assert all(y > 0 for _, y in steps)


def test_a_picture_of_one_size_only_is_drawn() -> None:
    assert drawn([Series("one", [Point(7, 0.1, 0.1, 0.1)])]).tag == f"{SVG}svg"
