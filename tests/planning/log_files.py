"""The actions of a table's commit files, as a test reads them: no part of deltaproto is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from deltaproto.planning.search.cost import Files

_TOMBSTONES = "Deletion Vector Tombstones"


class Commit(NamedTuple):
    """One commit file."""

    version: int
    operation: str
    actions: list[dict[str, Any]]

    def kind(self, name: str) -> Iterator[dict[str, Any]]:
        """The actions of one kind: `add`, `remove`, `metaData`, …"""
        return (action[name] for action in self.actions if name in action)


def commits(path: str, first: int = 0) -> list[Commit]:
    """The commits from version `first` on that have not been deleted, oldest first."""
    found = []
    for version, file in sorted(commit_files(path).items()):
        if version >= first:
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            (info,) = (action["commitInfo"] for action in actions if "commitInfo" in action)
            found.append(Commit(version, info["operation"], actions))
    return found


def commit_files(path: str) -> dict[int, Path]:
    """The file of each version, also those that a catalog has staged: here one for a version."""
    log = Path(path) / "_delta_log"
    found = {int(f.name.partition(".")[0]): f for f in log.glob("_staged_commits/*.json")}
    published = {int(f.stem): f for f in log.glob("*.json") if f.stem.isdecimal()}
    return found | published


def live_files(path: str) -> Files:
    """What the data files of a table come to whose log is still whole."""
    live: dict[str, dict[str, Any]] = {}
    written: dict[str, int] = {}
    schemas: dict[int, set[str]] = {}
    for commit in commits(path):
        # Vectors are replaced by removing and adding the same file.
        for removed in commit.kind("remove"):
            live.pop(removed["path"], None)
        for added in commit.kind("add"):
            live[added["path"]] = added
            written.setdefault(added["path"], commit.version)
        for metadata in commit.kind("metaData"):
            schemas[commit.version] = set(_type_changes(json.loads(metadata["schemaString"])))
    with_vectors = [add for add in live.values() if add.get("deletionVector")]
    widened = _widened(schemas)
    before = [add for add in live.values() if written[add["path"]] <= widened]
    return Files(
        *(len(live), _size(list(live.values()))),
        *(len(with_vectors), _size(with_vectors)),
        *(len(before), _size(before)),
    )


def rewritten(found: list[Commit]) -> set[str]:
    """The data files that commits take away for good; a new vector leaves its file."""
    gone: set[str] = set()
    for commit in found:
        # These name the files of vectors, which are no data files.
        if commit.operation != _TOMBSTONES:
            added = {add["path"] for add in commit.kind("add")}
            gone |= {remove["path"] for remove in commit.kind("remove")} - added
    return gone


def changes_rows(found: list[Commit]) -> bool:
    """Whether a commit claims to change data."""
    files = (a for each in found for kind in ("add", "remove") for a in each.kind(kind))
    return any(file["dataChange"] for file in files)


def traced(path: str) -> frozenset[str]:
    """The features of which the history of a whole and young log holds traces.

    By Delta's own rule, feature by feature (`TableFeature.actionUsesFeature`).
    """
    found: set[str] = set()
    protected = False
    for commit in commits(path):
        for metadata in commit.kind("metaData"):
            on = metadata["configuration"]
            if on.get("delta.columnMapping.mode", "none") != "none":
                found.add("columnMapping")
            if on.get("delta.enableDeletionVectors", "false").lower() == "true":
                found.add("deletionVectors")
            if on.get("delta.checkpointPolicy", "classic") != "classic":
                found.add("v2Checkpoint")
            if "delta.typeChanges" in metadata["schemaString"]:
                found |= {"typeWidening", "typeWidening-preview"}
            # Only the newest counts (`historyPriorToCheckpointProtectionVersionIsTruncated`).
            protected = on.get("delta.requireCheckpointProtectionBeforeVersion", "0") != "0"
        if any(a.get("deletionVector") for k in ("add", "remove") for a in commit.kind(k)):
            found.add("deletionVectors")
    return frozenset(found | ({"checkpointProtection"} if protected else set()))


def _widened(schemas: dict[int, set[str]]) -> int:
    """The version since when every type change of the newest schema is recorded, or -1.

    RESTORE takes changes back, and with them the reason to rewrite what was written before.
    """
    versions = sorted(schemas)
    now = schemas[versions[-1]]
    since = -1
    for version in reversed(versions if now else []):
        if not now <= schemas[version]:
            break
        since = version
    return since


def _type_changes(part: Any, name: str = "") -> Iterator[str]:
    """Every recorded type change in a part of a schema, with the column that it is about."""
    if isinstance(part, list):
        for each in part:
            yield from _type_changes(each, name)
    elif isinstance(part, dict):
        name = f"{name}.{part.get('name', '')}"
        changes = part.get("metadata", {}).get("delta.typeChanges", [])
        yield from (f"{name} {json.dumps(change, sort_keys=True)}" for change in changes)
        for key in ("fields", "type", "elementType", "keyType", "valueType"):
            yield from _type_changes(part.get(key), f"{name}.{key}")


def _size(files: list[dict[str, Any]]) -> int:
    return sum(add["size"] for add in files)
