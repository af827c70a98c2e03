"""Tables as different as those of a lake: each with its own schema, and no checksums."""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

_TYPES: tuple[Any, ...] = (
    *("string", "long", "integer", "double", "timestamp", "date", "boolean", "decimal(18,2)"),
    {"type": "array", "elementType": "string", "containsNull": True},
)
_VECTORS = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors", "invariants", "appendOnly"],
}
_PROTOCOLS: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
    ({"minReaderVersion": 1, "minWriterVersion": 2}, {}),
    ({"minReaderVersion": 1, "minWriterVersion": 4}, {"delta.enableChangeDataFeed": "true"}),
    (_VECTORS, {"delta.enableDeletionVectors": "true"}),
)
_PARTITIONS = ("", "", "date", "region", "country")
_COMMITS = (1, 2, 5, 12, 30)
"""tables with more than ten have a checkpoint of deltalake"""


def make_lake(root: Path, count: int, seed: int = 1) -> list[str]:
    """Create `count` tables of 5 to 60 columns in folders of a hundred; return their paths."""
    draw = random.Random(seed)
    return [
        _make_table(root / f"db{number // 100:04}" / f"t{number:06}", number, draw)
        for number in range(count)
    ]


def _make_table(path: Path, number: int, draw: random.Random) -> str:
    log = path / "_delta_log"
    log.mkdir(parents=True)
    protocol, configuration = draw.choice(_PROTOCOLS)
    partition, commits = draw.choice(_PARTITIONS), draw.choice(_COMMITS)
    names = [f"column_{draw.getrandbits(16):04x}_{place}" for place in range(draw.randint(5, 60))]
    columns = [_column(name, draw.choice(_TYPES)) for name in names]
    columns += [_column(partition, "string")] if partition else []
    metadata = {
        "id": str(uuid.UUID(int=number)),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": [partition] if partition else [],
        "configuration": configuration,
        "createdTime": 1_700_000_000_000 + number,
    }
    for version in range(commits):
        actions: list[dict[str, Any]] = [{"commitInfo": _info(version)}]
        if version == 0:
            actions += [{"protocol": protocol}, {"metaData": metadata}]
        actions += [{"add": _add(partition, draw)} for _ in range(draw.randint(1, 4))]
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{version:020}.json").write_text(text)
    if commits > 10:
        DeltaTable(str(path)).create_checkpoint()
    return str(path)


def _column(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _info(version: int) -> dict[str, Any]:
    return {
        "timestamp": 1_700_000_000_000 + version,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "engineInfo": "delta-rs:py-1.6.6",
    }


def _add(partition: str, draw: random.Random) -> dict[str, Any]:
    folder = f"{partition}=x/" if partition else ""
    return {
        "path": f"{folder}part-{draw.getrandbits(64):016x}.parquet",
        "partitionValues": {partition: "x"} if partition else {},
        "size": 1_000,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": '{"numRecords":10,"nullCount":{}}',
    }
