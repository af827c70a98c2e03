"""`deltaproto scan` of many tables against what people do without it.

The floor is listing each log and reading its newest checksum, with nothing made of it.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.fleet_tables import make_tables
from benchmarks.page import Figure, Row, Section, row
from benchmarks.pairs import Cost, Side, in_turns, seconds
from benchmarks.peers import Peers
from benchmarks.scale import FleetScale

_SCAN = """
import re, resource, sys, time
import pyarrow.compute
from deltaproto.fleet.discovery import DiscoverySource
from deltaproto.fleet.inventory import open_inventory_tables
from deltaproto.fleet.scan import ScanRequest, run_scan
root, to = sys.argv[1], sys.argv[2]
began = time.perf_counter()
inventory = open_inventory_tables(to, {}) if to else None
done = run_scan(ScanRequest(DiscoverySource((root,)), {}, inventory), lambda _: None)
took = time.perf_counter() - began
# Not this process's ru_maxrss, which begins with the size of the one that started it.
own = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
most = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print(done.tally.tables, done.tally.errors.total(), took, most / 1024)
"""
_SOME = 2_000
_STATEMENTS = ("SHOW TBLPROPERTIES", "DESCRIBE DETAIL")
_TOLD = """
{tables:,} tables of three commits with checksums. The start of Python, imports and the start of
Spark are not counted, for nobody; the native loop of delta-kernel-rs is a whole process. deltalake
is `DeltaTable(path).protocol()`, in a loop or the fastest of pools with 4, 8 and 16 threads, here
{threads}, on {some:,} of the tables. Spark's statements are timed on few of them. The floor lists
each log and reads its newest checksum in one thread, and makes nothing of it. Times are of one
table.
"""


def scanned(root: Path, to: str = "", tables: int = 1) -> Cost:
    """One scan in a process of its own; its time is divided by `tables`."""
    ran = subprocess.run(
        [sys.executable, "-c", _SCAN, str(root), to], capture_output=True, text=True, check=True
    )
    found, errors, took, most = ran.stdout.split()
    if errors != "0" or int(found) == 0:
        raise SystemExit(f"the scan found {found} tables and {errors} errors")
    return Cost(float(took) / tables, mebibytes=float(most))


def measured(folder: Path, scale: FleetScale, peers: Peers) -> Section:
    """Every way to read a fleet, in turns."""
    print(f"scan of {scale.tables:,} tables", flush=True)
    root, names = folder / "fleet", folder / "fleet.txt"
    tables = make_tables(root, scale.tables)
    names.write_text("\n".join(tables) + "\n")
    some = tables[:_SOME]
    _bare(some[:10], 1)
    threads = min((1, 4, 8, 16), key=lambda threads: _bare(some, threads).seconds)
    sides: dict[str, Side] = {
        "floor": partial(_floor, tables),
        "deltalake": partial(_bare, some, threads),
        "scan": partial(scanned, root, tables=len(tables)),
        "kept": _inventories(root, len(tables)),
    }
    if peers.kernel:
        sides["delta-kernel-rs"] = _each(partial(peers.kernel.each, names), len(tables))
    if peers.spark:
        few = some[: scale.by_spark]
        for statement in _STATEMENTS:
            asked = partial(peers.spark.detail, *few, statement=statement)
            sides[statement] = _each(asked, len(few))
    costs = in_turns(sides, scale.rounds)
    threads_told = "a loop" if threads == 1 else f"{threads} threads"
    told = _TOLD.format(tables=len(tables), threads=threads_told, some=len(some))
    absent = "".join(f"\n{name} is missing: {why}.\n" for name, why in peers.missing.items())
    rates = [
        Figure(f"{name}: tables in a second", 1 / statistics.median(seconds(each)))
        for name, each in costs.items()
    ]
    return Section("Scan of a fleet", told + absent, _rows(costs, scale), rates)


def _rows(costs: Mapping[str, Sequence[Cost]], scale: FleetScale) -> list[Row]:
    """The bounds are those of a fleet that is worth the start of processes."""
    scan, kept = costs["scan"], costs["kept"]
    bounds = (None, None, None) if scale.quick else (0.1, 1.0, 3.0)
    rows = [
        row("scan / deltalake", scan, costs["deltalake"], at_most=bounds[0]),
        row("scan with inventory / deltalake", kept, costs["deltalake"], at_most=bounds[1]),
        row("scan / floor", scan, costs["floor"], at_most=bounds[2]),
    ]
    others = [name for name in costs if name in ("delta-kernel-rs", *_STATEMENTS)]
    return [*rows, *(row(f"scan / {name}", scan, costs[name]) for name in others)]


def _floor(tables: Sequence[str]) -> Cost:
    """Listing each log and reading the newest checksum."""
    began = time.perf_counter()
    for table in tables:
        log = f"{table}/_delta_log"
        newest = max(name for name in os.listdir(log) if name[0] != "." and name[-4:] == ".crc")
        descriptor = os.open(f"{log}/{newest}", os.O_RDONLY)
        os.read(descriptor, 1 << 20)
        os.close(descriptor)
    return Cost((time.perf_counter() - began) / len(tables))


def _bare(tables: Sequence[str], threads: int) -> Cost:
    """deltalake, in a loop or with threads."""
    from deltalake import DeltaTable

    began = time.perf_counter()
    if threads == 1:
        for table in tables:
            DeltaTable(table).protocol()
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda table: DeltaTable(table).protocol(), tables))
    return Cost((time.perf_counter() - began) / len(tables))


def _inventories(root: Path, tables: int) -> Side:
    """A scan that writes an inventory, every time a new one."""
    numbers = itertools.count()
    return lambda: scanned(root, str(root.with_name(f"inventory-{next(numbers)}")), tables)


def _each(side: Side, tables: int) -> Side:
    """The same, told for one table."""
    return lambda: Cost(side().seconds / tables)
