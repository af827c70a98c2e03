"""Which traces of features the files and the log of one version really hold.

Reads every live file action, so its cost grows with the number of files; nothing else in the
`log` reader does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.actions import corrupt, parse_object, read_actions
from deltaproto.tables.log.names import Checkpoint, Listing
from deltaproto.tables.storage.interface import LogStore

_SIDECARS = "_sidecars/"


def look(store: LogStore, listing: Listing, version: int) -> dict[Trace, bool]:
    """Traces in the file actions of `version`, and in the change files the log still names.

    Raises:
        TableError: corrupt-log, when neither a checkpoint nor all commits can be read.
    """
    files = _Files()
    commits = [v for v in sorted(listing.commits) if v <= version]
    base = _read_base(store, listing, version, files)
    for commit in commits:
        name = listing.commits[commit]
        live = commit > (-1 if base is None else base.version)
        with store.open(name) as file:
            for action in read_actions(name, file, files=True):
                files.changes |= "cdc" in action
                if live:
                    files.apply(action)
    found = {
        Trace.DELETION_VECTORS: any(vector for vector, _ in files.live.values()),
        Trace.ROW_IDS: any(rows for _, rows in files.live.values()),
        Trace.CHANGE_FILES: files.changes,
    }
    if base is not None:
        found[Trace.V2_CHECKPOINT] = files.v2
    return found


class _Files:
    """Live data files by path and deletion vector (PROTOCOL.md, "Action Reconciliation")."""

    def __init__(self) -> None:
        self.live: dict[tuple[str, str], tuple[bool, bool]] = {}
        self.changes = False
        self.v2 = False

    def apply(self, action: dict[str, Any]) -> None:
        self.v2 |= "checkpointMetadata" in action
        remove = action.get("remove")
        if isinstance(remove, dict):
            self.live.pop(_key(remove), None)
        add = action.get("add")
        if isinstance(add, dict):
            rows = add.get("baseRowId") is not None
            self.live[_key(add)] = (bool(add.get("deletionVector")), rows)


def _key(action: dict[str, Any]) -> tuple[str, str]:
    vector = action.get("deletionVector")
    identity = ""
    if isinstance(vector, dict):
        parts = (vector.get("storageType"), vector.get("pathOrInlineDv"), vector.get("offset"))
        identity = "|".join(map(str, parts))
    return str(action.get("path")), identity


def _read_base(store: LogStore, listing: Listing, version: int, files: _Files) -> Checkpoint | None:
    for checkpoint in listing.checkpoints_up_to(version):
        try:
            for action in _checkpoint_files(store, checkpoint):
                files.apply(action)
            return checkpoint
        except TableError as error:
            if error.code is not ErrorCode.CORRUPT_LOG:
                raise
            files.live.clear()
    return None


def _checkpoint_files(store: LogStore, checkpoint: Checkpoint) -> Iterator[dict[str, Any]]:
    for name in checkpoint.files:
        with store.open(name) as file:
            rows = _json_rows(name, file) if name.endswith(".json") else _parquet_rows(name, file)
            for action in rows:
                yield action
                sidecar = action.get("sidecar")
                if isinstance(sidecar, dict):
                    path = _SIDECARS + str(sidecar.get("path")).rsplit("/", 1)[-1]
                    with store.open(path) as part:
                        yield from _parquet_rows(path, part)


def _json_rows(name: str, file: IO[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, 1):
        if line.strip():
            yield parse_object(name, number, line)


def _parquet_rows(name: str, file: IO[bytes]) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        parquet = pq.ParquetFile(file)
        wanted = [
            column
            for column in _leaves(parquet)
            if column.startswith(("add.path", "add.deletionVector.", "add.baseRowId"))
            or column.startswith(("sidecar.", "checkpointMetadata."))
        ]
        for batch in parquet.iter_batches(columns=wanted):
            for row in batch.to_pylist():
                yield {key: value for key, value in row.items() if value is not None}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise corrupt(name, None, f"not a readable checkpoint: {error}") from None


def _leaves(parquet: Any) -> list[str]:
    return [parquet.schema.column(i).path for i in range(len(parquet.schema))]
