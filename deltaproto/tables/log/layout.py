"""The layout: properties of data files and commits that are not part of the table's state.

Nothing here reads every file action. Files of commits are recorded while the commits are read for
the state. For a checkpoint, the statistics of its path column nearly always show whether paths are
absolute, and whether they begin with the folder of a partition; otherwise, and for partitions by
text or timestamps, a few thousand paths are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.metadata import Metadata
from deltaproto.tables.log.add_flaws import FLAWS, flaws_in_statistics
from deltaproto.tables.log.checkpoint import CheckpointFiles, checkpoint_adds
from deltaproto.tables.log.file_statistics import compare_statistics
from deltaproto.tables.log.files import Checkpoint, FileChange, LogListing, read_actions
from deltaproto.tables.log.layout_evidence import STORING, LayoutEvidence, is_absolute
from deltaproto.tables.log.parquet import UnsupportedParquet
from deltaproto.tables.log.parquet.footer import (
    Bounds,
    LeafStatistics,
    read_statistics,
    text_bounds,
)
from deltaproto.tables.log.partition_paths import (
    is_partitioned_by_text,
    partition_types,
)
from deltaproto.tables.storage.interface import LogStore
from deltaproto.tables.storage.local import LocalLogStore

MOST_COMMITS = 100
"""if a checkpoint has more newer commits, only the newest ones and the first one are read"""
_MOST_OLDER, _MOST_OLDER_HERE = 20, 100
"""number of commits before the checkpoint that are read: of a store, and on this machine's disks"""
_MOST_FOR_PARTITIONS = 10
"""number of commits that a scan reads to find one that adds files to a partitioned table"""
_MOST_PATHS = 10_000
_SCHEMES = (
    "/", "abfs:", "abfss:", "adl:", "cosn:", "dbfs:", "file:", "gs:", "hdfs:", "http:", "https:",
    "obs:", "oss:", "s3:", "s3a:", "s3n:", "viewfs:", "wasb:", "wasbs:",
)  # fmt: skip


def find_layout_traces(
    store: LogStore,
    listing: LogListing,
    version: int,
    layout: LayoutEvidence,
    *,
    metadata: Metadata,
    every_commit: bool,
) -> dict[Trace, bool]:
    """Determine the layout at `version`; evidence that could not be read is missing.

    Args:
        layout: evidence from commits that were read already; more is added.
        metadata: the table's, for its partition columns.
        every_commit: also read the other commits since the newest checkpoint, and some before it
            to find who wrote the files; otherwise only the first commit of a log without a
            checkpoint, which is how clones are created, and for a partitioned table the newest
            that adds files.
    """
    base = next(iter(listing.last_checkpoints(version)), None)
    floor = -1 if base is None else base.version
    commits = [v for v in range(version, floor, -1) if v in listing.commits]
    for each in _commits_to_read(commits, every_commit, base):
        _read_commit(store, listing, each, layout)
    whole = every_commit and layout.commits.issuperset(commits)
    found = {}
    if whole or not every_commit or layout.byte_order_mark:
        found[Trace.BYTE_ORDER_MARK] = layout.byte_order_mark
    absolute = layout.absolute
    if base is not None and not absolute:
        has_absolute = _checkpoint_has_absolute(store, base, layout)
        absolute, whole = bool(has_absolute), whole and has_absolute is not None
    if absolute or whole or not every_commit:
        found[Trace.ABSOLUTE_PATHS] = absolute
    flaws_known = whole or not every_commit
    columns = partition_types(metadata)
    if columns and base is None:
        # Writers keep their habits: the newest commit that adds files shows them.
        for each in commits[:_MOST_FOR_PARTITIONS]:
            if layout.partitions.seen:
                break
            _read_commit(store, listing, each, layout)
    by_text = is_partitioned_by_text(columns)
    non_ascii, escaped = layout.non_ascii, layout.escaped
    if base is not None and columns and (by_text or not _starts_with(store, base, columns)):
        sample = _sample_files(store, base, values=True)
        whole &= sample is not None
        for file in sample or ():
            non_ascii |= not file.path.isascii()
            escaped |= "%" in file.path
            layout.partitions.add(file.path, file.values)
    for trace, shown in ((Trace.NON_ASCII_PATHS, non_ascii), (Trace.ESCAPED_PATHS, escaped)):
        if shown or whole or not every_commit or not by_text:
            found[trace] = shown
    for trace, shown in layout.partitions.traces(columns).items():
        if shown or whole or not every_commit or not columns:
            found[trace] = shown
    flaws, compared = layout.find_flaws(metadata), len(layout.statistics)
    found.update({flaw: flaw in flaws for flaw in FLAWS if flaws_known or flaw in flaws})
    writers = _read_older(store, listing, floor, layout) if every_commit and whole else False
    if writers and layout.partitions.hidden and not layout.partitions.folders:
        property_ = metadata.configuration.get(f"delta.{STORING}")
        found[Trace.STORED_PARTITIONS] = layout.stores_partitions and property_ in (None, "true")
    for trace, shown in (
        (Trace.DELTA_RS_FILES, layout.delta_rs_files),
        (Trace.DELTA_RS_REWRITES, layout.delta_rs_rewrites),
    ):
        if shown or writers or not every_commit:
            found[trace] = shown
    flaws = flaws | compare_statistics(layout.statistics[compared:], metadata)
    found.update(layout.select_bounds(flaws, version))
    return found


