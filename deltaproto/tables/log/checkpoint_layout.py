"""The layout of the data files in a checkpoint, from the statistics or the values of its paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.table_state import NoteKind
from deltaproto.tables.log.add_flaws import flaws_in_statistics
from deltaproto.tables.log.checkpoint import CheckpointFiles, checkpoint_adds
from deltaproto.tables.log.file_changes import FileChange
from deltaproto.tables.log.files import Checkpoint, read_actions
from deltaproto.tables.log.layout_evidence import LayoutEvidence, is_absolute
from deltaproto.tables.log.parquet import UnsupportedParquet
from deltaproto.tables.log.parquet.batches import read_batches
from deltaproto.tables.log.parquet.footer import (
    Bounds,
    LeafStatistics,
    read_statistics,
    text_bounds,
)
from deltaproto.tables.log.partition_paths import has_odd_values
from deltaproto.tables.storage.interface import LogStore

_MOST_PATHS = 10_000
_VECTOR = "deletionVector.storageType"
_SCHEMES = (
    "/", "abfs:", "abfss:", "adl:", "cosn:", "dbfs:", "file:", "gs:", "hdfs:", "http:", "https:",
    "obs:", "oss:", "s3:", "s3a:", "s3n:", "viewfs:", "wasb:", "wasbs:",
)  # fmt: skip


def has_absolute_paths(
    store: LogStore, checkpoint: Checkpoint, layout: LayoutEvidence
) -> bool | None:
    """Return True if a checkpoint has absolute paths of live files; None if it cannot be read.

    Adds to the evidence: the members that its `add` actions lack, the statistics that its footers
    have as bounds of a column, whether there may be deletion vectors, and unreadable parts or
    sidecars.
    """
    try:
        answers = []
        for name in _checkpoint_files(store, checkpoint):
            leaves = _add_statistics(store, name)
            layout.flaws.update(flaws_in_statistics(leaves or {}))
            layout.untracked_in_checkpoint |= not _has_as_many(leaves, "baseRowId")
            layout.vectors |= _may_have_vectors(leaves)
            if (texts := (leaves or {}).get("stats")) is not None:
                layout.add_bounds(texts)
            answers.append(_has_absolute_by_bounds(leaves))
        if None not in answers and True not in answers:
            return False
        if True in answers and not layout.removed_absolute:
            return True
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        layout.add_damage(NoteKind.CHECKPOINT_UNREADABLE, error.message)
        return None
    # Commits after the checkpoint may have replaced all of these files.
    most = None if layout.removed_absolute else _MOST_PATHS
    files = _sample_files(store, checkpoint, layout, values=False, most=most)
    return None if files is None else any(is_absolute(file.path) for file in files)


def has_every_statistics(store: LogStore, checkpoint: Checkpoint) -> bool:
    """Return True if the footers of a checkpoint show that every data file has statistics as JSON.

    Raises:
        TableError: corrupt-log, when a part is not readable.
    """
    for name in _checkpoint_files(store, checkpoint):
        if name.endswith(".json"):
            with store.open(name) as file:
                actions = read_actions(name, file, files=True, holding=b'"add"')
                if any("add" in action for action in actions):
                    return False
            continue
        if not _has_as_many(_add_statistics(store, name), "stats"):
            return False
    return True


def _has_as_many(leaves: _Leaves | None, member: str) -> bool:
    """Return True if every `add` action of a part certainly has the member."""
    if leaves is None:
        return False
    files = leaves["path"].filled if "path" in leaves else 0
    found = leaves[member].filled if member in leaves else 0
    return files is not None and files == found


def _may_have_vectors(leaves: _Leaves | None) -> bool:
    """Return False if no `add` action of a part has a deletion vector, or if that is unknown."""
    vectors = None if leaves is None else leaves.get(_VECTOR)
    return vectors is not None and vectors.filled != 0


def has_untracked_files(
    store: LogStore, checkpoint: Checkpoint, layout: LayoutEvidence
) -> bool | None:
    """Return True if a file of a checkpoint has no row ids, and is still live after the commits.

    None if that is unknown.
    """
    try:
        for file in CheckpointFiles(store, checkpoint):
            if not file.row_ids and not layout.replaces(file.path):
                return True if layout.replaces_all else None
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        return None
    return False


def add_partition_paths(
    store: LogStore,
    checkpoint: Checkpoint,
    columns: Mapping[str, str | None],
    layout: LayoutEvidence,
) -> bool:
    """Add the paths of a partitioned table's checkpoint, unless statistics show their form.

    Returns False if it cannot be read.
    """
    if not has_odd_values(columns) and _starts_with(store, checkpoint, columns):
        return True
    sample = _sample_files(store, checkpoint, layout, values=True)
    for file in sample or ():
        layout.add_path(file.path, file.values)
    return sample is not None


def _starts_with(store: LogStore, checkpoint: Checkpoint, columns: Iterable[str]) -> bool:
    """Return True if every path of the checkpoint certainly begins with a partition's folder.

    Every string between two bounds starts with the bounds' common prefix.
    """
    starts = tuple(f"{name}=" for name in columns)
    try:
        for name in _checkpoint_files(store, checkpoint):
            bounds = _path_bounds(_add_statistics(store, name))
            if bounds is None or None in bounds:
                return False
            low, high = bounds
            if not any(str(low).startswith(s) and str(high).startswith(s) for s in starts):
                return False
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        return False
    return True


def _sample_files(
    store: LogStore,
    checkpoint: Checkpoint,
    layout: LayoutEvidence,
    *,
    values: bool,
    most: int | None = _MOST_PATHS,
) -> list[FileChange] | None:
    """Return files of a checkpoint that no later commit removed; None if it cannot be read.

    Args:
        most: how many files of the checkpoint to read; None: all.
    """
    try:
        files = islice(checkpoint_adds(store, checkpoint, values=values), most)
        return [file for file in files if not layout.removes(file.path)]
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        return None


def _checkpoint_files(store: LogStore, checkpoint: Checkpoint) -> list[str]:
    """Return its files, and the sidecars of a V2 checkpoint."""
    found = CheckpointFiles(store, checkpoint)
    return [*checkpoint.files, *found.sidecars()]


_Leaves = Mapping[str, LeafStatistics]


def _add_statistics(store: LogStore, name: str) -> _Leaves | None:
    """Return the statistics of the column `add` of a checkpoint file, if it has any."""
    if not name.endswith(".parquet"):
        return None
    try:
        with store.open(name) as file:
            return read_statistics(file, "add", (_VECTOR.encode(),))
    except UnsupportedParquet:
        _require_parquet(store, name)
        return None


def _require_parquet(store: LogStore, name: str) -> None:
    """Raise corrupt-log if pyarrow cannot open the file either."""
    with store.open(name) as file:
        next(read_batches(name, file, lambda leaf: False), None)


def _path_bounds(leaves: _Leaves | None) -> Bounds | None:
    """Return the lowest and highest path; both None without paths, None if unknown."""
    return None if leaves is None else text_bounds(leaves.get("path"))


def _has_absolute_by_bounds(leaves: _Leaves | None) -> bool | None:
    """Return True if a checkpoint file has absolute paths by its statistics; None if unknown."""
    found = _path_bounds(leaves)
    if found is None:
        return None
    low, high = found
    if low is None or high is None:
        return False
    if is_absolute(low) or is_absolute(high):
        return True
    # Every string between two bounds starts with the bounds' common prefix.
    common = ""
    for one, other in zip(low, high, strict=False):
        if one != other:
            break
        common += one
    if not common or any(s.startswith(common) or common.startswith(s) for s in _SCHEMES):
        return None
    return False
