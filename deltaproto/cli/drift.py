"""`deltaproto drift`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option
from deltaproto.cli.progress import waiting
from deltaproto.cli.scan import ENGINE, EngineChoice
from deltaproto.errors import ExitCode
from deltaproto.fleet.drift.change import Change
from deltaproto.fleet.drift.culprit import Detective
from deltaproto.fleet.inventory import inventory_at
from deltaproto.fleet.past import Pair, pair
from deltaproto.policy.finding import exit_code_for
from deltaproto.report.drift import DriftCounts, whole, write_drift


def run(values: Mapping[str, Any]) -> int:
    """Compare two scans, render the changes, and return the worst exit code."""
    counts = DriftCounts()
    show = not (values["no_progress"] or values["quiet"])
    with options.opened(values["output"]) as file, waiting("comparing the scans", show=show):
        scans, changes = _compared(values)
        write_drift(scans, changes, counts, values["format"], file, color=not values["no_color"])
    if not whole(scans):
        # An incomplete answer is never a compliant one.
        return int(ExitCode.UNREADABLE)
    return int(exit_code_for(counts.severities, values["fail_on"]))


def _compared(values: Mapping[str, Any]) -> tuple[Pair, Iterator[Change]]:
    storage = options.pairs(values["storage_option"], "--storage-option")
    inventory = inventory_at(values["inventory"], storage)
    detective = None if values["no_commits"] else Detective(storage)
    if values["engine"] is EngineChoice.SPARK:
        from deltaproto.fleet.spark_questions import SparkQuestions, changes
        from deltaproto.tables.session import spark_session

        where = inventory.location.path or inventory.location.uri
        on_spark = SparkQuestions(spark_session(options.spark_settings(values)), where)
        scans = pair(on_spark.scans(), values["since"], values["until"])
        return scans, changes(on_spark.drift(scans, detective, ordered=True))
    from deltaproto.fleet.drift.local import drift
    from deltaproto.fleet.past import LocalQuestions

    here = LocalQuestions(inventory)
    scans = pair(here.scans(), values["since"], values["until"])
    return scans, drift(here, scans, detective)


COMMAND = Command(
    "drift",
    "Show what changed between two scans: features, protocols, isolation, tables; and who did it.",
    run,
    Argument("inventory", "INVENTORY", "Folder or URI that `scan --to` fills."),
    (
        Option(
            ("--since",),
            "The earlier scan, or a time it had ended by; else the last of the same roots.",
            str,
            metavar="SCAN|TIME",
        ),
        Option(
            ("--until",),
            "The later scan, or a time it had ended by; else the newest.",
            str,
            metavar="SCAN|TIME",
        ),
        Option(("--no-commits",), "Do not look in logs for who did it.", bool, False),
        ENGINE,
        options.FORMAT,
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
)
