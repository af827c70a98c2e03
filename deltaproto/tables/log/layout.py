"""The layout: properties of data files and commits that are not part of the table's state.

Nothing here reads every file action. Files of commits are recorded while the commits are read for
the state. For a checkpoint, the statistics of its path column nearly always show whether paths are
absolute, and whether they begin with the folder of a partition; otherwise, and for partitions by
text or timestamps, a few thousand paths are read.
"""

from __future__ import annotations

from functools import partial

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.table_state import NoteKind
from deltaproto.tables.log.add_flaws import FLAWS
from deltaproto.tables.log.file_statistics import compare_statistics
from deltaproto.tables.log.files import Checkpoint, LogListing, read_actions
from deltaproto.tables.log.layout_evidence import STORING, LayoutEvidence
from deltaproto.tables.log.partition_paths import (
    is_partitioned_by_text,
    partition_types,
)
from deltaproto.tables.storage.interface import LogStore
from deltaproto.tables.storage.local import LocalLogStore

MOST_COMMITS = 100
"""maximum number of commits read after a checkpoint: if there are more, the newest ones and the
first one
"""
_MOST_FOR_ROW_IDS = 10_000
"""the same where row tracking is enabled: the oldest file may be the only one without row ids"""
_MOST_OLDER, _MOST_OLDER_HERE = 20, 100
"""number of commits to read before the checkpoint: on object stores, and on local disks"""
_MOST_FOR_PARTITIONS = 10
"""number of commits that a scan reads to find one that adds files to a partitioned table"""


def find_layout_traces(
    store: LogStore,
    listing: LogListing,
    version: int,
    layout: LayoutEvidence,
    *,
    metadata: Metadata,
    every_commit: bool,
    v2_checkpoints: bool = False,
) -> dict[Trace, bool]:
    """Determine the layout at `version`; evidence that could not be read is missing.

    Args:
        layout: evidence from commits that were already read; extended here.
        metadata: the table's metadata, for its partition columns.
        every_commit: also read the other commits since the newest checkpoint, and some before it
            to find who wrote the files; otherwise only the first commit of a log without a
            checkpoint, which is how clones are created, for a partitioned table the newest that
            adds files, and those since a checkpoint with absolute paths.
        v2_checkpoints: whether the protocol supports them.
    """
    bases = _newest_checkpoints(listing, version, v2_checkpoints)
    base = next(iter(bases), None)
    floor = -1 if base is None else base.version
    commits = [v for v in range(version, floor, -1) if v in listing.commits]
    tracked = metadata.is_on("delta.enableRowTracking")
    for each in _commits_to_read(commits, every_commit, base, tracked):
        _read_commit(store, listing, each, layout)
    whole = every_commit and layout.commits.issuperset(commits)
    found = {}
    if whole or not every_commit or layout.byte_order_mark:
        found[Trace.BYTE_ORDER_MARK] = layout.byte_order_mark
    absolute = layout.absolute
    if bases and (every_commit or not absolute):
        # If several have the same version, clients choose different ones.
        chosen = bases if every_commit else bases[:1]
        answers = _find_absolute(store, listing, chosen, [] if every_commit else commits, layout)
        absolute, whole = layout.absolute or True in answers, whole and None not in answers
    if absolute or whole or not every_commit:
        found[Trace.ABSOLUTE_PATHS] = absolute
    if whole and tracked:
        found.update(_find_untracked(store, bases, floor, layout))
    flaws_known = whole or not every_commit
    columns = partition_types(metadata)
    if columns and base is None:
        _read_partitions(store, listing, commits, layout)
    by_text = is_partitioned_by_text(columns)
    if base is not None and columns:
        from deltaproto.tables.log.checkpoint_layout import add_partition_paths

        whole &= add_partition_paths(store, base, columns, layout)
    of_paths = ((Trace.NON_ASCII_PATHS, layout.non_ascii), (Trace.ESCAPED_PATHS, layout.escaped))
    for trace, shown in of_paths:
        if shown or whole or not every_commit or not by_text:
            found[trace] = shown
    known = whole or not every_commit or not columns
    of_partitions = layout.partitions.traces(columns).items()
    found.update({trace: shown for trace, shown in of_partitions if shown or known})
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


def _find_absolute(
    store: LogStore,
    listing: LogListing,
    bases: list[Checkpoint],
    commits: list[int],
    layout: LayoutEvidence,
) -> list[bool | None]:
    """Return for each checkpoint whether it has absolute paths of live files; None: unreadable.

    Args:
        commits: those after the checkpoints, newest first, which are read if the answer depends on
            them.
    """
    from deltaproto.tables.log.checkpoint_layout import has_absolute_paths

    answers = [has_absolute_paths(store, each, layout) for each in bases]
    if commits and True in answers:
        for each in commits[:MOST_COMMITS]:
            _read_commit(store, listing, each, layout)
        if layout.removed_absolute:
            return _find_absolute(store, listing, bases, [], layout)
    return answers


def _find_untracked(
    store: LogStore, bases: list[Checkpoint], floor: int, layout: LayoutEvidence
) -> dict[Trace, bool]:
    """Return whether a live file has no row ids; nothing if that is unknown.

    Args:
        floor: the version of the newest checkpoints, `bases`.
    """
    untracked: bool | None = False
    if layout.untracked:
        untracked = True if layout.replaces_all and min(layout.commits) > floor else None
    elif layout.untracked_in_checkpoint and bases:
        from deltaproto.tables.log.checkpoint_layout import has_untracked_files

        untracked = has_untracked_files(store, bases[0], layout)
    return {} if untracked is None else {Trace.UNTRACKED_FILES: untracked}


def _read_partitions(
    store: LogStore, listing: LogListing, commits: list[int], layout: LayoutEvidence
) -> None:
    # Writers rarely change their habits, so the newest commit that adds files is enough.
    for each in commits[:_MOST_FOR_PARTITIONS]:
        if layout.partitions.seen:
            break
        _read_commit(store, listing, each, layout)


def _newest_checkpoints(listing: LogListing, version: int, v2: bool) -> list[Checkpoint]:
    # A V2 checkpoint may have the name of a V1 checkpoint and still have sidecars.
    return [each._replace(v2_name=each.v2_name or v2) for each in listing.last_checkpoints(version)]


def _commits_to_read(
    commits: list[int], every_commit: bool, base: Checkpoint | None, tracked: bool
) -> list[int]:
    most = _MOST_FOR_ROW_IDS if tracked else MOST_COMMITS
    if every_commit and len(commits) <= most:
        return commits
    first = commits[-1:] if base is None else []
    return [*commits[: most - 1], *first] if every_commit else first


def _read_older(store: LogStore, listing: LogListing, floor: int, layout: LayoutEvidence) -> bool:
    """Return True if every commit down to `floor` could be read to find who wrote the files."""
    older = sorted((v for v in listing.commits if v <= floor), reverse=True)
    most = _MOST_OLDER_HERE if isinstance(store, LocalLogStore) else _MOST_OLDER
    if len(older) <= floor or len(older) > most:
        return False
    marked, flaws, damage = layout.byte_order_mark, set(layout.flaws), [*layout.damage]
    done = [_read_commit(store, listing, each, layout) for each in older]
    # Clients do not read these commits.
    layout.byte_order_mark, layout.flaws, layout.damage = marked, flaws, damage
    return all(done)


def _read_commit(
    store: LogStore, listing: LogListing, version: int, layout: LayoutEvidence
) -> bool:
    """Return True if a commit could be read; a damaged one is added to the evidence."""
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
        layout.add_damage(NoteKind.COMMIT_UNREADABLE, error.message)
        return False
    return True
