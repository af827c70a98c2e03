"""The whole command `scan ROOT --inventory INVENTORY`: start, discovery, reading and inventory.

One of its fleets is that of the tests, which no benchmark has made. The peers are whole processes,
too.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.fleet_tables import make_tables
from benchmarks.lake_tables import make_lake
from benchmarks.page import Figure, Row, Section, row
from benchmarks.pairs import Cost, Side, in_turns, run, seconds
from benchmarks.scale import FleetScale
from tests.fleet.fleets import date_files, make_fleet

_FLOOR = """
import json, os, sys
for table in open(sys.argv[1]).read().splitlines():
    log = table + "/_delta_log"
    try:
        newest = max((name for name in os.listdir(log) if name.endswith(".crc")), default=None)
        if newest:
            json.loads(open(f"{log}/{newest}", "rb").read())
    except (OSError, ValueError):
        pass
"""
_POOL = """
import sys
from concurrent.futures import ThreadPoolExecutor
from deltalake import DeltaTable
def read(table):
    try:
        return DeltaTable(table).protocol()
    except BaseException as error:
        return error
with ThreadPoolExecutor(int(sys.argv[2])) as pool:
    list(pool.map(read, open(sys.argv[1]).read().splitlines()))
"""
_THREADS = (1, 4, 8, 16)
_INTRO = """
Whole processes with cold Python. The small fleet has {tables:,} tables of four kinds with three
commits and checksums. The mixed fleet has as many hand-made tables: with and without checksums
and checkpoints, with all features, hardly two alike, and some broken. The lake has as many tables
without checksums, each with its own schema, and two of five with a checkpoint. The floor lists
each log and parses its newest checksum, if there is one, in Python. deltalake is
`DeltaTable(path).protocol()` in the fastest of pools with {pools} threads, here {threads}. Both get
the tables' names from a file and keep nothing, where `scan` finds the tables and writes the
inventory. A rescan is the same command again: no log has changed.
"""


def measured(folder: Path, scale: FleetScale) -> Section:
    """First scans, rescans, the floor and deltalake's pool, in turns."""
    print(f"whole scan command, {scale.tables:,} tables", flush=True)
    small, mixed, lake, few = (folder / name for name in ("small", "mixed", "lake", "two"))
    names, mixed_names = folder / "small.txt", folder / "mixed.txt"
    names.write_text("\n".join(make_tables(small, scale.tables)) + "\n")
    mixed_tables = make_fleet(mixed, seed=1, count=scale.tables)
    mixed_names.write_text("".join(f"{table}\n" for table in mixed_tables))
    lake_names = folder / "lake.txt"
    lake_names.write_text("\n".join(make_lake(lake, scale.tables)) + "\n")
    make_tables(few, 2)
    for root in (small, lake, few):
        date_files(root)
    pool = partial(_python, _POOL)
    threads = str(min(_THREADS, key=lambda count: pool(str(names), str(count)).seconds))
    numbers = itertools.count()

    def first(root: Path) -> Side:
        return lambda: _scan(root, folder / f"new-{next(numbers)}")

    def again(root: Path) -> Side:
        known = folder / f"known-{root.name}"
        _scan(root, known)
        return lambda: _scan(root, known)

    costs = in_turns(
        {
            "floor": partial(_python, _FLOOR, str(names)),
            "deltalake": partial(pool, str(names), threads),
            "scan": first(small),
            "unsaved scan": partial(_scan, small),
            "rescan": again(small),
            "mixed floor": partial(_python, _FLOOR, str(mixed_names)),
            "mixed deltalake": partial(pool, str(mixed_names), threads),
            "mixed scan": first(mixed),
            "mixed rescan": again(mixed),
            "lake deltalake": partial(pool, str(lake_names), threads),
            "lake scan": first(lake),
            "lake rescan": again(lake),
            "Python": partial(_python, "pass"),
            "two tables": first(few),
        },
        scale.rounds,
    )
    pools = ", ".join(map(str, _THREADS))
    intro = _INTRO.format(tables=scale.tables, pools=pools, threads=threads)
    two = statistics.median(seconds(costs["two tables"]))
    figures = [Figure("scan of 2 tables", two, "s", None if scale.quick else 0.25)]
    return Section("The whole scan command", intro, _rows(costs, quick=scale.quick), figures)


def _rows(costs: Mapping[str, Sequence[Cost]], *, quick: bool) -> list[Row]:
    """The bounds are goals for fleets that are worth the start of processes."""
    scan, mixed, lake = costs["scan"], costs["mixed scan"], costs["lake scan"]
    of_floor, of_pool, of_scan = (None, None, None) if quick else (3.0, 0.1, 1 / 3)
    return [
        row("scan / floor", scan, costs["floor"], at_most=of_floor),
        row("scan, nothing saved / floor", costs["unsaved scan"], costs["floor"]),
        row("scan / deltalake", scan, costs["deltalake"], at_most=of_pool),
        row("rescan / scan", costs["rescan"], scan, at_most=of_scan),
        row("scan / floor, mixed fleet", mixed, costs["mixed floor"]),
        row("scan / deltalake, mixed fleet", mixed, costs["mixed deltalake"]),
        row("rescan / scan, mixed fleet", costs["mixed rescan"], mixed),
        row("scan / deltalake, lake", lake, costs["lake deltalake"]),
        row("rescan / scan, lake", costs["lake rescan"], lake),
        row("scan of 2 tables / start of Python", costs["two tables"], costs["Python"]),
    ]


def _python(script: str, *words: str) -> Cost:
    return run([sys.executable, "-c", script, *words])


def _scan(root: Path, inventory: Path | None = None) -> Cost:
    """One command; broken tables are exit code 3."""
    words = ["scan", str(root), "--output", os.devnull]
    if inventory is not None:
        words += ["--inventory", str(inventory)]
    return run([sys.executable, "-m", "deltaproto", *words, "--no-progress"], codes=(0, 1, 3))
