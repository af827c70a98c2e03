"""Checkpoints: protocol, metadata and domains without file actions, and file actions in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from deltaproto.tables.log.file_changes import FileChange
from deltaproto.tables.log.file_statistics import has_row_count
from deltaproto.tables.log.files import (
    Checkpoint,
    corrupt_error,
    parse_object,
    read_actions,
    read_lines,
)
from deltaproto.tables.log.parquet import UnsupportedParquet, read_rows
from deltaproto.tables.log.parquet.batches import column_to_list, read_batches
from deltaproto.tables.log.parquet.thrift import MAX_ACTIONS, MAX_STATE_BYTES
from deltaproto.tables.storage.interface import LogStore

if TYPE_CHECKING:
    import pyarrow as pa


_ACTIONS = ("protocol", "metaData", "domainMetadata")


def checkpoint_actions(store: LogStore, checkpoint: Checkpoint) -> Iterator[dict[str, Any]]:
    """Yield the protocol, metaData and domainMetadata actions of a checkpoint.

    Raises:
        TableError: corrupt-log when a part's content does not match its name.
    """
    for name in checkpoint.files:
        with store.open(name) as file:
            if name.endswith(".json"):
                yield from read_actions(name, file)
            else:
                yield from _parquet_actions(name, file)


def _parquet_actions(name: str, file: IO[bytes]) -> Iterator[dict[str, Any]]:
    try:
        found = read_rows(file, _ACTIONS)
    except UnsupportedParquet:
        # Files that the simple reader rejects are read, or found damaged, by pyarrow.
        file.seek(0)
        yield from _with_pyarrow(name, file)
    else:
        yield from ({column: _to_plain_action(action)} for column, action in found)


def _with_pyarrow(name: str, file: IO[bytes]) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    size = count = 0
    for batch in read_batches(name, file, lambda path: path.partition(".")[0] in _ACTIONS):
        for column, values in zip(batch.schema.names, batch.columns, strict=True):
            if values.null_count == len(values):
                continue
            if not pa.types.is_struct(values.type):
                raise corrupt_error(name, None, f"its column {column} is not a struct")
            found = values.drop_null()
            size, count = size + found.nbytes, count + len(found)
            if size > MAX_STATE_BYTES or count > MAX_ACTIONS:
                why = f"it decompresses to {count} or more actions of {size} or more bytes"
                raise corrupt_error(name, None, f"not a readable checkpoint: {why}")
            yield from ({column: _to_plain_action(value)} for value in column_to_list(name, found))


def _to_plain_action(action: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in action.items() if value is not None}
    pairs = plain.get("configuration")
    # pyarrow returns a map as a list of pairs; a list of anything else is damage.
    if isinstance(pairs, list) and all(isinstance(pair, tuple) for pair in pairs):
        plain["configuration"] = dict(pairs)
    return plain


_SIDECARS = "_sidecars/"
_OF_SIDECAR = ("path", "sizeInBytes", "modificationTime")
_VECTOR = ("storageType", "pathOrInlineDv", "offset")
_LEAVES = frozenset({"add.path", "add.size", "add.baseRowId", "sidecar.path"})
_OF_STATISTICS = frozenset({"add.stats", "add.stats_parsed.numRecords"})
_PARENTS = ("add.deletionVector.", "checkpointMetadata.")


class StoredFile(NamedTuple):
    """The needed members of an `add` action."""

    key: str
    """path and deletion vector: the key by which a later action refers to this file"""
    path: str
    size: int
    """bytes; 0 if the writer omitted it"""
    vector: bool
    """whether it has a deletion vector"""
    row_ids: bool
    """whether it has a base row id"""
    statistics: str | None = None
    """as JSON; None if there are none, or if they are not wanted"""
    counted: bool = False
    """whether the wanted statistics have the number of rows"""


class CheckpointFiles:
    """Iterates over the files of a checkpoint, including those in sidecars.

    Args:
        statistics: whether the statistics of the files are wanted.

    Raises:
        TableError: corrupt-log, while iterating, when a part is not readable.
    """

    def __init__(
        self, store: LogStore, checkpoint: Checkpoint, *, statistics: bool = False
    ) -> None:
        self._store = store
        self._checkpoint = checkpoint
        self._leaves = _LEAVES | _OF_STATISTICS if statistics else _LEAVES
        self.v2 = False
        """whether it is a V2 checkpoint; known after iterating"""
        self.statistics_without_json = False
        """whether a file has its statistics only in another form, such as a struct; known after
        iterating with them"""
        self._sidecars: list[str] = []

    def sidecars(self) -> list[str]:
        """Return the paths of the sidecars in the log's folder; reads no file actions."""
        found: list[str] = []
        for name in self._checkpoint.files if self._checkpoint.v2_name else ():
            with self._store.open(name) as file:
                found += _read_sidecar_names(name, file)
        return [_SIDECARS + path.rsplit("/", 1)[-1] for path in found]

    def __iter__(self) -> Iterator[StoredFile]:
        for name in self._checkpoint.files:
            yield from self._part(name)
        for path in self._sidecars:
            yield from self._part(_SIDECARS + path.rsplit("/", 1)[-1])

    def _part(self, name: str) -> Iterator[StoredFile]:
        with self._store.open(name) as file:
            yield from (
                self._json(name, file) if name.endswith(".json") else self._parquet(name, file)
            )

    def _json(self, name: str, file: IO[bytes]) -> Iterator[StoredFile]:
        for number, line in enumerate(read_lines(name, file), 1):
            if not line.strip():
                continue
            action = parse_object(name, number, line)
            self.v2 |= "checkpointMetadata" in action
            if isinstance(sidecar := action.get("sidecar"), dict):
                self._sidecars.append(str(sidecar.get("path")))
            if isinstance(add := action.get("add"), dict):
                yield file_from_add(add)

    def _parquet(self, name: str, file: IO[bytes]) -> Iterator[StoredFile]:
        for batch in read_batches(name, file, self._is_needed):
            self.v2 |= _has_values(batch, "checkpointMetadata")
            paths = _values(name, batch, "sidecar", "path")
            self._sidecars += [str(path) for path in paths if path is not None]
            if _has_values(batch, "add"):
                yield from self._files_in_batch(name, batch)

    def _is_needed(self, leaf: str) -> bool:
        return leaf in self._leaves or leaf.startswith(_PARENTS)

    def _files_in_batch(self, name: str, batch: pa.RecordBatch) -> Iterator[StoredFile]:
        parts = ("path", "size", "baseRowId", "stats")
        columns = [_values(name, batch, "add", part) for part in parts]
        columns.append(_values(name, batch, "add", "stats_parsed", "numRecords"))
        columns += [_values(name, batch, "add", "deletionVector", part) for part in _VECTOR]
        for path, size, row_id, stats, rows, *vector in zip(*columns, strict=True):
            if path is not None:
                key = _key(path, *vector)
                size = size if isinstance(size, int) else 0
                text = stats if isinstance(stats, str) else None
                other = stats is not None or rows is not None
                self.statistics_without_json |= text is None and other
                yield StoredFile(
                    *(key, str(path), size, key != path, row_id is not None, text),
                    counted=rows is not None or has_row_count(text),
                )


