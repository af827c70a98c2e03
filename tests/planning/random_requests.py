"""Random protocol properties in the metadata of a table, as deltalake can store them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from deltaproto.protocol.table_state import TableState
from deltaproto.tables.log.reader import LogReader

STORE = "store "
"""begins a line that is no SQL: properties to store, as JSON"""
_PAIRS = ((1, 2), (1, 3), (1, 4), (1, 7), (2, 5), (2, 6), (3, 7), (3, 5))
_FEATURES = (
    *("appendOnly", "checkConstraints", "changeDataFeed", "columnMapping", "deletionVectors"),
    *("rowTracking", "domainMetadata", "inCommitTimestamp", "v2Checkpoint", "timestampNtz"),
    *(
        "vacuumProtocolCheck",
        "typeWidening",
        "checkpointProtection",
        "catalogManaged",
        "clustering",
    ),
    *("generatedColumns", "nope"),
)


def random_requests(seed: int) -> str:
    """Return the line that stores the properties of a seed."""
    random = Random(f"stored {seed}")
    found: dict[str, str] = {}
    if random.random() < 0.5:
        reader, writer = random.choice(_PAIRS)
        found["delta.minWriterVersion"] = str(writer)
        if random.random() < 0.8:
            found["delta.minReaderVersion"] = str(reader)
    if random.random() < 0.6 or not found:
        for name in random.sample(_FEATURES, random.choice((1, 1, 2))):
            spelled = name.lower() if random.random() < 0.3 else name
            found[f"delta.feature.{spelled}"] = random.choice(("supported", "enabled"))
    return STORE + json.dumps(found)


def store(path: str, line: str) -> None:
    """Commit the properties to the log at `path`."""
    state = LogReader().read(path)
    metadata = {
        "id": state.metadata.id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": state.metadata.schema_string,
        "partitionColumns": [*state.metadata.partition_columns],
        "configuration": {**state.metadata.configuration, **json.loads(line.removeprefix(STORE))},
        "createdTime": 1795000000000,
    }
    actions = ({"commitInfo": _commit_info(state)}, {"metaData": metadata})
    commit = Path(path) / "_delta_log" / f"{state.version + 1:020d}.json"
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))


def _commit_info(state: TableState) -> dict[str, object]:
    info: dict[str, object] = {"timestamp": 1795000000000, "operation": "SET TBLPROPERTIES"}
    stamp = (state.last_commit or {}).get("inCommitTimestamp")
    if isinstance(stamp, int):
        info = {"inCommitTimestamp": stamp + 1, **info}
    return {**info, "operationParameters": {}}
