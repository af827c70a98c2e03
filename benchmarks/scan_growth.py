"""Time of `deltaproto scan` against the number of tables, and what else reads them all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks import single_tables
from benchmarks.fleet_tables import make_tables
from benchmarks.growth import Growth, grown
from benchmarks.page import Section
from benchmarks.pairs import Cost, Side
from benchmarks.peers import Peers, deltaproto, pool
from benchmarks.scale import Scale

_TOLD = """
Tables of three commits with checksums, in folders of a hundred. Counted are whole processes with
their start, so that a few tables cost what starting costs. `deltaproto` finds the tables, reads and
judges them; `--inventory` also writes the inventory. The peers are given the names: `deltalake` is
`DeltaTable(path).protocol()` in a pool of eight threads, `delta-kernel-rs` a native loop with one
engine, Spark a loop of `DESCRIBE DETAIL` in a warm session, which is left out where it would take
minutes.
"""


def by_tables(folder: Path, scale: Scale, peers: Peers) -> Section:
    def sides(root: Path, size: int) -> Mapping[str, Side]:
        names = root.with_suffix(".txt")
        found: dict[str, Side] = {
            "deltaproto": partial(deltaproto, "scan", root, "--quiet"),
            "deltalake, 8 threads": partial(pool, names),
        }
        if peers.kernel:
            found["delta-kernel-rs"] = partial(peers.kernel.each, names)
        if peers.spark and size <= scale.by_spark:
            found["Spark, warm session"] = partial(peers.spark.detail, *_names(root))
        return {**found, "deltaproto --inventory": _Kept(root)}

    growth = Growth(
        file="scan-by-tables.svg",
        title="Time of scan by number of tables",
        told=_TOLD,
        across="tables",
        short="tables",
        up="time for all tables",
        sides=sides,
        make=lambda root, size: single_tables.apart(_made, root, size),
    )
    return grown(folder, growth, scale.tables, scale.rounds, scale.slow)


class _Kept:
    """A scan with an inventory, each into a folder of its own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._count = 0

    def __call__(self) -> Cost:
        self._count += 1
        to = self._root.with_name(f"{self._root.name}-inventory-{self._count}")
        return deltaproto("scan", self._root, "--quiet", "--inventory", to)


def _made(root: Path, size: int) -> None:
    root.with_suffix(".txt").write_text("\n".join(make_tables(root, size)) + "\n")


def _names(root: Path) -> list[str]:
    return root.with_suffix(".txt").read_text().splitlines()
