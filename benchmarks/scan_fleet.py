"""`deltaproto scan` against what people do without it, in one run. `make bench-fleet`.

Peers: a loop and thread pools of `deltalake.DeltaTable(t).protocol()`, a loop of Spark's SHOW
TBLPROPERTIES and DESCRIBE DETAIL, and the floor: listing each log and reading the newest checksum,
with nothing made of it. Each pair runs back to back, several times; the medians' ratio counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.fleet_tables import make_table, make_tables

SCAN = """
import resource, sys, time
import pyarrow.compute
from deltaproto.fleet.discovery import Source
from deltaproto.fleet.inventory import inventory_at
from deltaproto.fleet.scan import Request, scan
root, to = sys.argv[1], sys.argv[2]
began = time.perf_counter()
done = scan(Request(Source((root,)), {}, inventory_at(to, {}) if to else None), lambda _: None)
took = time.perf_counter() - began
most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF,
    resource.RUSAGE_CHILDREN))
print(done.tally.tables, done.tally.errors.total(), took, most / 1024)
"""


def scanned(root: Path, to: str = "") -> tuple[float, float]:
    """Seconds and MiB of one scan in a process of its own.

    The start of the process and of pyarrow are not counted, nor are deltalake's for the peers.
    """
    ran = subprocess.run(
        [sys.executable, "-c", SCAN, str(root), to], capture_output=True, text=True, check=True
    )
    tables, errors, seconds, mebibytes = ran.stdout.split()
    assert errors == "0", ran.stdout
    assert int(tables) > 0
    return float(seconds), float(mebibytes)


def floor(tables: Sequence[str]) -> float:
    """Seconds for listing each log and reading the newest checksum."""
    began = time.perf_counter()
    for table in tables:
        log = f"{table}/_delta_log"
        newest = max(name for name in os.listdir(log) if name[0] != "." and name[-4:] == ".crc")
        descriptor = os.open(f"{log}/{newest}", os.O_RDONLY)
        os.read(descriptor, 1 << 20)
        os.close(descriptor)
    return time.perf_counter() - began


def bare(tables: Sequence[str], threads: int) -> float:
    """Seconds for deltalake, in a loop or with threads."""
    from deltalake import DeltaTable

    began = time.perf_counter()
    if threads == 1:
        for table in tables:
            DeltaTable(table).protocol()
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda table: DeltaTable(table).protocol(), tables))
    return time.perf_counter() - began


def by_spark(tables: Sequence[str]) -> dict[str, float]:
    """Tables per second of two statements."""
    from deltaproto.tables.interface import SparkSettings
    from deltaproto.tables.session import spark_session

    spark = spark_session(SparkSettings())
    found = {}
    for statement, few in (("SHOW TBLPROPERTIES", 60), ("DESCRIBE DETAIL", 15)):
        spark.sql(f"{statement} delta.`{tables[0]}`").collect()
        began = time.perf_counter()
        for table in tables[:few]:
            spark.sql(f"{statement} delta.`{table}`").collect()
        found[statement] = few / (time.perf_counter() - began)
    spark.stop()
    return found


def median(measure: Callable[[], float], rounds: int) -> float:
    return statistics.median(measure() for _ in range(rounds))


def compared(root: Path, tables: Sequence[str], rounds: int, *, spark: bool) -> bool:
    """Print rates and ratios; whether the bounds are kept."""
    count, some = len(tables), tables[:2000]
    rows, kept, bottom, peers = [], [], [], []
    # The best of them runs again in each round: what a machine gives changes by the minute.
    threads = min((1, 4, 8, 16), key=lambda threads: bare(some, threads))
    floor(tables)
    for number in range(rounds):
        bottom.append(floor(tables) / count)
        peers.append(bare(some, threads) / len(some))
        rows.append(scanned(root)[0] / count)
        kept.append(scanned(root, str(root.parent / f"inventory-{number}"))[0] / count)
    ours, whole, low, best = (statistics.median(each) for each in (rows, kept, bottom, peers))
    print(f"deltalake, {threads:2} threads, the best of a loop and pools {1 / best:8,.0f} tables/s")
    if spark:
        for statement, rate in by_spark(tables).items():
            print(f"Spark, {statement:<40} {rate:10,.1f} tables/s")
    print(f"floor: list the log, read the newest checksum   {1 / low:10,.0f} tables/s")
    print(f"scan, to rows                                   {1 / ours:10,.0f} tables/s")
    print(f"scan, with the inventory written                {1 / whole:10,.0f} tables/s")
    limits = (
        ("scan to rows / deltalake", _ratio(peers, rows), 10.0, True),
        ("scan with inventory / deltalake", _ratio(peers, kept), 1.0, True),
        ("scan to rows / floor, time", _ratio(rows, bottom), 3.0, False),
    )
    good = True
    for name, ratio, bound, at_least in limits:
        missed = ratio < bound if at_least else ratio > bound
        good &= not missed
        sign = ">=" if at_least else "<="
        print(f"{name:45} {ratio:8.2f} {sign}{bound:6.2f}{'  MISSED' if missed else ''}")
    return good


def _ratio(ones: Sequence[float], others: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(one / other for one, other in zip(ones, others, strict=True))


def growth(folder: Path) -> bool:
    """Print what a table costs as it and the fleet grow; whether the bounds are kept."""
    good = True
    costs = {}
    for count in (2_000, 8_000):
        root = folder / f"count-{count}"
        make_tables(root, count)
        seconds, mebibytes = scanned(root)
        costs[count] = mebibytes
        print(f"{count:7,} tables: {seconds / count * 1e6:7.1f} us each, {mebibytes:6.1f} MiB")
    good &= costs[8_000] < costs[2_000] * 1.25
    for name, sizes in (("commits", (10, 100, 1000)), ("files", (10, 1_000, 50_000))):
        each = []
        for size in sizes:
            root = folder / f"{name}-{size}"
            for number in range(40):
                make_table(
                    root / f"t{number}",
                    number,
                    commits=size if name == "commits" else 2,
                    files=1 if name == "commits" else size // 2,
                )
            if name == "files":
                _small_last_commit(root)
            each.append(statistics.median(scanned(root)[0] for _ in range(3)) / 40)
            print(f"{size:7,} {name}: {each[-1] * 1e6:9.1f} us a table")
        if name == "files":
            good &= each[-1] < each[0] * 2
    return good


SPARK_SCAN = """
import sys, time
from deltaproto.fleet.discovery import Source
from deltaproto.fleet.inventory import inventory_at
from deltaproto.fleet.scan import Request
from deltaproto.fleet.spark_scan import scan_with_spark
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.session import spark_session
root, to, cores = sys.argv[1:]
settings = SparkSettings(conf={"spark.master": f"local[{cores}]"})
spark_session(settings)
for name in ("warm", "timed"):
    began = time.perf_counter()
    done = scan_with_spark(
        Request(Source((root,)), {}, inventory_at(f"{to}/{name}", {}), 8), settings, lambda _: None)
    took = time.perf_counter() - began
