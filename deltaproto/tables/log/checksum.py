"""The version checksum (`N.crc`) as a shortcut (PROTOCOL.md, "Version Checksum File").

A checksum is used only if it provably belongs to its commit: same transaction id, and no
contradiction in that commit. Otherwise the log itself is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from deltaproto.counts import all_names
from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.table_state import Note, NoteKind
from deltaproto.tables.log.file_statistics import MISREAD_BOUNDS, are_readable, compare_statistics
from deltaproto.tables.log.files import (
    MOST_STATISTICS,
    LogListing,
    build_listing,
    first_info,
    parse_object,
    read_actions,
)
from deltaproto.tables.log.layout import MOST_COMMITS
from deltaproto.tables.log.layout_evidence import LayoutEvidence, is_absolute
from deltaproto.tables.log.partition_paths import PartitionEvidence, partition_types
from deltaproto.tables.log.snapshot import (
    Snapshot,
    parse_domain_action,
    parse_metadata_action,
    parse_protocol_action,
    replay,
)
from deltaproto.tables.storage.interface import LogStore

# File size histograms make up most of a checksum.
_MEMBERS = (
    "txnId",
    "protocol",
    "metadata",
    "numProtocol",
    "numMetadata",
    "domainMetadata",
    "inCommitTimestampOpt",
    "numDeletionVectorsOpt",
    "numFiles",
    "allFiles",
)
_STATE = frozenset({"protocol", "metaData", "domainMetadata"})


def snapshot_from_checksum(
    store: LogStore, listing: LogListing, version: int
) -> tuple[Snapshot | None, dict[Trace, bool], Note | None]:
    """Return the snapshot in `version`'s checksum, or None if it cannot be trusted.

    The note is set if the checksum exists and is provably wrong. The checksum's information on
    data files is returned as traces.
    """
    name = listing.checksums.get(version)
    commit_name = listing.commits.get(version)
    if name is None or commit_name is None:
        return None, {}, None
    layout = LayoutEvidence()
    with store.open(commit_name) as file:
        seen = partial(layout.add, version)
        actions = list(read_actions(commit_name, file, seen=seen))
    # `read_actions` has hidden credentials in it.
    info = first_info(actions)
    try:
        with store.open(name) as file:
            checksum = parse_object(name, None, file.read(), _MEMBERS)
        snapshot = _parse_snapshot(name, checksum)
    except TableError as error:
        # Ignore damage: the log has the same data. Do not ignore errors that may be transient.
        if error.code in (ErrorCode.STORAGE, ErrorCode.TIMEOUT):
            raise
        return None, {}, None
    if snapshot is None or "txnId" not in checksum or "txnId" not in info:
        return None, {}, None
    why = _find_contradiction(checksum, snapshot, info, commit_name, actions)
    if why:
        return None, {}, Note(NoteKind.CHECKSUM_CONTRADICTS, f"{name} is ignored: {why}")
    if not snapshot.complete:
        return None, {}, None
    snapshot.commit_info, snapshot.layout = info, layout
    return snapshot, _traces_of_files(checksum, snapshot.metadata, layout), None


def verify_against_log(
    store: LogStore, listing: LogListing, version: int, from_checksum: Snapshot
) -> Snapshot:
    """Return the checksum's snapshot, or the log's with a note if they differ.

    If the log cannot be replayed, or is long, the checksum is used.
    """
    base = next(iter(listing.last_checkpoints(version)), None)
    if version - (-1 if base is None else base.version) > MOST_COMMITS:
        return from_checksum
    try:
        snapshot = replay(store, listing, version)
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        return from_checksum
    differs = _differences(from_checksum, snapshot)
    if not differs:
        # The checksum has all domains; a replay may stop before it has found them all.
        layout = from_checksum.layout
        from_checksum.layout, from_checksum.notes = snapshot.layout, snapshot.notes
        from_checksum.layout.of_checksum = layout.of_checksum
        from_checksum.layout.checksum_has_all = layout.checksum_has_all
        from_checksum.layout.uncounted |= layout.uncounted
        return from_checksum
    snapshot.notes.insert(0, _difference_note(listing.checksums[version], differs))
    return snapshot


def find_newer_checksum(store: LogStore, listing: LogListing) -> Note | None:
    """Return a note if a checksum is newer than every commit, as after a commit was deleted.

    Delta Kernel then refuses the table (measured with deltalake 1.6.6), whatever the checksum of
    the newest commit. A catalog may have the commit of a table that it manages.
    """
    newest = max(listing.checksums, default=-1)
    if listing.newest is None or newest <= listing.newest:
        return None
    # The writer may have committed since the listing.
    if newest in build_listing(store.list()).commits:
        return None
    text = f"{listing.checksums[newest]} is ignored: the log ends at version {listing.newest}"
    return Note(NoteKind.CHECKSUM_CONTRADICTS, text)


def find_contradicting_checksum(
    store: LogStore, listing: LogListing, version: int, snapshot: Snapshot
) -> Note | None:
    """Return a note if the checksum that other readers may start from contradicts the log.

    Delta Kernel, and so delta-rs, Polars and DuckDB, starts from the newest checksum since the
    newest checkpoint, whatever its transaction, and applies newer commits to it (measured with
    deltalake 1.6.6 and DuckDB 1.5.5).

    Args:
        snapshot: of `version`, from the log itself.
    """
    base = max((each.version for each in listing.last_checkpoints(version)), default=0)
    at = max((v for v in listing.checksums if base <= v <= version), default=None)
    if at is None:
        return None
    name = listing.checksums[at]
    try:
        with store.open(name) as file:
            found = _parse_snapshot(name, parse_object(name, None, file.read(), _MEMBERS))
    except TableError as error:
        if error.code in (ErrorCode.STORAGE, ErrorCode.TIMEOUT):
            raise
        return None
    if found is None:
        return None
    # Values that a newer commit replaced may differ.
    replaced = {what for what, commit in snapshot.set_by.items() if commit > at}
    differs = [what for what in _differences(found, snapshot) if what not in replaced]
    return _difference_note(name, differs) if differs else None


def _differences(one: Snapshot, other: Snapshot) -> list[str]:
    pairs = (
        ("protocol", one.protocol, other.protocol),
        ("metadata", one.metadata, other.metadata),
    )
    return [what for what, left, right in pairs if left != right]


def _difference_note(name: str, differs: list[str]) -> Note:
    why = f"its {all_names(differs)} differ{'s' if len(differs) == 1 else ''} from the log's"
    return Note(NoteKind.CHECKSUM_CONTRADICTS, f"{name} is ignored: {why}")


def _parse_snapshot(name: str, checksum: Mapping[str, Any]) -> Snapshot | None:
    if "protocol" not in checksum or "metadata" not in checksum:
        return None
    if checksum.get("numProtocol", 1) != 1 or checksum.get("numMetadata", 1) != 1:
        return None
    domains = checksum.get("domainMetadata")
    return Snapshot(
        protocol=parse_protocol_action(name, checksum["protocol"]),
        metadata=parse_metadata_action(name, checksum["metadata"]),
        domains=dict(parse_domain_action(name, d) for d in domains)
        if isinstance(domains, list)
        else {},
        all_domains=isinstance(domains, list),
    )


def _find_contradiction(
    checksum: Mapping[str, Any],
    snapshot: Snapshot,
    info: Mapping[str, Any],
    commit_name: str,
    actions: list[dict[str, Any]],
) -> str:
    if checksum["txnId"] != info["txnId"]:
        return f"it belongs to transaction {checksum['txnId']}, {commit_name} to {info['txnId']}"
    stamp = checksum.get("inCommitTimestampOpt")
    if stamp is not None and stamp != info.get("inCommitTimestamp"):
        return f"its in-commit timestamp differs from that of {commit_name}"
    if not any(_STATE.intersection(action) for action in actions):
        return ""
    committed = Snapshot()
    committed.add_older(commit_name, actions)
    if committed.protocol is not None and committed.protocol != snapshot.protocol:
        return f"its protocol {snapshot.protocol} differs from that of {commit_name}"
    if committed.metadata is not None and committed.metadata != snapshot.metadata:
        return f"its metadata differs from that of {commit_name}"
    if snapshot.all_domains and any(
        snapshot.domains.get(domain) != text for domain, text in committed.domains.items()
    ):
        return f"its metadata domains differ from those of {commit_name}"
    return ""


def _traces_of_files(
    checksum: Mapping[str, Any], metadata: Metadata | None, layout: LayoutEvidence
) -> dict[Trace, bool]:
    """Return what a checksum shows about its files; add their statistics to `layout`."""
    traces: dict[Trace, bool] = {}
    vectors = checksum.get("numDeletionVectorsOpt")
    if isinstance(vectors, int):
        traces[Trace.DELETION_VECTORS] = vectors > 0
    files = checksum.get("allFiles")
    if isinstance(files, list) and len(files) == checksum.get("numFiles"):
        adds = [file for file in files if isinstance(file, dict)]
        traces[Trace.DELETION_VECTORS] = any(add.get("deletionVector") for add in adds)
        tracked = [add.get("baseRowId") is not None for add in adds]
        traces[Trace.ROW_IDS], traces[Trace.UNTRACKED_FILES] = any(tracked), not all(tracked)
        paths = [str(add.get("path")) for add in adds]
        traces[Trace.ABSOLUTE_PATHS] = any(map(is_absolute, paths))
        traces[Trace.NON_ASCII_PATHS] = not all(map(str.isascii, paths))
        traces[Trace.ESCAPED_PATHS] = "%" in "".join(paths)
        if metadata is not None:
            partitions = PartitionEvidence()
            for add in adds:
                values = add.get("partitionValues")
                partitions.add(str(add.get("path")), values if isinstance(values, dict) else None)
            traces.update(partitions.traces(partition_types(metadata)))
            texts = [add["stats"] for add in adds if isinstance(add.get("stats"), str)]
            layout.of_checksum = [*filter(are_readable, texts[:MOST_STATISTICS])]
            layout.uncounted = len(layout.of_checksum) < len(adds)
            found = compare_statistics(layout.of_checksum, metadata)
            shown = (*MISREAD_BOUNDS, Trace.MISTYPED_STATISTICS, Trace.LACKING_COLUMNS)
            known = layout.checksum_has_all = len(texts) <= MOST_STATISTICS
            traces.update({trace: trace in found for trace in shown if known or trace in found})
    return traces
