"""Hand-made Delta logs: written action by action, so that they can be wrong in every way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_TYPES = pa.schema(
    [
        pa.field(
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        pa.field(
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    (
                        "format",
                        pa.struct(
                            [
                                ("provider", pa.string()),
                                ("options", pa.map_(pa.string(), pa.string())),
                            ]
                        ),
                    ),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", pa.map_(pa.string(), pa.string())),
                ]
            ),
        ),
        pa.field(
            "domainMetadata",
            pa.struct(
                [
                    ("domain", pa.string()),
                    ("configuration", pa.string()),
                    ("removed", pa.bool_()),
                ]
            ),
        ),
        pa.field(
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", pa.map_(pa.string(), pa.string())),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    (
                        "deletionVector",
                        pa.struct([("storageType", pa.string()), ("pathOrInlineDv", pa.string())]),
                    ),
                    ("baseRowId", pa.int64()),
                ]
            ),
        ),
        pa.field(
            "sidecar",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("sizeInBytes", pa.int64()),
                    ("modificationTime", pa.int64()),
                ]
            ),
        ),
        pa.field("checkpointMetadata", pa.struct([("version", pa.int64())])),
    ]
)


def schema_string(*columns: dict[str, Any]) -> str:
    """A schemaString; without columns, one nullable long `id`."""
    fields = columns or (column("id"),)
    return json.dumps({"type": "struct", "fields": list(fields)})


def column(
    name: str, type_: Any = "long", *, nullable: bool = True, **metadata: Any
) -> dict[str, Any]:
    """One field; in metadata keys `__` stands for a dot."""
    dotted = {key.replace("__", "."): value for key, value in metadata.items()}
    return {"name": name, "type": type_, "nullable": nullable, "metadata": dotted}


def protocol(
    reader: int,
    writer: int,
    reader_features: list[str] | None = None,
    writer_features: list[str] | None = None,
) -> dict[str, Any]:
    """A protocol action."""
    action: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if reader_features is not None:
        action["readerFeatures"] = reader_features
    if writer_features is not None:
        action["writerFeatures"] = writer_features
    return {"protocol": action}


def metadata(
    configuration: dict[str, Any] | None = None,
    schema: str | None = None,
    partition_columns: list[str] | None = None,
    id: str = "11111111-1111-1111-1111-111111111111",
) -> dict[str, Any]:
    """A metaData action."""
    return {
        "metaData": {
            "id": id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_string() if schema is None else schema,
            "partitionColumns": partition_columns or [],
            "configuration": configuration or {},
            "createdTime": 1,
        }
    }


def commit_info(operation: str = "WRITE", **fields: Any) -> dict[str, Any]:
    """A commitInfo action."""
    return {"commitInfo": {"timestamp": 1, "operation": operation, **fields}}


def add(path: str = "part-0.parquet", **fields: Any) -> dict[str, Any]:
    """An add action."""
    return {
        "add": {
            "path": path,
            "partitionValues": {},
            "size": 1,
            "modificationTime": 1,
            "dataChange": True,
            **fields,
        }
    }


class Log:
    """The log of a table at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "_delta_log"
        self.folder.mkdir(parents=True)

    @property
    def table(self) -> str:
        return str(self.root)

    def path(self, version: int, suffix: str) -> Path:
        return self.folder / f"{version:020d}{suffix}"

    def commit(self, version: int, *actions: dict[str, Any]) -> Log:
        """Write a commit."""
        lines = "".join(json.dumps(action) + "\n" for action in actions)
        self.path(version, ".json").write_text(lines)
        return self

    def raw(self, version: int, content: bytes, suffix: str = ".json") -> Log:
        """Write any bytes as a log file."""
        self.path(version, suffix).write_bytes(content)
        return self

    def checksum(self, version: int, protocol_: Any, metadata_: Any, **fields: Any) -> Log:
        """Write a version checksum from a protocol and a metaData action."""
        document = {
            "tableSizeBytes": 0,
            "numFiles": 0,
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": metadata_["metaData"],
            "protocol": protocol_["protocol"],
            **fields,
        }
        self.path(version, ".crc").write_text(json.dumps(document))
        return self

    def checkpoint(
        self, version: int, *actions: dict[str, Any], suffix: str = ".checkpoint.parquet"
    ) -> Log:
        """Write a Parquet checkpoint, or a V2 one in JSON when `suffix` says so."""
        actions = tuple(map(_with_sidecar_size, actions))
        if suffix.endswith(".json"):
            return self.raw(
                version, "".join(json.dumps(a) + "\n" for a in actions).encode(), suffix
            )
        pq.write_table(action_table(actions), self.path(version, suffix))
        return self


def _with_sidecar_size(action: dict[str, Any]) -> dict[str, Any]:
    # Tests of damage store values that are not actions.
    if not isinstance(action, dict) or "sidecar" not in action:
        return action
    return {"sidecar": {"sizeInBytes": 1, "modificationTime": 1, **action["sidecar"]}}


def action_table(actions: tuple[dict[str, Any], ...]) -> pa.Table:
    """Actions as the rows of a checkpoint or a sidecar."""
    columns = {}
    for field in _TYPES:
        values = [_trimmed(action.get(field.name), field.type) for action in actions]
        columns[field.name] = pa.array(values, field.type)
    return pa.table(columns)


def _trimmed(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    names = {type_.field(i).name for i in range(type_.num_fields)}
    kept = {key: member for key, member in value.items() if key in names}
    for name in ("configuration", "partitionValues", "options"):
        if isinstance(kept.get(name), dict):
            kept[name] = list(kept[name].items())
    if isinstance(kept.get("format"), dict):
        kept["format"] = _trimmed(kept["format"], type_.field("format").type)
    return kept