def _commits_to_read(commits: list[int], every_commit: bool, base: Checkpoint | None) -> list[int]:
    if every_commit and len(commits) <= MOST_COMMITS:
        return commits
    first = commits[-1:] if base is None else []
    return [*commits[: MOST_COMMITS - 1], *first] if every_commit else first


def _read_older(store: LogStore, listing: LogListing, floor: int, layout: LayoutEvidence) -> bool:
    """Return True if every commit down to `floor` could be read to find who wrote the files."""
    older = sorted((v for v in listing.commits if v <= floor), reverse=True)
    most = _MOST_OLDER_HERE if isinstance(store, LocalLogStore) else _MOST_OLDER
    if len(older) <= floor or len(older) > most:
        return False
    marked, flaws = layout.byte_order_mark, set(layout.flaws)
    done = [_read_commit(store, listing, each, layout) for each in older]
    # Clients do not read these commits.
    layout.byte_order_mark, layout.flaws = marked, flaws
    return all(done)


def _read_commit(
    store: LogStore, listing: LogListing, version: int, layout: LayoutEvidence
) -> bool:
    """Return True if a commit could be read; damage is reported by readers that need its state."""
    if version in layout.commits:
        return True
    name = listing.commits[version]
    try:
        with store.open(name) as file:
            for _ in read_actions(name, file, seen=partial(layout.add, version)):
                pass
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        return False
    return True


def _checkpoint_has_absolute(
    store: LogStore, checkpoint: Checkpoint, layout: LayoutEvidence
) -> bool | None:
    """Return True if a checkpoint has absolute paths; None if it cannot be read.

    Adds what its `add` actions lack to the evidence, and the statistics that its footers have as
    bounds of a column.
    """
    try:
        answers = []
        for name in _checkpoint_files(store, checkpoint):
            leaves = _add_statistics(store, name)
            layout.flaws.update(flaws_in_statistics(leaves or {}))
            if (texts := (leaves or {}).get("stats")) is not None:
                layout.add_bounds(texts)
            answers.append(_has_absolute_by_bounds(leaves))
        if True in answers or None not in answers:
            return True in answers
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        return None
    files = _sample_files(store, checkpoint, values=False)
    return None if files is None else any(is_absolute(file.path) for file in files)


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
    store: LogStore, checkpoint: Checkpoint, *, values: bool
) -> list[FileChange] | None:
    """Return a few thousand files of a checkpoint; None if it cannot be read."""
    try:
        return list(islice(checkpoint_adds(store, checkpoint, values=values), _MOST_PATHS))
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
            return read_statistics(file, "add")
    except UnsupportedParquet:
        return None


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