print(done.tally.tables, took)
"""


def cores(folder: Path) -> bool:
    """Print what a table costs Spark with one core and with two; whether it falls."""
    root, each = folder / "spark", {}
    count = len(make_tables(root, 6_000))
    for number in (1, 2):
        words = [str(root), str(folder / f"kept-{number}"), str(number)]
        ran = subprocess.run(
            [sys.executable, "-c", SPARK_SCAN, *words], capture_output=True, text=True, check=True
        )
        tables, seconds = ran.stdout.split()[-2:]
        assert int(tables) == count
        each[number] = float(seconds) / count * 1e6
        print(f"--engine spark, local[{number}]: {each[number]:7.1f} us a table")
    return each[2] < each[1]


def _small_last_commit(root: Path) -> None:
    """A commit that adds one file, with its checksum: a large table is rarely written at once."""
    for log in root.glob("*/_delta_log"):
        old, crc = log / f"{1:020}.json", log / f"{1:020}.crc"
        lines = old.read_text().splitlines()[:2]
        (log / f"{2:020}.json").write_text("\n".join(lines) + "\n")
        (log / f"{2:020}.crc").write_text(crc.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-spark", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deltaproto-fleet-") as scratch:
        folder = Path(scratch)
        print(f"making {arguments.tables:,} tables", flush=True)
        tables = make_tables(folder / "fleet", arguments.tables)
        good = compared(folder / "fleet", tables, arguments.rounds, spark=not arguments.no_spark)
        good &= growth(folder)
        if not arguments.no_spark:
            good &= cores(folder)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"(this process: {most:.0f} MiB)")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
