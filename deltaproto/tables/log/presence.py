"""Which traces of features the files and the log of one version really hold.

Reads every live file action, so its cost grows with the number of files; nothing else that an
inspection reads does.
"""

from __future__ import annotations

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.actions import read_actions
from deltaproto.tables.log.live_files import live_files
from deltaproto.tables.log.names import Listing
from deltaproto.tables.storage.interface import LogStore


def look(store: LogStore, listing: Listing, version: int) -> dict[Trace, bool]:
    """Traces in the file actions of `version`, and in the change files the log still names.

    Raises:
        TableError: corrupt-log, when neither a checkpoint nor all commits can be read.
    """
    live = live_files(store, listing, version)
    found = {
        Trace.DELETION_VECTORS: any(file.vector for file in live.files.values()),
        Trace.ROW_IDS: any(file.row_ids for file in live.files.values()),
    }
    if live.base is not None:
        found[Trace.V2_CHECKPOINT] = live.v2
        older = [commit for commit in listing.commits if commit <= live.base.version]
        live.change_files |= any(_has_change_files(store, listing.commits[v]) for v in older)
    found[Trace.CHANGE_FILES] = live.change_files
    return found


def _has_change_files(store: LogStore, name: str) -> bool:
    with store.open(name) as file:
        return any("cdc" in a for a in read_actions(name, file, files=True, holding=b'"cdc"'))
