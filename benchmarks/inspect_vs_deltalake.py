"""`deltaproto inspect` against a bare deltalake script, as whole processes, in pairs.

Two tables: one small, and one whose checkpoint names a million files. Every pair runs back to
back, so that what else the machine does hits both; the ratios are the result, the seconds are
not. Run with `make bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

BARE = """
import sys
from deltalake import DeltaTable
print(DeltaTable(sys.argv[1]).protocol())
"""
COLUMNS = 20


class Cost(NamedTuple):
    """One process: wall seconds and peak resident memory in MiB."""

    seconds: float
    mebibytes: float


class Limit(NamedTuple):
    """What a ratio is held against."""

    name: str
    ratio: float
    bound: float
    at_least: bool

    @property
    def kept(self) -> bool:
        return self.ratio >= self.bound if self.at_least else self.ratio <= self.bound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000, help="files in the large table")
    parser.add_argument("--pairs", type=int, default=15, help="pairs on the small table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE)
        small, large = Path(folder) / "small", Path(folder) / "large"
        apart(make_small, small)
        print(f"making a table with {arguments.files:,} files in its checkpoint", flush=True)
        apart(make_large, large, arguments.files)
        limits = [*on_small(bare, small, arguments.pairs), *on_large(bare, large)]
    print(f"\n{'ratio':52} {'measured':>9} {'bound':>9}")
    for limit in limits:
        sign = ">=" if limit.at_least else "<="
        verdict = "" if limit.kept else "  MISSED"
        print(f"{limit.name:52} {limit.ratio:9.2f} {sign}{limit.bound:7.2f}{verdict}")
    return 0 if all(limit.kept for limit in limits) else 1


def apart(make: Callable[..., None], *arguments: Any) -> None:
    """Make a table in a process of its own: a child's peak memory, as the kernel counts it,
    starts from its parent's, so this process must stay small."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(make, *arguments).result()


def on_small(bare: Path, table: Path, pairs: int) -> list[Limit]:
    as_json, as_text, seconds = [], [], []
    for _ in range(pairs):
        base = run([sys.executable, str(bare), str(table)]).seconds
        seconds.append(base)
        as_json.append(inspect(table, "json").seconds / base)
        as_text.append(inspect(table, "text").seconds / base)
    print(f"small table: bare script {statistics.median(seconds):.3f} s (median of {pairs})")
    return [
        Limit("small table, json: time / bare script", statistics.median(as_json), 1.5, False),
        Limit("small table, text: time / bare script", statistics.median(as_text), 2.0, False),
    ]


def on_large(bare: Path, table: Path, pairs: int = 5) -> list[Limit]:
    faster, leaner = [], []
    for _ in range(pairs):
        base = run([sys.executable, str(bare), str(table)])
        ours = inspect(table, "json")
        faster.append(base.seconds / ours.seconds)
        leaner.append(ours.mebibytes / base.mebibytes)
    print(
        f"large table: bare script {base.seconds:.2f} s, {base.mebibytes:.0f} MiB; "
        f"inspect {ours.seconds:.2f} s, {ours.mebibytes:.0f} MiB (last pair)"
    )
    return [
        Limit("large table, json: bare script / time", statistics.median(faster), 8.0, True),
        Limit("large table, json: memory / bare script", statistics.median(leaner), 0.2, False),
    ]


def inspect(table: Path, format_: str) -> Cost:
    return run([sys.executable, "-m", "deltaproto", "inspect", str(table), "--format", format_])


def run(command: list[str]) -> Cost:
    """Run to the end and ask the kernel for this child's own peak memory."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed with status {status}")
    return Cost(seconds, usage.ru_maxrss / 1024)


def make_small(root: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    for start in range(3):
        write_deltalake(str(root), pa.table({"id": [start, start + 1]}), mode="append")


def make_large(root: Path, files: int) -> None:
    """A table as a writer leaves it after a checkpoint: twenty columns with statistics."""
    from deltalake import DeltaTable

    log = root / "_delta_log"
    log.mkdir(parents=True)
    names = [f"column_{number}" for number in range(COLUMNS)]
    fields = [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in names]
    metadata = {
        "id": "5f1d3c1e-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1,
    }
    with (log / f"{0:020d}.json").open("w") as file:
        file.write('{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n')
        file.write(json.dumps({"metaData": metadata}) + "\n")
        for number in range(files):
            low = dict.fromkeys(names[:4], number)
            stats = {"numRecords": 10, "minValues": low, "maxValues": low}
            add = {
                "path": f"part-{number:08d}-c000.snappy.parquet",
                "partitionValues": {},
                "size": 100_000 + number,
                "modificationTime": 1_700_000_000_000,
                "dataChange": True,
                "stats": json.dumps(stats),
            }
            file.write(json.dumps({"add": add}) + "\n")
    DeltaTable(str(root)).create_checkpoint()
    (log / f"{1:020d}.json").write_text('{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n')
    (log / f"{0:020d}.json").unlink()


if __name__ == "__main__":
    sys.exit(main())
