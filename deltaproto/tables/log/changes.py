"""Every commit in the log that stored a protocol, oldest first."""

from __future__ import annotations

from itertools import islice

from deltaproto.errors import TableError
from deltaproto.protocol.table_state import ProtocolChange
from deltaproto.tables.log.commits import state_from_checkpoint
from deltaproto.tables.log.files import LogListing, commit_info, read_actions
from deltaproto.tables.log.snapshot import Snapshot
from deltaproto.tables.storage.interface import LogStore

_MOST_COMMITS = 200
# Writers put commitInfo, protocol and metaData before file actions.
_MOST_ACTIONS = 100


def protocol_changes(
    store: LogStore, listing: LogListing, version: int
) -> tuple[ProtocolChange, ...]:
    """Return the protocol's changes up to `version`, as far back as the commits reach.

    Starts from a checkpoint next to the oldest commit that is read, if there is one. The result is
    supporting evidence, and `inspect` must stay cheap: only the newest commits are read, only the
    beginning of each, and unreadable files are skipped.
    """
    versions = sorted(v for v in listing.commits if v <= version)[-_MOST_COMMITS:]
    changes: list[ProtocolChange] = []
    if versions and versions[0] > 0:
        changes.extend(_initial_change(store, listing, versions[0]))
    for commit in versions:
        snapshot = Snapshot()
        name = listing.commits[commit]
        try:
            with store.open(name) as file:
                actions = list(islice(read_actions(name, file, files=True), _MOST_ACTIONS))
            snapshot.add_older(name, actions)
        except TableError:
            continue
        if snapshot.protocol is not None:
            changes.append(ProtocolChange(commit, snapshot.protocol, commit_info(actions)))
    return tuple(changes)


def _initial_change(store: LogStore, listing: LogListing, commit: int) -> list[ProtocolChange]:
    # Do not use an older checkpoint: the commits in between are not read, and a change in one of
    # them would be attributed to the next commit that is read.
    for version in (commit - 1, commit):
        state = state_from_checkpoint(store, listing, version)
        if state is not None and state.protocol is not None:
            return [ProtocolChange(version, state.protocol, {})]
    return []
