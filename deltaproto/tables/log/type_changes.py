"""Since when the widened columns of a table have their type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from deltaproto.protocol.metadata import Metadata
from deltaproto.tables.log.commits import commits, state_at
from deltaproto.tables.log.names import Listing
from deltaproto.tables.storage.interface import LogStore

_KEY = "delta.typeChanges"


def last_type_change(
    store: LogStore, listing: Listing, version: int, metadata: Metadata
) -> int | None:
    """The newest version that may have recorded one of the type changes in `metadata`.

    Files that a later commit wrote have the present types. None: `metadata`, which is that of
    `version`, records no type change. Where the log does not tell, the answer is too new, never too
    old.
    """
    recorded = _changes(metadata)
    if not recorded:
        return None
    # The oldest metaData action found so far from which on every change is there.
    complete = None
    expected = version
    for commit in commits(store, listing):
        if commit.version > version:
            continue
        if commit.version != expected or commit.problem is not None:
            break
        expected -= 1
        if commit.metadata is not None:
            if not recorded <= _changes(commit.metadata):
                return version if complete is None else complete
            complete = commit.version
    if complete is None:
        return max(expected, 0)
    if _was_there(store, listing, recorded, range(max(expected, 0), complete)):
        return max(expected, 0)
    return complete


def _was_there(
    store: LogStore, listing: Listing, recorded: frozenset[str], versions: range
) -> bool:
    """Whether a checkpoint at one of the versions, all of them alike, shows every change."""
    for version in versions:
        state = state_at(store, listing, version)
        if state is not None and state.metadata is not None:
            return recorded <= _changes(state.metadata)
    return False


def _changes(metadata: Metadata) -> frozenset[str]:
    return frozenset(_of_struct(metadata.schema or {}, ""))


def _of_struct(struct: Any, path: str) -> Iterator[str]:
    if not isinstance(struct, Mapping):
        return
    for field in struct.get("fields") or ():
        if not isinstance(field, Mapping):
            continue
        name = f"{path}.{field.get('name')}"
        found = field.get("metadata")
        if isinstance(found, Mapping) and _KEY in found:
            changes = found[_KEY] if isinstance(found[_KEY], list) else [found[_KEY]]
            yield from (f"{name} {json.dumps(change, sort_keys=True)}" for change in changes)
        yield from _of_struct(field.get("type"), name)
    for key in ("elementType", "keyType", "valueType"):
        yield from _of_struct(struct.get(key), f"{path}.{key}")
