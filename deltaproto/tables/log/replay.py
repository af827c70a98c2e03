"""From a listing to a snapshot: commits newest first, down to the newest usable checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.interface import Note, NoteKind
from deltaproto.tables.log.actions import commit_info, corrupt, read_actions
from deltaproto.tables.log.names import Checkpoint, Listing
from deltaproto.tables.log.snapshot import Snapshot
from deltaproto.tables.storage.interface import LogStore

_GAP_HINT = "commits are missing from the log; restore them from a backup or another replica"


def check_reach(listing: Listing, version: int) -> None:
    """Refuse a version that the log cannot rebuild, before anything is read.

    Raises:
        TableError: not-found for a version outside the log, corrupt-log for a gap.
    """
    newest = listing.newest
    if newest is None:
        raise TableError(
            ErrorCode.NOT_A_DELTA_TABLE,
            "_delta_log holds no commit and no checkpoint",
            "the table was never written, or its log was deleted",
        )
    if version > newest:
        raise TableError(
            ErrorCode.NOT_FOUND, f"version {version} does not exist", f"the newest is {newest}"
        )
    base = next(iter(listing.last_checkpoints(version)), None)
    missing = listing.missing(_floor(base), version)
    if missing is None:
        return
    oldest = min(listing.checkpoints, default=None)
    if base is None and oldest is not None and listing.missing(oldest, newest) is None:
        raise TableError(
            ErrorCode.NOT_FOUND,
            f"version {version} is no longer in the log",
            f"the oldest version that can be rebuilt is {oldest}",
        )
    raise TableError(
        ErrorCode.CORRUPT_LOG,
        f"the log has a gap: {missing:020d}.json is missing below version {version}",
        _GAP_HINT,
    )


def oldest_version(listing: Listing, version: int) -> int:
    """The oldest version from which on the log can rebuild every one up to `version`.

    `version` itself where there is none.
    """
    missing = listing.missing(-1, version)
    if missing is None:
        return 0
    return min((v for v in listing.checkpoints if missing <= v <= version), default=version)


def replay(store: LogStore, listing: Listing, version: int) -> Snapshot:
    """The snapshot of `version`, which `check_reach` has accepted.

    A checkpoint that cannot be read is passed over for an older one, or for the commits from
    version 0 on, as Spark does; the snapshot notes it.

    Raises:
        TableError: corrupt-log.
    """
    snapshot = Snapshot()
    position = version
    for base in [*listing.checkpoints_up_to(version), None]:
        floor = _floor(base)
        missing = listing.missing(floor, position)
        if missing is not None:
            raise _unreadable(snapshot.notes, missing)
        _add_commits(store, listing, snapshot, range(position, floor, -1), newest=version)
        position = min(position, floor)
        if base is None:
            snapshot.all_domains = True
        if snapshot.complete or base is None or _add_checkpoint(store, snapshot, base):
            break
    return _checked(snapshot, version)


def _floor(base: Checkpoint | None) -> int:
    return -1 if base is None else base.version


def _add_commits(
    store: LogStore, listing: Listing, snapshot: Snapshot, versions: Iterable[int], *, newest: int
) -> None:
    for version in versions:
        if snapshot.complete:
            return
        name = listing.commits[version]
        with store.open(name) as file:
            seen = partial(snapshot.layout.add, version)
            actions = list(read_actions(name, file, seen=seen))
        if version == newest:
            snapshot.commit_info = commit_info(actions)
        snapshot.add_older(name, actions)


def _add_checkpoint(store: LogStore, snapshot: Snapshot, base: Checkpoint) -> bool:
    from deltaproto.tables.log.checkpoint import checkpoint_actions

    try:
        snapshot.add_older(base.files[0], list(checkpoint_actions(store, base)))
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        snapshot.notes.append(Note(NoteKind.CHECKPOINT_UNREADABLE, error.message))
        return False
    # A checkpoint that can be read and lacks an action is a broken log: no engine goes on.
    for found, action in ((snapshot.protocol, "protocol"), (snapshot.metadata, "metaData")):
        if found is None:
            raise corrupt(base.files[0], None, f"the checkpoint holds no {action} action")
    snapshot.all_domains = True
    return True


def _unreadable(notes: list[Note], missing: int) -> TableError:
    unread = [note.message for note in notes if note.kind is NoteKind.CHECKPOINT_UNREADABLE]
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{unread[-1] if unread else 'no checkpoint'}, and {missing:020d}.json is missing",
        "without the checkpoint the commits from version 0 on are needed; restore either",
    )


def _checked(snapshot: Snapshot, version: int) -> Snapshot:
    for found, action in ((snapshot.protocol, "protocol"), (snapshot.metadata, "metaData")):
        if found is None:
            raise corrupt("_delta_log", None, f"no {action} action up to version {version}")
    return snapshot
