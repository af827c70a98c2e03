"""One version of a table: its log replayed, newest action first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol, show_value
from deltaproto.protocol.stored_secrets import hide_in_name, hide_in_schema
from deltaproto.protocol.table_state import Note, NoteKind
from deltaproto.tables.log.files import (
    Checkpoint,
    LogListing,
    commit_info,
    corrupt_error,
    read_actions,
)
from deltaproto.tables.log.layout_evidence import LayoutEvidence
from deltaproto.tables.storage.interface import LogStore

_REQUIRED = ("id", "format", "partitionColumns", "configuration")
"""members of a metaData action, besides the schema (PROTOCOL.md, "Change Metadata")"""
_OF_FORMAT = ("format.provider", "format.options")
_TYPES = {
    "id": str,
    "format": dict,
    "format.provider": str,
    "format.options": dict,
    "configuration": dict,
    "createdTime": int,
}
"""members whose type the parser does not check"""
_NEEDS_DOMAINS = ("domainMetadata", "clustering")


class Snapshot:
    """Protocol, metadata and domains found so far; values already set are newer and are kept.

    `domains` has each domain's configuration; None if a newer commit removed the domain.
    """

    def __init__(
        self,
        protocol: Protocol | None = None,
        metadata: Metadata | None = None,
        domains: dict[str, str | None] | None = None,
        all_domains: bool = False,
    ) -> None:
        self.protocol = protocol
        self.metadata = metadata
        self.domains = domains if domains is not None else {}
        self.all_domains = all_domains
        self.set_by: dict[str, int] = {}
        """versions of the commits that set `protocol` and `metadata`; missing if an older commit or
        checkpoint did
        """
        self.commit_info: dict[str, Any] | None = None
        """commitInfo of the newest commit; empty if it has none; None: not read"""
        self.notes: list[Note] = []
        self.layout = LayoutEvidence()
        """layout evidence from the commits that were read"""

    @property
    def complete(self) -> bool:
        """True if older actions cannot add anything."""
        if self.protocol is None or self.metadata is None:
            return False
        return self.all_domains or not self.protocol.supported.intersection(_NEEDS_DOMAINS)

    @property
    def catalog_managed(self) -> bool:
        """True if the catalog, rather than the file system, determines the newest version."""
        return self.protocol is not None and bool(CATALOG_MANAGED & self.protocol.supported)

    @property
    def live_domains(self) -> dict[str, str]:
        return {name: text for name, text in self.domains.items() if text is not None}

    def add_older(self, name: str, actions: Iterable[Mapping[str, Any]]) -> None:
        """Add missing values from `actions`: all actions of one file, in file order.

        If a file has several protocol or metaData actions, the last one counts, as in Spark.

        Raises:
            TableError: corrupt-log, when a required action is malformed.
        """
        protocols: list[Protocol] = []
        several: list[Metadata] = []
        domains: dict[str, str | None] = {}
        for action in actions:
            if "protocol" in action:
                protocols.append(parse_protocol_action(name, action["protocol"]))
            if "metaData" in action:
                several.append(parse_metadata_action(name, action["metaData"]))
            if "domainMetadata" in action:
                domains.update([parse_domain_action(name, action["domainMetadata"])])
        if self.protocol is None and protocols:
            self.protocol = protocols[-1]
            if len(set(protocols)) > 1:
                self.notes.append(_several_protocols_note(name, protocols))
        if self.metadata is None and several:
            self.metadata = several[-1]
            if any(each != several[-1] for each in several):
                self.notes.append(_several_metadata_note(name))
        for domain, text in domains.items():
            self.domains.setdefault(domain, text)


def parse_protocol_action(name: str, action: Any) -> Protocol:
    """Parse a protocol action; errors name its file."""
    try:
        return Protocol.stored(_require_mapping(action))
    except ValueError as error:
        raise corrupt_error(name, None, f"malformed protocol action: {error}") from None


def parse_metadata_action(name: str, action: Any) -> Metadata:
    """Parse a metaData action; errors name its file."""
    try:
        return Metadata.stored(_require_mapping(action))
    except ValueError as error:
        raise corrupt_error(name, None, f"malformed metaData action: {error}") from None


def parse_domain_action(name: str, action: Any) -> tuple[str, str | None]:
    """Parse name and configuration of a domainMetadata action; None for a removed domain."""
    try:
        fields = _require_mapping(action)
    except ValueError as error:
        raise corrupt_error(name, None, f"malformed domainMetadata action: {error}") from None
    domain, text = fields.get("domain"), fields.get("configuration")
    if not isinstance(domain, str):
        raise corrupt_error(name, None, "a domainMetadata action without a domain")
    # The configuration of a domain is JSON, like a schema.
    stored = None if fields.get("removed") is True else hide_in_schema(str(text or ""))
    return hide_in_name(domain), stored


def _require_mapping(action: Any) -> Mapping[str, Any]:
    if not isinstance(action, Mapping):
        raise ValueError(f"{show_value(action)} is not an object")
    return action


def _several_protocols_note(name: str, protocols: list[Protocol]) -> Note:
    shown = ", ".join(str(protocol) for protocol in protocols)
    return Note(
        NoteKind.SEVERAL_PROTOCOLS,
        f"{name} has several protocols, {shown}: Spark uses the last, delta-rs the first",
    )


def _several_metadata_note(name: str) -> Note:
    return Note(
        NoteKind.SEVERAL_PROTOCOLS,
        f"{name} has several metaData actions that differ: Spark uses the last, delta-rs the first",
    )


_GAP_HINT = "commits are missing from the log; restore them from a backup or another replica"


def no_commits_error() -> TableError:
    """Return the error of a log without commits and checkpoints."""
    return TableError(
        ErrorCode.NOT_A_DELTA_TABLE,
        "_delta_log has no commit and no checkpoint",
        "check the path; if its log was deleted, restore it from a backup",
    )


def require_rebuildable(listing: LogListing, version: int) -> None:
    """Refuse a version that the log cannot rebuild, before reading anything.

    Raises:
        TableError: not-found for a version outside the log, corrupt-log for a gap.
    """
    newest = listing.newest
    if newest is None:
        raise no_commits_error()
    if version > newest:
        raise TableError(
            ErrorCode.NOT_FOUND, f"version {version} does not exist", f"the newest is {newest}"
        )
    base = next(iter(listing.last_checkpoints(version)), None)
    missing = listing.missing(_base_version(base), version)
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


def oldest_version(listing: LogListing, version: int) -> int:
    """Return the start of the range of versions up to `version` that the log can rebuild.

    Returns `version` if there is no such range.
    """
    missing = listing.missing(-1, version)
    if missing is None:
        return 0
    return min((v for v in listing.checkpoints if missing <= v <= version), default=version)


def replay(store: LogStore, listing: LogListing, version: int) -> Snapshot:
    """Read the snapshot of `version`, which `require_rebuildable` has accepted.

    An unreadable checkpoint is skipped in favor of an older one, or of the commits from version 0
    on, as in Spark; the snapshot has a note about it.

    Raises:
        TableError: corrupt-log.
    """
    snapshot = Snapshot()
    position = version
    for base in [*listing.checkpoints_up_to(version), None]:
        floor = _base_version(base)
        missing = listing.missing(floor, position)
        if missing is not None:
            raise _unreadable_error(snapshot.notes, missing)
        _add_commits(store, listing, snapshot, range(position, floor, -1), newest=version)
        position = min(position, floor)
        if base is None:
            snapshot.all_domains = True
        if snapshot.complete or base is None or _add_checkpoint(store, snapshot, base):
            break
    return _require_complete(snapshot, version)


def _base_version(base: Checkpoint | None) -> int:
    return -1 if base is None else base.version


def _add_commits(
    store: LogStore,
    listing: LogListing,
    snapshot: Snapshot,
    versions: Iterable[int],
    *,
    newest: int,
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
        known = (snapshot.protocol, snapshot.metadata)
        snapshot.add_older(name, actions)
        for what, before, now in zip(
            ("protocol", "metadata"), known, (snapshot.protocol, snapshot.metadata), strict=True
        ):
            if before is None and now is not None:
                snapshot.set_by[what] = version
        if snapshot.set_by.get("metadata") == version:
            snapshot.notes += _flawed_members(name, actions)


def _flawed_members(
    name: str,
    actions: Iterable[Mapping[str, Any]],
    worst: NoteKind = NoteKind.METADATA_UNREADABLE,
) -> Iterator[Note]:
    """Yield notes if the metaData of a commit or checkpoint is not as the specification requires.

    Delta Kernel, and so delta-rs, Polars, DuckDB and Daft, refuses such a commit. Delta Spark does
    without an id of the right type, and changes properties without a format; it refuses every
    statement because of any other member.
    """
    *_, stored = (action["metaData"] for action in actions if "metaData" in action)
    inner = stored.get("format")
    known = isinstance(inner, dict)
    members = (
        {**stored, **{f"format.{key}": value for key, value in inner.items()}} if known else stored
    )
    required = (*_REQUIRED, *_OF_FORMAT) if known else _REQUIRED
    missing = [member for member in required if members.get(member) is None]
    if missing:
        text = f"the metaData action of {name} has no {' and no '.join(missing)}"
        kind = (
            NoteKind.METADATA_INCOMPLETE
            if all(member.startswith("format") for member in missing)
            else worst
        )
        yield Note(kind, f"{text}, which the specification requires")
    for member, type_ in _TYPES.items():
        value = members.get(member)
        if value is not None and type(value) is not type_:
            text = f"the metaData action of {name} has {show_value(value)} as {member}"
            kind = (
                worst
                if member in ("configuration", "createdTime")
                else NoteKind.METADATA_INCOMPLETE
            )
            yield Note(kind, f"{text}, which the specification forbids")


def _add_checkpoint(store: LogStore, snapshot: Snapshot, base: Checkpoint) -> bool:
    from deltaproto.tables.log.checkpoint import checkpoint_actions

    older = snapshot.metadata is None
    try:
        actions = list(checkpoint_actions(store, base))
        snapshot.add_older(base.files[0], actions)
    except TableError as error:
        if error.code is not ErrorCode.CORRUPT_LOG:
            raise
        snapshot.notes.append(Note(NoteKind.CHECKPOINT_UNREADABLE, error.message))
        return False
    # A readable checkpoint without a required action is a broken log: every engine stops.
    for found, action in ((snapshot.protocol, "protocol"), (snapshot.metadata, "metaData")):
        if found is None:
            raise corrupt_error(base.files[0], None, f"the checkpoint has no {action} action")
    if older:
        # What Delta Spark does with such a checkpoint was not measured.
        snapshot.notes += _flawed_members(base.files[0], actions, NoteKind.METADATA_INCOMPLETE)
    snapshot.all_domains = True
    return True


def _unreadable_error(notes: list[Note], missing: int) -> TableError:
    unread = [note.message for note in notes if note.kind is NoteKind.CHECKPOINT_UNREADABLE]
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{unread[-1] if unread else 'no checkpoint'}, and {missing:020d}.json is missing",
        "without the checkpoint, the commits from version 0 on are needed; restore either",
    )


def _require_complete(snapshot: Snapshot, version: int) -> Snapshot:
    for found, action in ((snapshot.protocol, "protocol"), (snapshot.metadata, "metaData")):
        if found is None:
            raise corrupt_error("_delta_log", None, f"no {action} action up to version {version}")
    return snapshot
