"""Measure, and write the page: `python -m benchmarks`, and `python -m benchmarks --fleet`.

`make bench` and `make bench-fleet` call this.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.machine import environment
from benchmarks.page import Section, section_text, write

HERE = Path(__file__).parent
TRIED = HERE.parent / ".benchmarks"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--fleet", action="store_true", help="the fleets' part of the page")
    parser.add_argument("--quick", action="store_true", help="a try-out, into .benchmarks/")
    parser.add_argument("--no-spark", action="store_true", help="without Spark as a peer")
    parser.add_argument("--into", type=Path, help="folder of RESULTS.md and its pictures")
    given = parser.parse_args()
    began, where = time.perf_counter(), environment()
    with tempfile.TemporaryDirectory(prefix="deltaproto-bench-") as folder:
        measure = _fleets if given.fleet else _single
        sections: list[Section] = []
        for section in measure(Path(folder), quick=given.quick, spark=not given.no_spark):
            # At once: a run that is stopped later has shown what it measured.
            print(section_text(section), flush=True)
            sections.append(section)
    into = given.into or (TRIED if given.quick else HERE)
    part = "bench-fleet" if given.fleet else "bench"
    page = write(into, part, where, sections, quick=given.quick)
    minutes = (time.perf_counter() - began) / 60
    missed = [f"{each.title}: {name}" for each in sections for name in each.missed]
    print(f"{minutes:.1f} minutes; written to {page}")
    for each in missed:
        print(f"bound missed: {each}")
    return 1 if missed else 0


def _single(folder: Path, *, quick: bool, spark: bool) -> Iterator[Section]:
    from benchmarks import inspect_table, scan_growth
    from benchmarks.peers import Peers
    from benchmarks.scale import FULL, QUICK

    scale = QUICK if quick else FULL
    with Peers(spark=spark) as peers:
        yield inspect_table.small(folder, scale, peers)
        yield inspect_table.by_commits(folder, scale, peers)
        yield inspect_table.by_files(folder, scale, peers)
        yield scan_growth.by_tables(folder, scale, peers)
    # Only now, as the memory of children is counted from that of this process.
    from benchmarks import check_fleet

    yield check_fleet.measured(folder, scale)
    from benchmarks import plan_fleet

    yield plan_fleet.measured(folder, scale)


def _fleets(folder: Path, *, quick: bool, spark: bool) -> Iterator[Section]:
    from benchmarks import (
        fleet_growth,
        fleet_questions,
        object_clients,
        policy_fleet,
        report_fleet,
        scan_command,
        spark_commands,
    )
    from benchmarks.scale import FULL_FLEETS, QUICK_FLEETS
    from deltaproto.tables.java import find_java

    scale = QUICK_FLEETS if quick else FULL_FLEETS
    spark = spark and find_java() is not None
    yield scan_command.measured(folder, scale)
    yield fleet_growth.measured(folder, scale, spark=spark)
    if spark:
        yield spark_commands.measured(folder, scale)
    yield object_clients.measured(scale)
    yield report_fleet.measured(folder, scale)
    yield policy_fleet.measured(folder, scale)
    yield fleet_questions.measured(folder, scale, spark=spark)


if __name__ == "__main__":
    sys.exit(main())
