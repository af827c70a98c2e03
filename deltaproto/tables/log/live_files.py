"""The live data files of one version: every file action, replayed oldest first.

The cost grows with the number of files. A file is kept as a small tuple under its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.log.actions import corrupt, read_actions
from deltaproto.tables.log.checkpoint_files import (
    CheckpointFiles,
    StoredFile,
    file_key,
    stored_file,
)
from deltaproto.tables.log.names import Checkpoint, Listing
from deltaproto.tables.storage.interface import LogStore


class LiveFile(NamedTuple):
    """One live file."""

    size: int
    """bytes, as the log says"""
    vector: bool
    """carries a deletion vector"""
    row_ids: bool
    """carries a base row id"""
    since: int
    """the version that first added its path, as far back as the replay goes; for what the
    checkpoint holds, the version of the checkpoint"""


class LiveFiles:
    """Live data files, by path and deletion vector (PROTOCOL.md, "Action Reconciliation").

    `operations` holds what each replayed commit calls itself, where it says.
    """

    def __init__(self, base: Checkpoint | None = None, *, v2: bool = False) -> None:
        self.files: dict[str, LiveFile] = {}
        self.base = base
        self.v2 = v2
        self.change_files = False
        self.operations: dict[int, str] = {}
        self._removed: dict[str, int] = {}
        self._added: dict[str, str] = {}

    def apply(self, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
        """Replay one commit."""
        self._removed.clear()
        self._added.clear()
        for action in actions:
            self.change_files |= "cdc" in action
            if isinstance(info := action.get("commitInfo"), dict) and info.get("operation"):
                self.operations[version] = str(info["operation"])
            if isinstance(remove := action.get("remove"), dict):
                self._remove(file_key(remove), str(remove.get("path")))
            if isinstance(add := action.get("add"), dict):
                self._add(stored_file(add), version)

    # A commit that changes a file's deletion vector or row ids adds its path again. The file itself
    # stays as old as it was, whichever of the two actions comes first.
    def _add(self, file: StoredFile, version: int) -> None:
        known = self.files.get(file.key)
        since = self._removed.get(file.path, version if known is None else known.since)
        self.files[file.key] = LiveFile(file.size, file.vector, file.row_ids, since)
        self._added[file.path] = file.key

    def _remove(self, key: str, path: str) -> None:
        gone = self.files.pop(key, None)
        if gone is None:
            return
        self._removed[path] = gone.since
        again = self._added.get(path)
        if again is not None and again in self.files:
            self.files[again] = self.files[again]._replace(since=gone.since)


def live_files(
    store: LogStore, listing: Listing, version: int, not_above: int | None = None
) -> LiveFiles:
    """The files that are live at `version`.

    Args:
        not_above: start from a checkpoint at or below this version, or from version 0.

    Raises:
        TableError: corrupt-log, when neither a checkpoint nor all commits can be read.
    """
    live = _from_checkpoint(store, listing, version if not_above is None else not_above)
    base = -1 if live.base is None else live.base.version
    missing = listing.missing(base, version)
    if missing is not None:
        raise corrupt(f"{missing:020d}.json", None, "missing, and no checkpoint makes up for it")
    for commit in range(base + 1, version + 1):
        name = listing.commits[commit]
        with store.open(name) as file:
            live.apply(commit, read_actions(name, file, files=True))
    return live


def _from_checkpoint(store: LogStore, listing: Listing, version: int) -> LiveFiles:
    for checkpoint in listing.checkpoints_up_to(version):
        live = LiveFiles(checkpoint)
        stored = CheckpointFiles(store, checkpoint)
        try:
            for file in stored:
                live.files[file.key] = LiveFile(
                    file.size, file.vector, file.row_ids, checkpoint.version
                )
        except TableError as error:
            if error.code is not ErrorCode.CORRUPT_LOG:
                raise
            continue
        live.v2 = stored.v2
        return live
    return LiveFiles()
