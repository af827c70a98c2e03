"""Fleets for the benchmarks: logs as Delta Spark writes them, without data files."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from pathlib import Path
from typing import Any

_BOUNDS = [0, *(8192 * 2**n for n in range(8)), *(2097152 * n for n in range(1, 87))]
_CHUNK = 512
_KINDS: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
    ({"minReaderVersion": 1, "minWriterVersion": 2}, {}),
    ({"minReaderVersion": 1, "minWriterVersion": 4}, {"delta.enableChangeDataFeed": "true"}),
    (
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors", "invariants", "appendOnly"],
        },
        {"delta.enableDeletionVectors": "true"},
    ),
    (
        {
            "minReaderVersion": 2,
            "minWriterVersion": 7,
            "writerFeatures": ["columnMapping", "invariants", "appendOnly"],
        },
        {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "8"},
    ),
)


def make_tables(
    root: Path, count: int, *, commits: int = 3, files: int = 1, checksum: bool = True
) -> list[str]:
    """`count` tables in folders of a hundred; each commit adds `files` files."""
    return [
        make_table(
            root / f"db{number // 100:04}" / f"t{number:06}",
            number,
            commits=commits,
            files=files,
            checksum=checksum,
        )
        for number in range(count)
    ]


def make_table(
    path: Path,
    number: int,
    *,
    commits: int = 3,
    files: int = 1,
    checksum: bool = True,
    checkpoint: int | None = None,
) -> str:
    """One table; the checksum of each commit lies beside it, and Hadoop's own of both.

    `checkpoint` is the version that gets one, from deltalake.
    """
    log = path / "_delta_log"
    log.mkdir(parents=True)
    protocol, configuration = _KINDS[number % len(_KINDS)]
    metadata = {
        "id": str(uuid.UUID(int=number)),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _schema(number, mapped="delta.columnMapping.mode" in configuration),
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": 1_700_000_000_000 + number,
    }
    total = 0
    for version in range(commits):
        transaction = str(uuid.UUID(int=number * 1_000_000 + version))
        actions: list[dict[str, Any]] = [{"commitInfo": _info(version, transaction)}]
        if version == 0:
            actions += [{"metaData": metadata}, {"protocol": protocol}]
        actions += [{"add": _add(version, file)} for file in range(files)]
        total += files
        text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
        _write(log, f"{version:020}.json", text)
        if checksum:
            crc = _checksum(transaction, total, metadata, protocol)
            _write(log, f"{version:020}.crc", json.dumps(crc, separators=(",", ":")))
        if version == checkpoint:
            from deltalake import DeltaTable

            DeltaTable(str(path)).create_checkpoint()
    return str(path)


def _write(log: Path, name: str, text: str) -> None:
    data = text.encode()
    (log / name).write_bytes(data)
    # As Hadoop's ChecksumFileSystem writes it: a CRC32 of every 512 bytes.
    sums = (zlib.crc32(data[start : start + _CHUNK]) for start in range(0, len(data), _CHUNK))
    head = b"crc\0" + struct.pack(">i", _CHUNK)
    (log / f".{name}.crc").write_bytes(head + b"".join(struct.pack(">I", each) for each in sums))


def _schema(number: int, *, mapped: bool) -> str:
    def field(place: int) -> dict[str, Any]:
        name = f"c{place}_{number % 97}"
        mapping = {"delta.columnMapping.id": place, "delta.columnMapping.physicalName": name}
        return {
            "name": name,
            "type": ("long", "string", "double")[place % 3],
            "nullable": True,
            "metadata": mapping if mapped else {},
        }

    return json.dumps({"type": "struct", "fields": [field(place) for place in range(1, 9)]})


def _info(version: int, transaction: str) -> dict[str, Any]:
    return {
        "timestamp": 1_700_000_000_000 + version,
        "operation": "WRITE" if version else "CREATE TABLE AS SELECT",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": "1", "numOutputRows": "100", "numOutputBytes": "930"},
        "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
        "txnId": transaction,
    }


def _add(version: int, file: int) -> dict[str, Any]:
    return {
        "path": f"part-{version:05}-{file:05}-79012ead-6d4f-402a-9459-51b26424d2f8-c000.parquet",
        "partitionValues": {},
        "size": 930,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": '{"numRecords":100,"minValues":{"c1":0},"maxValues":{"c1":99}}',
    }


def _checksum(
    transaction: str, files: int, metadata: dict[str, Any], protocol: dict[str, Any]
) -> dict[str, Any]:
    zeros = [0] * (len(_BOUNDS) - 1)
    return {
        "txnId": transaction,
        "tableSizeBytes": 930 * files,
        "numFiles": files,
        "numDeletedRecordsOpt": 0,
        "numDeletionVectorsOpt": 0,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": metadata,
        "protocol": protocol,
        "fileSizeHistogram": {
            "sortedBinBoundaries": _BOUNDS,
            "fileCounts": [files, *zeros],
            "totalBytes": [930 * files, *zeros],
        },
        "allFiles": [_add(0, file) for file in range(min(files, 10))],
    }
