"""The `log` reader itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from deltaproto.counts import counted
from deltaproto.errors import ErrorCode, TableError
from deltaproto.location import Location, locate
from deltaproto.protocol.feature import CLUSTERING_DOMAIN, Trace
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.table_state import (
    Note,
    NoteKind,
    ProtocolChange,
    ReaderName,
    TableState,
    UnsupportedProtocol,
)
from deltaproto.tables.log.add_flaws import FLAWS
from deltaproto.tables.log.catalog_managed import RatifiedLog
from deltaproto.tables.log.checksum import (
    find_contradicting_checksum,
    find_newer_checksum,
    snapshot_from_checksum,
    verify_against_log,
)
from deltaproto.tables.log.files import (
    CHECKPOINT_HINT,
    LogListing,
    build_listing,
    commit_info,
    parse_object,
    read_actions,
)
from deltaproto.tables.log.layout import find_layout_traces
from deltaproto.tables.log.snapshot import Snapshot, replay, require_rebuildable
from deltaproto.tables.storage import open_log
from deltaproto.tables.storage.interface import LogStore

# Stores the highest assigned row id, so it exists once a file has row ids.
_ROW_TRACKING_DOMAIN = "delta.rowTracking"
_V2_CHECKPOINT = "v2Checkpoint"


class LogReader:
    """Reads `_delta_log` directly: one listing, then the checksum or commits and checkpoint.

    Args:
        storage_options: as in deltalake, for tables on object stores.
        use_checksums: False ignores `.crc` files.
        look_in_files: also search file actions for traces, and compare their statistics with
            columns that are not indexed; the cost grows with the table.
        every_commit: read every commit since the newest checkpoint: the checksum is then
            compared with the log, and the layout is determined from all of these commits.
        every_statistics: with `look_in_files`, also read the statistics of every live file, because
        readers may misread some of them.
    """

    name = ReaderName.LOG

    def __init__(
        self,
        storage_options: Mapping[str, str] | None = None,
        *,
        use_checksums: bool = True,
        look_in_files: bool = False,
        every_commit: bool = False,
        every_statistics: bool = False,
    ) -> None:
        self._options = storage_options or {}
        self._use_checksums = use_checksums
        self._look_in_files = look_in_files
        self._every_commit = every_commit
        self._every_statistics = every_statistics

    def read(self, table: str, version: int | None = None) -> TableState:
        """Read the state of `table` at `version` (None: the newest in the file system).

        Raises:
            TableError: see `ErrorCode`; `UnsupportedProtocol` for versions that the spec lacks.
        """
        location = locate(table)
        if location.by_name:
            raise TableError(
                ErrorCode.NOT_FOUND,
                f"{table} is neither a path that exists nor a URI",
                "catalog names need Spark: use --reader spark, or pass the table's path",
            )
        return self.read_from(location, open_log(location, self._options, read_ahead=True), version)

    def read_from(
        self, location: Location, store: LogStore, version: int | None = None
    ) -> TableState:
        """Read the state of the table at `location`, with its log in `store`. See `read`."""
        listing = build_listing(store.list())
        target = listing.newest if version is None else version
        if target is None:
            target = 0
        require_rebuildable(listing, target)
        snapshot, traces = self._snapshot(store, listing, target)
        return self._state(location, store, listing, target, snapshot, traces)

    def _snapshot(
        self, store: LogStore, listing: LogListing, version: int
    ) -> tuple[Snapshot, dict[Trace, bool]]:
        wrong: Note | None = None
        if self._use_checksums:
            snapshot, traces, wrong = snapshot_from_checksum(store, listing, version)
            if snapshot is not None and self._every_commit:
                snapshot = verify_against_log(store, listing, version, snapshot)
            if snapshot is not None:
                _add_newer_checksum(store, listing, snapshot)
                return snapshot, traces
        snapshot = replay(store, listing, version)
        if self._use_checksums and wrong is None:
            wrong = find_contradicting_checksum(store, listing, version, snapshot)
        if wrong is not None:
            snapshot.notes.insert(0, wrong)
        if self._use_checksums:
            _add_newer_checksum(store, listing, snapshot)
        return snapshot, {}

    def _state(
        self,
        location: Location,
        store: LogStore,
        listing: LogListing,
        version: int,
        snapshot: Snapshot,
        traces: dict[Trace, bool],
    ) -> TableState:
        protocol, metadata = snapshot.protocol, snapshot.metadata
        assert protocol is not None
        assert metadata is not None
        if protocol.from_the_future:
            raise UnsupportedProtocol(
                f"the protocol {protocol} is newer than any known one",
                "the highest that the Delta spec defines is (3,7); upgrade deltaproto",
                version,
                protocol,
            )
        if self._every_commit and snapshot.commit_info is None:
            snapshot.commit_info = _read_commit_info(store, listing, version)
        traces.update(_cheap_traces(listing, version, snapshot))
        # A checksum with information on every file is sufficient for a scan.
        if self._every_commit or Trace.ABSOLUTE_PATHS not in traces:
            layout = find_layout_traces(
                store,
                listing,
                version,
                snapshot.layout,
                metadata=metadata,
                every_commit=self._every_commit,
                v2_checkpoints=_V2_CHECKPOINT in protocol.supported,
            )
            traces.update({trace: shown for trace, shown in layout.items() if trace not in traces})
        else:
            traces[Trace.BYTE_ORDER_MARK] = snapshot.layout.byte_order_mark
            # The checksum has the statistics of every file, unless there are many.
            every = Trace.MISTYPED_STATISTICS in traces
            flaws = snapshot.layout.flaws if every else snapshot.layout.find_flaws(metadata)
            shown = {flaw: flaw in flaws for flaw in FLAWS}
            shown |= snapshot.layout.select_bounds(flaws, version)
            traces.update({trace: there for trace, there in shown.items() if trace not in traces})
        if self._look_in_files:
            from deltaproto.tables.log.traces import find_file_traces

            compared = metadata if self._every_statistics else None
            traces.update(find_file_traces(store, listing, version, compared))
        elif snapshot.layout.vectors and "deletionVectors" not in protocol.supported:
            # Search all files only where some may have what the protocol does not list.
            from deltaproto.tables.log.traces import find_vectors

            traces.update(find_vectors(store, listing, version))
        domains = snapshot.live_domains if _knows_domains(snapshot) else None
        bounds = snapshot.layout.read_bounds(metadata, version) if self._look_in_files else None
        return TableState(
            table=location.text,
            location=location.uri,
            reader=self.name,
            version=version,
            protocol=protocol,
            metadata=metadata,
            domains=domains,
            clustering_columns=_clustering_columns(domains, metadata),
            traces=traces,
            notes=(
                *snapshot.notes,
                *_damage_notes(snapshot),
                *(_hint_notes(store, listing, version) if self._every_commit else ()),
                *_listing_notes(listing, snapshot),
            ),
            last_commit=snapshot.commit_info,
            changes=lambda: _changes(store, listing, version),
            confirmed=isinstance(store, RatifiedLog) and store.confirmed == version,
            bounds=bounds,
        )


def _add_newer_checksum(store: LogStore, listing: LogListing, snapshot: Snapshot) -> None:
    note = None if snapshot.catalog_managed else find_newer_checksum(store, listing)
    if note is not None:
        snapshot.notes.insert(0, note)


def _changes(store: LogStore, listing: LogListing, version: int) -> tuple[ProtocolChange, ...]:
    return protocol_changes(store, listing, version)


def _clustering_columns(
    domains: Mapping[str, str] | None, metadata: Metadata
) -> tuple[str, ...] | None:
    # The domain contains physical paths, each a list of names (PROTOCOL.md, "Clustered Table").
    if domains is None:
        return None
    stored = domains.get(CLUSTERING_DOMAIN)
    if not stored:
        return ()
    try:
        columns = json.loads(stored).get("clusteringColumns") or []
        return metadata.logical_paths(columns)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


def _knows_domains(snapshot: Snapshot) -> bool:
    # A protocol without domain support has no domains; Delta refuses to write them.
    return snapshot.complete


def _read_commit_info(store: LogStore, listing: LogListing, version: int) -> dict[str, Any] | None:
    """Return the commitInfo of the version's commit, which a checkpoint does not contain.

    None if the commit is missing or damaged.
    """
    name = listing.commits.get(version)
    if name is None:
        return None
    try:
        with store.open(name) as file:
            return commit_info(read_actions(name, file))
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        # The checkpoint has the state; rules on the log report the damage.
        return None


def _cheap_traces(listing: LogListing, version: int, snapshot: Snapshot) -> dict[Trace, bool]:
    traces: dict[Trace, bool] = {}
    if snapshot.commit_info is not None:
        stamp = snapshot.commit_info.get("inCommitTimestamp")
        traces[Trace.COMMIT_TIMESTAMP] = isinstance(stamp, int)
    if snapshot.complete:
        traces[Trace.DOMAINS] = bool(snapshot.live_domains)
    newest = listing.last_checkpoints(version)
    if _ROW_TRACKING_DOMAIN in snapshot.live_domains:
        traces[Trace.ROW_IDS] = True
    if any(checkpoint.v2_name for checkpoint in newest):
        traces[Trace.V2_CHECKPOINT] = True
    elif not newest or all(len(checkpoint.files) > 1 for checkpoint in newest):
        traces[Trace.V2_CHECKPOINT] = False
    return traces


def _listing_notes(listing: LogListing, snapshot: Snapshot) -> tuple[Note, ...]:
    notes = []
    if listing.newest not in listing.commits:
        which = "no commit" if not listing.commits else f"no commit of version {listing.newest}"
        notes.append(
            Note(
                NoteKind.NO_COMMIT_FILES,
                f"the log has a checkpoint but {which}: delta-rs reads such a table, "
                "Spark does not",
            )
        )
    if listing.misnamed:
        name, *others = sorted(listing.misnamed)
        more = f", and of {counted(len(others), 'more file')}" if others else ""
        notes.append(
            Note(
                NoteKind.MISNAMED_FILES,
                f"the version in the name of {name} does not have 20 digits{more}: delta-rs "
                "ignores it, Delta Spark cannot read the table",
            )
        )
    if listing.checkpoint_hint and not listing.checkpoints:
        notes.append(
            Note(
                NoteKind.CHECKPOINT_UNREADABLE,
                "_last_checkpoint names a checkpoint, but the log has none",
            )
        )
    for name in sorted(listing.empty_checkpoints):
        notes.append(Note(NoteKind.CHECKPOINT_UNREADABLE, f"{name} has 0 bytes and is ignored"))
    # Delta Spark creates the folder for every table; only a catalog's commits matter.
    if listing.staged_commits and snapshot.catalog_managed:
        notes.append(
            Note(
                NoteKind.STAGED_COMMITS,
                "commits are staged next to the log; a catalog ratifies them",
            )
        )
    return tuple(notes)


def _damage_notes(snapshot: Snapshot) -> list[Note]:
    """Return notes about unreadable files, except files that the state was read without."""
    known = {note.kind for note in snapshot.notes}
    return [note for note in snapshot.layout.damage if note.kind not in known]


def _hint_notes(store: LogStore, listing: LogListing, version: int) -> tuple[Note, ...]:
    """Return a note if `_last_checkpoint` names a checkpoint, and there is none since then.

    Delta Kernel then refuses the table (measured with deltalake 1.6.6).
    """
    if not listing.checkpoint_hint or not listing.checkpoints:
        return ()
    named = _read_hint(store)
    if named is None or (named > version and version != listing.newest):
        return ()
    if any(named <= each <= version for each in listing.checkpoints):
        return ()
    # A writer may have made the checkpoint since the listing.
    if any(named <= each for each in build_listing(store.list()).checkpoints if each > version):
        return ()
    text = f"_last_checkpoint names a checkpoint of version {named}, which the log does not have"
    return (Note(NoteKind.CHECKPOINT_UNREADABLE, text),)


def _read_hint(store: LogStore) -> int | None:
    """Return the version in `_last_checkpoint`; None for a file that Delta Kernel ignores."""
    try:
        with store.open(CHECKPOINT_HINT) as file:
            hint = parse_object(CHECKPOINT_HINT, None, file.read(_LARGEST_HINT))
    except TableError as error:
        if error.code in (ErrorCode.STORAGE, ErrorCode.TIMEOUT):
            raise
        return None
    version, size = hint.get("version"), hint.get("size")
    known = type(version) is int and 0 <= version < 1 << 64 and type(size) is int
    return version if known else None


_LARGEST_HINT = 64 * 1024 * 1024
_MOST_COMMITS = 200
# Writers put commitInfo, protocol and metaData before file actions.
_MOST_ACTIONS = 100


def protocol_changes(
    store: LogStore, listing: LogListing, version: int
) -> tuple[ProtocolChange, ...]:
    """Return the protocol's changes up to `version`, as far back as commits reach without a gap.

    Starts from a checkpoint next to the oldest commit that is read, if there is one. The result is
    only supporting evidence, and `inspect` must stay cheap. So only the beginning of the newest
    commits is read, and unreadable files are skipped.
    """
    versions = _without_gap(sorted(v for v in listing.commits if v <= version)[-_MOST_COMMITS:])
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


def _without_gap(versions: list[int]) -> list[int]:
    """Return the newest of these versions, back to the first that is missing."""
    for number in range(len(versions) - 1, 0, -1):
        if versions[number - 1] + 1 != versions[number]:
            return versions[number:]
    return versions


def _initial_change(store: LogStore, listing: LogListing, commit: int) -> list[ProtocolChange]:
    from deltaproto.tables.log.commits import state_from_checkpoint

    # Do not use an older checkpoint: the commits in between are not read, and a change in one of
    # them would be attributed to the next commit that is read.
    for version in (commit - 1, commit):
        state = state_from_checkpoint(store, listing, version)
        if state is not None and state.protocol is not None:
            return [ProtocolChange(version, state.protocol, {})]
    return []
