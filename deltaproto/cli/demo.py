"""`deltaproto demo`: example tables as Spark would leave them, logs without data files."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command
from deltaproto.errors import ExitCode, UsageError

_FIRST_MS = 1_790_000_000_000
_HOUR_MS = 3_600_000
_SPARK = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
_COLUMNS = ("order_id", "customer", "amount")


def _schema(**metadata: Any) -> str:
    fields = [
        {
            "name": name,
            "type": "long" if place == 1 else "string",
            "nullable": True,
            "metadata": {key: value(place) for key, value in metadata.items()},
        }
        for place, name in enumerate(_COLUMNS, 1)
    ]
    return json.dumps({"type": "struct", "fields": fields})


def _write(table: Path, commits: list[tuple[str, list[dict[str, Any]]]], **members: Any) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True)
    for version, (operation, actions) in enumerate(commits):
        info = {
            "timestamp": _FIRST_MS + version * _HOUR_MS,
            "operation": operation,
            "operationParameters": members.get(operation.partition(" ")[0], {}),
            "isolationLevel": "Serializable",
            "engineInfo": _SPARK,
            "userName": "etl",
        }
        lines = [{"commitInfo": info}, *actions]
        (log / f"{version:020}.json").write_text("".join(json.dumps(x) + "\n" for x in lines))


def _metadata(table: Path, schema: str, **configuration: str) -> dict[str, Any]:
    return {
        "metaData": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, table.name)),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": [],
            "configuration": {f"delta.{key}": value for key, value in configuration.items()},
            "createdTime": _FIRST_MS,
        }
    }


def _protocol(reader: int, writer: int, *features: str, both: tuple[str, ...] = ()) -> Any:
    action: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if writer == 7:
        action["writerFeatures"] = sorted((*both, *features))
    if reader == 3:
        action["readerFeatures"] = sorted(both)
    return {"protocol": action}


def _add(name: str, **more: Any) -> dict[str, Any]:
    size = {"path": f"{name}.parquet", "size": 4 << 20, "partitionValues": {}}
    return {"add": {**size, "modificationTime": _FIRST_MS, "dataChange": True, **more}}


def plain(table: Path) -> None:
    """The oldest protocol, and a job that writes every hour."""
    first = [_protocol(1, 2), _metadata(table, _schema())]
    writes = [("WRITE", [_add(f"part-{number}")]) for number in range(60)]
    _write(table, [("CREATE TABLE", first), *writes])


def vectors(table: Path) -> None:
    """Created plain; later a property was set, and a DELETE wrote deletion vectors."""
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 34, "cardinality": 1}
    enabled = [
        _protocol(3, 7, "appendOnly", "invariants", both=("deletionVectors",)),
        _metadata(table, _schema(), enableDeletionVectors="true"),
    ]
    _write(
        table,
        [
            ("CREATE TABLE", [_protocol(1, 2), _metadata(table, _schema())]),
            ("WRITE", [_add("part-0"), _add("part-1")]),
            ("SET TBLPROPERTIES", enabled),
            ("DELETE", [_add("part-1", deletionVector=vector)]),
        ],
        SET={"properties": '{"delta.enableDeletionVectors":"true"}'},
    )


def enabled(table: Path) -> None:
    """One more commit, which enables deletion vectors."""
    log = table / "_delta_log"
    version = len(list(log.glob("*.json")))
    info = {
        "timestamp": _FIRST_MS + version * _HOUR_MS,
        "operation": "SET TBLPROPERTIES",
        "operationParameters": {"properties": '{"delta.enableDeletionVectors":"true"}'},
        "engineInfo": _SPARK,
        "userName": "somebody",
    }
    lines = [
        {"commitInfo": info},
        _protocol(3, 7, "appendOnly", "invariants", both=("deletionVectors",)),
        _metadata(table, _schema(), enableDeletionVectors="true"),
    ]
    (log / f"{version:020}.json").write_text("".join(json.dumps(x) + "\n" for x in lines))


def mapped(table: Path) -> None:
    """Column mapping by name, on a legacy protocol."""
    schema = _schema(
        **{
            "delta.columnMapping.id": lambda place: place,
            "delta.columnMapping.physicalName": lambda place: f"col-{place}",
        }
    )
    mode = {"columnMapping.mode": "name", "columnMapping.maxColumnId": "3"}
    first = [_protocol(2, 5), _metadata(table, schema, **mode)]
    _write(table, [("CREATE TABLE", first), ("WRITE", [_add("part-0")])])


RECIPES: Mapping[str, Callable[[Path], None]] = {
    "plain": plain,
    "vectors": vectors,
    "enabled": enabled,
    "mapped": mapped,
}
"""functions that write a table, or one more commit, by name"""
DEMO_TABLES: Mapping[str, str] = {"orders": "vectors", "customers": "mapped", "events": "plain"}
"""the recipes of the tables that `deltaproto demo` writes, by table name"""


def run(values: Mapping[str, Any]) -> int:
    """Write the example tables, and print their paths."""
    folder = Path(values["folder"])
    found = next((name for name in DEMO_TABLES if (folder / name).exists()), None)
    if found is not None:
        raise UsageError(f"{folder / found} already exists", "name a new folder")
    try:
        for name, recipe in DEMO_TABLES.items():
            RECIPES[recipe](folder / name)
    except OSError as error:
        raise UsageError(
            f"cannot write {folder}: {error.strerror}", "name a folder that you can write"
        ) from None
    for name in DEMO_TABLES:
        print(folder / name)
    return int(ExitCode.OK)


COMMAND = Command(
    "demo",
    "Write example tables for trying the other commands: only their logs, no data files. "
    "It needs neither Java nor Spark.",
    run,
    Argument("folder", "DIR", "Write the tables into this folder."),
    (options.DEBUG,),
    examples=("demo lake", "demo /data/examples"),
    more_exits=(),
)
