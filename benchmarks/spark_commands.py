"""Commands with `--engine spark` on a small fleet: whole processes, session start included."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.fleet_tables import make_tables
from benchmarks.page import Figure, Section
from benchmarks.pairs import in_turns, seconds
from benchmarks.peers import deltaproto
from benchmarks.scale import FleetScale

_TABLES, _SECONDS = 100, 20.0
_TOLD = """
An inventory of {tables} tables, scanned, checked and reported on by `--engine spark`. Each is a
whole process, from the start of Python and Java to the last line: nearly all of it is the start of
the session, and the first run of everything that Spark and Delta do.
"""


def measured(folder: Path, scale: FleetScale) -> Section:
    print(f"--engine spark on {_TABLES} tables", flush=True)
    lake, inventory = folder / "on-spark", folder / "on-spark-inventory"
    make_tables(lake, _TABLES)
    spark, clients = ("--engine", "spark", "-q"), ("--client", "trino@476")
    never = ("--fail-on", "never")
    page = folder / "on-spark.html"
    scans = (folder / f"{inventory.name}-{number}" for number in range(100))
    costs = in_turns(
        {
            "scan": lambda: deltaproto("scan", lake, "--inventory", next(scans), *never, *spark),
            "check": lambda: deltaproto(
                "check", folder / f"{inventory.name}-0", *clients, *never, *spark
            ),
            "report": lambda: deltaproto(
                "report", folder / f"{inventory.name}-0", "-o", page, *spark
            ),
        },
        1 if scale.quick else 3,
        warm=False,
    )
    bound = None if scale.quick else _SECONDS
    figures = [
        Figure(f"{name} --engine spark", statistics.median(seconds(taken)), "s", bound)
        for name, taken in costs.items()
    ]
    return Section("Spark on a small fleet", _TOLD.format(tables=_TABLES), figures=figures)
