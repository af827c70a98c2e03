"""Every commit in the log that stored a protocol, oldest first."""

from __future__ import annotations

from deltaproto.errors import TableError
from deltaproto.tables.interface import ProtocolChange
from deltaproto.tables.log.actions import read_actions
from deltaproto.tables.log.checkpoint import checkpoint_actions
from deltaproto.tables.log.names import Listing
from deltaproto.tables.log.snapshot import Snapshot
from deltaproto.tables.storage.interface import LogStore


def protocol_changes(store: LogStore, listing: Listing, version: int) -> tuple[ProtocolChange, ...]:
    """The protocol's changes up to `version`, as far back as commits reach.

    Starts from the protocol of the oldest checkpoint when the first commits are gone. Files
    that cannot be read are passed over: this is evidence about the past, not the answer.
    """
    versions = sorted(v for v in listing.commits if v <= version)
    changes: list[ProtocolChange] = []
    if versions and versions[0] > 0:
        changes.extend(_oldest_checkpoint(store, listing, versions[0]))
    for commit in versions:
        snapshot = Snapshot()
        name = listing.commits[commit]
        try:
            with store.open(name) as file:
                actions = list(read_actions(name, file))
            snapshot.add_older(name, actions)
        except TableError:
            continue
        if snapshot.protocol is not None:
            infos = (action.get("commitInfo") for action in actions)
            info = next((info for info in infos if isinstance(info, dict)), {})
            changes.append(ProtocolChange(commit, snapshot.protocol, info))
    return tuple(changes)


def _oldest_checkpoint(store: LogStore, listing: Listing, before: int) -> list[ProtocolChange]:
    for version in sorted(listing.checkpoints):
        if version > before:
            break
        for checkpoint in listing.checkpoints[version]:
            snapshot = Snapshot()
            try:
                snapshot.add_older(checkpoint.files[0], checkpoint_actions(store, checkpoint))
            except TableError:
                continue
            if snapshot.protocol is not None:
                return [ProtocolChange(version, snapshot.protocol, {})]
    return []