def checkpoint_adds(
    store: LogStore, checkpoint: Checkpoint, *, values: bool
) -> Iterator[FileChange]:
    """Yield only the paths, and the partition `values` if wanted, of a checkpoint's data files.

    Raises:
        TableError: corrupt-log, when a part is not readable.
    """
    wanted = ("add.path", "add.partitionValues.") if values else ("add.path",)

    def is_wanted(leaf: str) -> bool:
        return leaf.startswith(wanted)

    for name in [*checkpoint.files, *CheckpointFiles(store, checkpoint).sidecars()]:
        with store.open(name) as file:
            if name.endswith(".json"):
                actions = read_actions(name, file, files=True)
                for add in (action.get("add") for action in actions):
                    if isinstance(add, dict):
                        yield _change(str(add.get("path")), add.get("partitionValues"))
            else:
                for batch in read_batches(name, file, is_wanted):
                    paths = _values(name, batch, "add", "path")
                    found = _values(name, batch, "add", "partitionValues")
                    for path, each in zip(paths, found, strict=True):
                        if path is not None:
                            yield _change(str(path), each)


def _change(path: str, values: Any) -> FileChange:
    # pyarrow returns the entries of a map.
    if isinstance(values, list):
        values = dict(values)
    return FileChange("add", path, values if isinstance(values, dict) else None)


def _read_sidecar_names(name: str, file: IO[bytes]) -> Iterator[str]:
    if name.endswith(".json"):
        found = (action.get("sidecar") for action in read_actions(name, file))
        rows = ([each.get(m) for m in _OF_SIDECAR] for each in found if isinstance(each, dict))
        yield from _paths_of_sidecars(name, rows)
        return
    for batch in read_batches(name, file, lambda leaf: leaf.startswith("sidecar.")):
        columns = [_values(name, batch, "sidecar", member) for member in _OF_SIDECAR]
        rows = (list(row) for row in zip(*columns, strict=True))
        yield from _paths_of_sidecars(
            name, (row for row in rows if any(m is not None for m in row))
        )


def _paths_of_sidecars(name: str, rows: Iterable[list[Any]]) -> Iterator[str]:
    # Without the size, Delta Spark ignores the sidecar; Delta Kernel needs every member.
    for row in rows:
        if None in row:
            missing = _OF_SIDECAR[row.index(None)]
            raise corrupt_error(name, None, f"a sidecar action has no {missing}")
        yield str(row[0])


def file_from_add(add: Mapping[str, Any]) -> StoredFile:
    """Convert an `add` action of a commit."""
    size, stored = add.get("size"), add.get("stats")
    statistics = stored if isinstance(stored, str) else None
    return StoredFile(
        file_key(add),
        str(add.get("path")),
        size if isinstance(size, int) else 0,
        bool(add.get("deletionVector")),
        add.get("baseRowId") is not None,
        statistics,
        has_row_count(statistics),
    )


def file_key(action: Mapping[str, Any]) -> str:
    """Return a file's path and deletion vector as key (PROTOCOL.md, "Action Reconciliation")."""
    path, vector = str(action.get("path")), action.get("deletionVector")
    if not isinstance(vector, Mapping):
        return path
    return _key(path, *(vector.get(part) for part in _VECTOR))


def _key(path: Any, storage: Any, vector: Any, offset: Any) -> str:
    if storage is None and vector is None:
        return str(path)
    return f"{path}\n{storage}|{vector}|{offset}"


def _has_values(batch: pa.RecordBatch, column: str) -> bool:
    if column not in batch.schema.names:
        return False
    values = batch.column(column)
    return bool(values.null_count < len(values))


def _values(name: str, batch: pa.RecordBatch, *path: str) -> list[Any]:
    """Return one leaf of a struct column; null in rows where the leaf or the struct is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if path[0] not in batch.schema.names:
        return [None] * len(batch)
    values = batch.column(path[0])
    for step in path[1:]:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(step) < 0:
            return [None] * len(batch)
        values = pc.struct_field(values, [step])
    return column_to_list(name, values)
