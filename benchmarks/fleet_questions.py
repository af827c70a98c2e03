"""Questions to a large inventory, with Spark and on this machine. Part of `make bench-fleet`.

An inventory of two scans of `--tables` tables is written; every hundredth table changed between
them. Spark answers drift and policy with DataFrames, of which only counts come to the driver; the
answers are compared with those that the inventory was made for, and with the local engine's.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa

from deltaproto.checking.check import Checker
from deltaproto.checking.site import site_catalogue, site_policy
from deltaproto.fleet.drift.change import Kind
from deltaproto.fleet.inventory import InventoryTables, inventory_at
from deltaproto.fleet.past import LocalQuestions, pair
from deltaproto.fleet.schemas import Inventory, schema

POLICY = Path(__file__).parents[1] / "policies" / "databricks-and-open-readers.yaml"
_CHUNK = 100_000
_EVERY = 100
_LISTS: tuple[tuple[str, ...], ...] = (
    (),
    ("appendOnly", "invariants"),
    ("deletionVectors",),
    ("deletionVectors", "rowTracking", "domainMetadata"),
)
_READERS = {"deletionVectors"}


def features(number: int, *, later: bool) -> tuple[str, ...]:
    found = _LISTS[number % len(_LISTS)]
    grown = later and number % _EVERY == 0 and "typeWidening" not in found
    return (*found, "typeWidening") if grown else found


def rows(name: Inventory, scan_id: str, count: int, *, later: bool) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, _CHUNK):
        numbers = range(start, min(start + _CHUNK, count))
        made: list[dict[str, Any]] = []
        for number in numbers:
            listed = features(number, later=later)
            keys = {"scan_id": scan_id, "location": f"s3://lake/t{number}", "table": f"t{number}"}
            if name is Inventory.TABLES:
                reader = [n for n in listed if n in _READERS or n == "typeWidening"]
                made.append(
                    {
                        **keys,
                        "version": 10 + later,
                        "id": f"id{number}",
                        "reader": "log",
                        "min_reader_version": 3,
                        "min_writer_version": 7,
                        "reader_features": reader,
                        "writer_features": list(listed),
                        "isolation_delta_spark": "Serializable",
                        "isolation_databricks": "WriteSerializable",
                        "isolation_delta_rs": "Serializable",
                        "configuration": [("delta.enableDeletionVectors", "true")],
                        "complete": True,
                    }
                )
            else:
                made += [
                    {**keys, "feature": each, "kind": "writer", "enabled": True, "present": None}
                    for each in listed
                ]
        yield pa.RecordBatch.from_pylist(made, schema=schema(name))


def make(inventory: InventoryTables, count: int) -> None:
    """Two scans of `count` tables."""
    for later in (False, True):
        ended = datetime(2026, 11, 20 + later, tzinfo=UTC)
        scan = {
            "scan_id": f"{ended:%Y%m%dT%H%M%SZ}-bench",
            "started_at": ended - timedelta(minutes=10),
            "ended_at": ended,
            "seconds": 600.0,
            "roots": ["s3://lake"],
            "included": [],
            "excluded": [],
            "tables": count,
            "errors": 0,
            "findings": 0,
            "complete": True,
        }

        def part(
            name: Inventory, scan_id: str = str(scan["scan_id"]), later: bool = later
        ) -> Iterator[pa.RecordBatch]:
            if name in (Inventory.TABLES, Inventory.FEATURES):
                yield from rows(name, scan_id, count, later=later)

        inventory.add({name: scan.get(name) for name in schema(Inventory.SCANS).names}, part)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000_000)
    arguments = parser.parse_args()
    count = arguments.tables
    with tempfile.TemporaryDirectory(prefix="deltaproto-inventory-") as folder:
        inventory = inventory_at(folder, {})
        began = time.perf_counter()
        make(inventory, count)
        print(f"made an inventory of 2 x {count:,} tables in {time.perf_counter() - began:.0f} s")
        policy = site_policy(str(POLICY))
        checker = Checker(policy, site_catalogue((), policy))
        changed = -(-count // _EVERY)
        good = on_spark(folder, checker, count, changed)
        good &= here(inventory, changed)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"the driver's Python had at most {most:,.0f} MiB, the local engine's part among them")
    return 0 if good else 1


def on_spark(folder: str, checker: Checker, count: int, changed: int) -> bool:
    """Drift and policy as Spark jobs."""
    from deltaproto.fleet.spark_checks import SparkChecks
    from deltaproto.fleet.spark_questions import SparkQuestions
    from deltaproto.tables.interface import SparkSettings
    from deltaproto.tables.session import spark_session

    conf = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8"}
    spark = spark_session(SparkSettings(conf=conf))
    questions = SparkQuestions(spark, folder)
    both = pair(questions.scans(), None, None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.perf_counter()
    kinds = questions.drift(both, None).groupBy("change").count().collect()
    told = {row["change"]: row["count"] for row in kinds}
    print(f"Spark, drift:  {time.perf_counter() - began:6.1f} s, {told}")
    good = told == {str(Kind.FEATURE_APPEARED): changed}
    began = time.perf_counter()
    tally = SparkChecks(questions, both.now, checker).tally()
    seconds = time.perf_counter() - began
    print(
        f"Spark, policy: {seconds:6.1f} s, {sum(tally.verdicts.values()):,} verdicts, "
        f"{sum(tally.rules.values()):,} findings"
    )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"the driver's Python grew by {after - before:.0f} MiB meanwhile")
    refused = tally.verdicts["deltalake/engine@1.6.6", "read", "refused"]
    good &= tally.tables == count and refused == changed and after - before < 100
    spark.stop()
    return good


def here(inventory: InventoryTables, changed: int) -> bool:
    """Drift through DataFusion, in this process."""
    from deltaproto.fleet.drift.local import drift

    questions = LocalQuestions(inventory)
    began = time.perf_counter()
    found = sum(1 for _ in drift(questions, pair(questions.scans(), None, None), None))
    print(f"local, drift:  {time.perf_counter() - began:6.1f} s")
    return found == changed


if __name__ == "__main__":
    sys.exit(main())
