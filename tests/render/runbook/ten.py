"""Ten different plans, made by the command line from logs written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.conftest import Ran
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

_SPARK = {"engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}
_HOUR = 3_600_000
_VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


class Case(NamedTuple):
    """A table, and what is planned for it."""

    name: str
    table: Callable[[Log], object]
    words: tuple[str, ...]
    """the command, then what follows the table"""


def vectors(log: Log) -> None:
    """Deletion vectors on one of two files, and a stream and a job that write."""
    names = ["deletionVectors"]
    stored = protocol(3, 7, names, ["appendOnly", "invariants", *names])
    log.commit(0, commit_info("CREATE TABLE"), stored, metadata(_ON("enableDeletionVectors")))
    log.commit(1, add("a.parquet", size=10), add("b.parquet", size=32, deletionVector=_VECTOR))
    for version in range(2, 80):
        stamp = 1_790_000_000_000 + version * _HOUR
        info = commit_info(
            "STREAMING UPDATE" if version % 24 < 20 else "MERGE", **{"timestamp": stamp} | _SPARK
        )
        batch = {"txn": {"appId": "orders-stream", "version": version, "lastUpdated": stamp}}
        log.commit(version, info, batch)


def plain(log: Log) -> None:
    """The oldest protocol."""
    log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())


def mapped(log: Log) -> None:
    """Column mapping, with a partition."""
    physical = {"delta__columnMapping__id": 1, "delta__columnMapping__physicalName": "c-1"}
    schema = schema_string(column("id", **physical))
    settings = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    log.commit(0, commit_info(), protocol(2, 5), metadata(settings, schema))
    log.commit(1, commit_info(), add("a.parquet", size=1 << 20), add("b.parquet", size=3 << 20))


def mixed(log: Log) -> None:
    """Several features that a lowest protocol leaves out, with a constraint and widened types."""
    names = ["typeWidening", "timestampNtz"]
    writers = [
        *names,
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "inCommitTimestamp"),
    ]
    settings = {
        **_ON("enableTypeWidening"),
        **_ON("enableInCommitTimestamps"),
        **_ON("enableChangeDataFeed"),
        "delta.constraints.positive": "id >= 0",
    }
    log.commit(
        0, commit_info(inCommitTimestamp=1), protocol(3, 7, names, writers), metadata(settings)
    )


def _ON(name: str) -> dict[str, str]:
    return {f"delta.{name}": "true"}


CASES = (
    Case("fast-drop", vectors, ("plan-downgrade", "--drop", "deletionVectors")),
    Case("truncating", vectors, ("plan-downgrade", "--protocol", "1,2")),
    Case("enable", plain, ("plan-upgrade", "--enable", "deletionVectors", "rowTracking")),
    Case("isolation", plain, ("plan-upgrade", "--isolation", "Serializable")),
    Case("mapping-away", mapped, ("plan-downgrade", "--drop", "columnMapping")),
    Case("lowest", mixed, ("plan-downgrade", "--lowest", "--include-enabled")),
    Case("blocked", plain, ("plan-downgrade", "--drop", "appendOnly")),
    Case("nothing", plain, ("plan-downgrade", "--lowest")),
    Case("client", vectors, ("plan-downgrade", "--for-client", "trino@400")),
    Case(
        "databricks",
        plain,
        ("plan-upgrade", "--enable", "v2Checkpoint", "--engine", "databricks@16.4"),
    ),
)


def planned(case: Case, cli: Callable[..., Ran]) -> Path:
    """The case's plan file, below the folder of the process."""
    log = Log(Path("tables") / case.name)
    case.table(log)
    path = Path(f"{case.name}.json")
    command, *words = case.words
    ran = cli(command, log.table, *words, "--format", "json", "-o", str(path))
    assert ran.code in (0, 1), ran.err
    return path
