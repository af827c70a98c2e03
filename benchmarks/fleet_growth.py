"""What a table costs a scan as tables, commits, files and Spark's cores grow in number."""

from __future__ import annotations

import itertools
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.fleet_tables import make_table, make_tables
from benchmarks.page import Row, Section, row
from benchmarks.pairs import Cost, Side, in_turns
from benchmarks.scale import FleetScale

_ALIKE = 40
_INTRO = """
The same scan of more and of less, in turns; times are of one table, without the start of Python,
and nothing is saved. Commits and files grow in {alike} tables each. Spark's cores are those of
`--engine spark`, in sessions of their own, of which a first scan is not counted.
"""
_SCAN = """
import re, resource, sys, time
import pyarrow.compute
from deltaproto.fleet.discovery import DiscoverySource
from deltaproto.fleet.scan import ScanRequest, run_scan
began = time.perf_counter()
done = run_scan(ScanRequest(DiscoverySource((sys.argv[1],)), {}), lambda *_: None)
took = time.perf_counter() - began
# Not this process's ru_maxrss, which begins with the size of the one that started it.
own = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
most = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print(done.tally.tables, done.tally.errors.total(), took, most / 1024)
"""
_SPARK_SCAN = """
import sys, time
from deltaproto.fleet.discovery import DiscoverySource
from deltaproto.fleet.inventory import open_inventory_tables
from deltaproto.fleet.scan import ScanRequest
from deltaproto.fleet.spark_scan import scan_with_spark
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session
root, to, cores = sys.argv[1:]
settings = SparkSettings(conf={"spark.master": f"local[{cores}]"})
spark_session(settings)
for name in ("warm", "timed"):
    began = time.perf_counter()
    inventory = open_inventory_tables(f"{to}/{name}", {})
    request = ScanRequest(DiscoverySource((root,)), {}, inventory, 8)
    done = scan_with_spark(request, settings, lambda *_: None)
    took = time.perf_counter() - began
print(done.tally.tables, took)
"""


def scanned(root: Path, tables: int) -> Cost:
    """One scan in a process of its own; its time is divided by `tables`."""
    ran = subprocess.run(
        [sys.executable, "-c", _SCAN, str(root)], capture_output=True, text=True, check=True
    )
    found, errors, took, most = ran.stdout.split()
    if errors != "0" or int(found) == 0:
        raise SystemExit(f"the scan found {found} tables and {errors} errors")
    return Cost(float(took) / tables, mebibytes=float(most))


def measured(folder: Path, scale: FleetScale, *, spark: bool) -> Section:
    rounds = 1 + scale.rounds // 2
    rows = [
        *_by_tables(folder, scale, rounds),
        *_by_commits(folder, scale, rounds),
        *_by_files(folder, scale, rounds),
    ]
    if spark:
        rows.append(_by_cores(folder, scale))
    return Section("How a scan grows", _INTRO.format(alike=_ALIKE), rows)


def _by_tables(folder: Path, scale: FleetScale, rounds: int) -> list[Row]:
    print("scans of more and of fewer tables", flush=True)
    sides: dict[str, Side] = {}
    for count in scale.counts:
        root = folder / f"tables-{count}"
        make_tables(root, count)
        sides[f"{count:,}"] = partial(scanned, root, tables=count)
    costs = in_turns(sides, rounds)
    (few, ones), (many, others) = costs.items()
    bound = None if scale.quick else 1.25
    name = f"{many} / {few} tables"
    return [row(name, others, ones, "peak memory", bound), row(name, others, ones)]


def _by_commits(folder: Path, scale: FleetScale, rounds: int) -> list[Row]:
    print("scans of tables with more and with fewer commits", flush=True)
    sides: dict[str, Side] = {}
    for count in scale.commits:
        root = folder / f"commits-{count}"
        for number in range(_ALIKE):
            make_table(root / f"t{number}", number, commits=count)
        sides[f"{count:,}"] = partial(scanned, root, tables=_ALIKE)
    return _grown("commits", sides, rounds)


def _by_files(folder: Path, scale: FleetScale, rounds: int) -> list[Row]:
    print("scans of tables with more and with fewer files", flush=True)
    sides: dict[str, Side] = {}
    for count in scale.files:
        root = folder / f"files-{count}"
        for number in range(_ALIKE):
            make_table(root / f"t{number}", number, commits=2, files=count // 2)
        _small_last_commit(root)
        sides[f"{count:,}"] = partial(scanned, root, tables=_ALIKE)
    return _grown("files", sides, rounds, None if scale.quick else 2.0)


def _grown(of: str, sides: dict[str, Side], rounds: int, at_most: float | None = None) -> list[Row]:
    """Each size against the smallest; the bound is for the largest."""
    costs = in_turns(sides, rounds)
    least, *larger = costs
    return [
        row(
            f"{name} / {least} {of}",
            costs[name],
            costs[least],
            at_most=at_most if name == larger[-1] else None,
        )
        for name in larger
    ]


def _by_cores(folder: Path, scale: FleetScale) -> Row:
    print("scans by Spark with two cores and with one", flush=True)
    root, numbers = folder / "by-cores", itertools.count()
    make_tables(root, scale.by_cores)

    def scan(cores: str) -> Cost:
        words = [str(root), str(folder / f"by-cores-{next(numbers)}"), cores]
        ran = subprocess.run(
            [sys.executable, "-c", _SPARK_SCAN, *words], capture_output=True, text=True, check=True
        )
        tables, took = ran.stdout.split()[-2:]
        if int(tables) != scale.by_cores:
            raise SystemExit(f"the scan found {tables} tables")
        return Cost(float(took) / scale.by_cores)

    # Its processes warm up by themselves, and each takes a minute.
    costs = in_turns({"2": partial(scan, "2"), "1": partial(scan, "1")}, 1, warm=False)
    bound = None if scale.quick else 1.0
    return row("--engine spark: 2 cores / 1 core", costs["2"], costs["1"], at_most=bound)


def _small_last_commit(root: Path) -> None:
    """A commit that adds one file, with its checksum: a large table is rarely written at once."""
    for log in root.glob("*/_delta_log"):
        old, crc = log / f"{1:020}.json", log / f"{1:020}.crc"
        lines = old.read_text().splitlines()[:2]
        (log / f"{2:020}.json").write_text("\n".join(lines) + "\n")
        (log / f"{2:020}.crc").write_text(crc.read_text())
