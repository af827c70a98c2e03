"""A growth curve: every side at every size, as a picture, as a table, and as ratios."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.growth import Growth, grown
from benchmarks.pairs import Cost, Side, own_peak


def test_every_side_is_measured_where_it_is_and_bounded_at_the_largest_size(tmp_path: Path) -> None:
    made: list[tuple[str, int]] = []
    asked: list[str] = []

    def side(name: str, cost: Cost) -> Side:
        def measure() -> Cost:
            asked.append(name)
            return cost

        return measure

    def sides(root: Path, size: int) -> Mapping[str, Side]:
        assert (root.name, size) in made
        found = {
            "deltaproto": side("deltaproto", Cost(0.1, 0.1, 20.0)),
            "peer": side("peer", Cost(0.01 * size, 0.02 * size, own_peak() * 4)),
        }
        found["small"] = side("small", Cost(1, None, 1.0))
        return found if size > 10 else {**found, "Spark": side("Spark", Cost(5))}

    growth = Growth(
        file="by-things.svg",
        title="Time by things",
        told="What is counted.",
        across="things in a table",
        short="things",
        up="time",
        sides=sides,
        make=lambda root, size: made.append((root.name, size)),
        at_most={("peer", "time"): 0.05},
    )
    section = grown(tmp_path, growth, (10, 100), rounds=3, slow=1)

    assert made == [("by-things-10", 10), ("by-things-100", 100)]
    assert asked.count("Spark") == 1 + 1
    assert asked.count("peer") == 2 * (1 + 3)
    assert [(row.name, row.of, row.at_most) for row in section.rows] == [
        ("deltaproto / peer, 100 things", "time", 0.05),
        ("deltaproto / peer, 100 things", "processor", None),
        ("deltaproto / peer, 100 things", "peak memory", None),
        ("deltaproto / small, 100 things", "time", None),
    ]
    assert section.missed == ["deltaproto / peer, 100 things"]
    few = (
        "| 10 | 100 ms | 100 ms<br>1.00 (1.00 to 1.00) | 1.00 s<br>0.10 (0.10 to 0.10) | 5.00 s<br>"
    )
    assert few in section.more
    assert (
        "| 100 | 100 ms | 1.00 s<br>0.10 (0.10 to 0.10) | 1.00 s<br>0.10 (0.10 to 0.10) |  |"
        in section.more
    )
    assert "(pictures/by-things.svg)" in section.more
    assert section.pictures["by-things.svg"].count("<title>") == 7
