"""Traces that features leave in files and history, and their newest versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.decoding import use_fast_decoder
from deltaproto.protocol.feature import Trace, Trait
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.commits import state_from_checkpoint
from deltaproto.tables.log.file_statistics import (
    MISREAD_BOUNDS,
    are_readable,
    compare_statistics,
)
from deltaproto.tables.log.files import LogListing, read_actions
from deltaproto.tables.log.live_files import LiveStatistics, has_uncounted_files, read_live_files
from deltaproto.tables.log.log_retention import LogAging, LogFile
from deltaproto.tables.log.snapshot import parse_metadata_action
from deltaproto.tables.storage.interface import LogStore

_VECTORS = "deletionVectors"
_PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
_MANY = 1000
"""number of files whose statistics are worth the import of a faster decoder"""
# Delta does not check any action for these.
_NEVER = frozenset({"vacuumProtocolCheck", "geospatial", "geospatial-dev"})


class TraceEvidence(NamedTuple):
    """The newest version that shows a trace of a feature."""

    file: LogFile
    """the commit of that version"""
    decides: LogFile | None
    """the file that must expire before a truncation deletes that version.

    None: no truncation can delete it with the current log; the statement then writes a checkpoint
    that makes it possible
    """
    open: bool = False
    """whether that file is the last one only until the next commit"""


class Traces(NamedTuple):
    """Traces of each history-protected feature of the protocol, and of `checkpointProtection`."""

    seen: Mapping[str, TraceEvidence]
    """features with traces; for `checkpointProtection`, the newest commit that it protects"""
    none: frozenset[str]
    """features without traces"""
    unknown: Mapping[str, str]
    """features that could not be checked, with the reason"""


def find_history_traces(
    store: LogStore,
    listing: LogListing,
    times: LogAging,
    protocol: Protocol,
    metadata: Metadata,
    *,
    vectors: bool,
    whole: bool = True,
) -> Traces:
    """Find traces of the protocol's features in history up to the newest version.

    Args:
        protocol, metadata: of the newest version. vectors: live files have deletion vectors.
        whole: the log has every commit; False if a catalog may have newer ones.

    Raises:
        TableError: when the store fails; a damaged commit only makes features unknown.
    """
    features = [
        n
        for n in sorted(protocol.supported)
        if feature_catalog.feature_record(n).drop.protects_history
    ]
    wanted = {name: _IN_METADATA[name] for name in features if name in _IN_METADATA}
    unknown = {
        name: "Delta's check for this feature is unknown"
        for name in features
        if name not in wanted and name not in _NEVER
    }
    if not whole:
        why = "a catalog may hold newer commits"
        unknown.update(dict.fromkeys(wanted, why))
        wanted = {}
    scan = _TraceScan(wanted, listing, vectors=vectors)
    scan.run(store, listing)
    unknown.update(scan.unknown)
    newest = {name: scan.shown[name] for name in wanted if name not in scan.unknown}
    if CHECKPOINT_PROTECTION in protocol.supported:
        features.append(CHECKPOINT_PROTECTION)
        protected = _protected_before_version(metadata)
        if protected is None:
            unknown[CHECKPOINT_PROTECTION] = f"{_PROTECTED_BEFORE} is not a number"
        else:
            newest[CHECKPOINT_PROTECTION] = max(
                (v for v in listing.commits if v < protected), default=-1
            )
    seen = {
        name: TraceEvidence(
            times.commit(version),
            times.decides(version, checkpoint_first=needs_checkpoint_first(name, metadata)),
            times.is_open(version),
        )
        for name, version in newest.items()
        if version >= 0
    }
    return Traces(seen, frozenset(features) - seen.keys() - unknown.keys(), unknown)


def needs_checkpoint_first(feature: str, metadata: Metadata) -> bool:
    """Return True if DROP FEATURE TRUNCATE HISTORY of the unused `feature` starts by writing
    a checkpoint, so that everything before it can be deleted.

    Dropping deletion vectors always commits tombstones first. Dropping type widening first commits
    the property's removal, which Delta does not count as a change.
    """
    if feature.startswith("typeWidening"):
        return _boolean(metadata, "delta.enableTypeWidening") is False
    return feature != _VECTORS


class _TraceScan:
    """Find the newest version with a trace of each wanted feature, newest commit first."""

    def __init__(self, wanted: Mapping[str, _Judge], listing: LogListing, *, vectors: bool) -> None:
        self._wanted = wanted
        self._reliable = earliest_reliable(listing)
        self._newest = listing.newest or 0
        self.unknown: dict[str, str] = {}
        self.shown = dict.fromkeys(wanted, -1)
        if vectors and _VECTORS in wanted:
            self.shown[_VECTORS] = self._newest

    def run(self, store: LogStore, listing: LogListing) -> None:
        # The last version before the metaData action found last.
        until = self._newest
        for version in sorted(listing.commits, reverse=True):
            # Delta reads the state of only one checkpoint; below it, only the commits count.
            if self._reliable is None or version < self._reliable:
                until = version
            wanted = [name for name in self._wanted if self._open(name, until)]
            if not wanted:
                return
            try:
                vectors, metadata = _read_traces(
                    store, listing.commits[version], vectors=_VECTORS in wanted
                )
            except TableError as error:
                if error.code is not ErrorCode.CORRUPT_LOG:
                    raise
                self.unknown.update(dict.fromkeys(wanted, error.message))
                return
            if vectors:
                self.shown[_VECTORS] = max(self.shown[_VECTORS], version)
            if metadata is None and version == self._reliable:
                state = state_from_checkpoint(store, listing, version)
                metadata = None if state is None else state.metadata
                if metadata is None:
                    why = f"cannot read the checkpoint of version {version}"
                    self.unknown.update(dict.fromkeys(wanted, why))
                    return
            if metadata is not None:
                self._judge(metadata, wanted, version, until)
                until = version - 1

    def _open(self, name: str, until: int) -> bool:
        return name not in self.unknown and self.shown[name] < until

    def _judge(self, metadata: Metadata, wanted: list[str], version: int, until: int) -> None:
        for name in wanted:
            uses = self._wanted[name](metadata)
            if uses is None:
                self.unknown[name] = f"Delta rejects the metadata of version {version}"
            elif uses:
                self.shown[name] = max(self.shown[name], until)


def _read_traces(store: LogStore, name: str, *, vectors: bool) -> tuple[bool, Metadata | None]:
    """Return whether a commit has deletion vectors (checked if `vectors`), and its metadata."""
    found, metadata = False, None
    with store.open(name) as file:
        for action in read_actions(name, file, files=vectors, holding=b'"deletionVector"'):
            if "metaData" in action:
                metadata = parse_metadata_action(name, action["metaData"])
            for kind in ("add", "remove", "cdc"):
                of_file = action.get(kind)
                found |= isinstance(of_file, dict) and of_file.get("deletionVector") is not None
    return found and vectors, metadata


def earliest_reliable(listing: LogListing) -> int | None:
    """Return the earliest checkpoint that has its own commit and every later one.

    Source: Delta Spark's `findEarliestReliableCheckpoint`.
    """
    newest = max((*listing.commits, *listing.checkpoints), default=-1)
    missing = listing.missing(-1, newest)
    candidates = (v for v in listing.checkpoints if missing is None or v > missing)
    return min(candidates, default=None)


def _protected_before_version(metadata: Metadata) -> int | None:
    try:
        return int(metadata.property(_PROTECTED_BEFORE) or 0)
    except ValueError:
        return None


def _boolean(metadata: Metadata, key: str) -> bool | None:
    value = metadata.property(key)
    return {"true": True, "false": False}.get("false" if value is None else value.lower())


def _has_mapping(metadata: Metadata) -> bool | None:
    mode = metadata.property("delta.columnMapping.mode") or "none"
    return {"none": False, "id": True, "name": True}.get(mode.lower())


def _has_vectors_enabled(metadata: Metadata) -> bool | None:
    return _boolean(metadata, "delta.enableDeletionVectors")


def _has_v2_policy(metadata: Metadata) -> bool | None:
    policy = metadata.property("delta.checkpointPolicy") or "classic"
    return {"classic": False, "v2": True}.get(policy)


def _has_type_changes(metadata: Metadata) -> bool | None:
    traits = metadata.traits
    return None if traits is None else Trait.TYPE_CHANGE in traits


_Judge = Callable[[Metadata], bool | None]
# Whether a metaData action uses the feature. None: Delta does not accept the value.
_IN_METADATA: dict[str, _Judge] = {
    "columnMapping": _has_mapping,
    _VECTORS: _has_vectors_enabled,
    "v2Checkpoint": _has_v2_policy,
    "typeWidening": _has_type_changes,
    "typeWidening-preview": _has_type_changes,
}


def find_file_traces(
    store: LogStore, listing: LogListing, version: int, metadata: Metadata | None = None
) -> dict[Trace, bool]:
    """Find traces in the file actions of `version`, and in the change files that the log still has.

    Args:
        metadata: the table's metadata, to compare with the statistics of every live file; None: the
        statistics are not read.

    Raises:
        TableError: corrupt-log, when neither a checkpoint nor all commits can be read.
    """
    live = read_live_files(store, listing, version)
    found = {
        Trace.DELETION_VECTORS: any(file.vector for file in live.files.values()),
        Trace.ROW_IDS: any(file.row_ids for file in live.files.values()),
        Trace.UNTRACKED_FILES: not all(file.row_ids for file in live.files.values()),
        Trace.UNCOUNTED_FILES: has_uncounted_files(store, live),
    }
    if live.base is not None:
        found[Trace.V2_CHECKPOINT] = live.v2
        older = [commit for commit in listing.commits if commit <= live.base.version]
        live.change_files |= any(_has_change_files(store, listing.commits[v]) for v in older)
    found[Trace.CHANGE_FILES] = live.change_files
    if metadata is not None:
        if len(live.files) > _MANY:
            use_fast_decoder()
        statistics = LiveStatistics(store, listing, version, live)
        shown = compare_statistics(filter(are_readable, statistics), metadata)
        found.update(dict.fromkeys(shown, True))
        if statistics.complete:
            found.update({trace: trace in shown for trace in MISREAD_BOUNDS})
    return found


def find_vectors(store: LogStore, listing: LogListing, version: int) -> dict[Trace, bool]:
    """Return whether a live file of `version` has a deletion vector; nothing if that is unknown."""
    try:
        live = read_live_files(store, listing, version)
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        return {}
    return {Trace.DELETION_VECTORS: any(file.vector for file in live.files.values())}


def _has_change_files(store: LogStore, name: str) -> bool:
    with store.open(name) as file:
        return any("cdc" in a for a in read_actions(name, file, files=True, holding=b'"cdc"'))
