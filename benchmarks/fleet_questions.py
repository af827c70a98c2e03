"""Questions to a large inventory, with Spark and on this machine."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.page import Figure, Section
from benchmarks.scale import FleetScale
from deltaproto.fleet.drift.diff import ChangeKind
from deltaproto.fleet.inventory import InventoryTables, open_inventory_tables
from deltaproto.fleet.inventory_queries import LocalInventoryQueries
from deltaproto.fleet.scan_history import select_pair
from deltaproto.fleet.schemas import Inventory, inventory_schema
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy

POLICY = Path(__file__).parents[1] / "policies" / "databricks-and-open-readers.yaml"
_TOLD = """
An inventory of two scans of {tables:,} tables, of which every hundredth changed in between. Spark
answers with DataFrames, of which only counts come to the driver; the start of its session is not
counted. Each answer is compared with the one that the inventory was made for; a wrong one ends the
run.
"""
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
        yield pa.RecordBatch.from_pylist(made, schema=inventory_schema(name))


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

        inventory.add(
            {name: scan.get(name) for name in inventory_schema(Inventory.SCANS).names}, part
        )


def measured(folder: Path, scale: FleetScale, *, spark: bool) -> Section:
    count = scale.asked
    print(f"questions to an inventory of {count:,} tables", flush=True)
    place = str(folder / "asked")
    inventory = open_inventory_tables(place, {})
    make(inventory, count)
    policy = load_local_policy(str(POLICY))
    checker = Checker(policy, load_local_catalog((), policy))
    changed = -(-count // _EVERY)
    figures = _here(inventory, changed)
    if spark:
        figures += _on_spark(place, checker, count, changed)
    return Section("Questions to an inventory", _TOLD.format(tables=count), (), figures)


def _on_spark(folder: str, checker: Checker, count: int, changed: int) -> list[Figure]:
    """Drift and policy as Spark jobs."""
    from deltaproto.fleet.spark_checks import SparkChecks
    from deltaproto.fleet.spark_questions import SparkInventoryQueries
    from deltaproto.protocol.table_state import SparkSettings
    from deltaproto.tables.session import spark_session

    conf = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8"}
    spark = spark_session(SparkSettings(conf=conf))
    questions = SparkInventoryQueries(spark, folder)
    both = select_pair(questions.scans(), None, None)
    before = _peak()
    began = time.perf_counter()
    kinds = questions.drift(both, None).groupBy("change").count().collect()
    drift = time.perf_counter() - began
    _must(
        "drift",
        {row["change"]: row["count"] for row in kinds},
        {str(ChangeKind.FEATURE_APPEARED): changed},
    )
    began = time.perf_counter()
    tally = SparkChecks(questions, both.now, checker).tally()
    judged = time.perf_counter() - began
    grown = _peak() - before
    _must("tables", tally.tables, count)
    _must("refused", tally.verdicts["deltalake/engine@1.6.6", "read", "refused"], changed)
    spark.stop()
    return [
        Figure("Spark: drift between the scans", drift, "s"),
        Figure(f"Spark: {sum(tally.verdicts.values()):,} verdicts of a policy", judged, "s"),
        Figure("Spark: growth of the driver's Python meanwhile", grown, "MiB", 100.0),
    ]


def _here(inventory: InventoryTables, changed: int) -> list[Figure]:
    """Drift through DataFusion, in this process."""
    from deltaproto.fleet.drift.query import find_drift

    questions = LocalInventoryQueries(inventory)
    began = time.perf_counter()
    found = sum(1 for _ in find_drift(questions, select_pair(questions.scans(), None, None), None))
    took = time.perf_counter() - began
    _must("drift", found, changed)
    return [
        Figure("this machine: drift between the scans", took, "s"),
        Figure("this machine: peak memory", _peak(), "MiB"),
    ]


def _must(what: str, found: object, wanted: object) -> None:
    """A wrong answer is no measurement."""
    if found != wanted:
        raise SystemExit(f"{what}: {found}, expected {wanted}")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
