"""The progress of a copy into a new table, read from the tables behind its three names.

The catalog shows which names exist. The table ids and a property show which table each name refers
to. The tags of the new table's commits show which version of the old table it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple
from urllib.parse import unquote

from deltaproto.errors import ErrorCode, TableError
from deltaproto.plan_inputs.from_log import metadata_digest
from deltaproto.planning.plan import Plan
from deltaproto.planning.search.copy_by_name import (
    COPY_OF,
    NEW_SUFFIX,
    OLD_SUFFIX,
    REPLACED_BY,
    is_manual_copy,
    suffixed_name,
)
from deltaproto.planning.statement import Action
from deltaproto.protocol.decoding import decode_json
from deltaproto.protocol.table_state import SparkSettings, TableState
from deltaproto.tables.log.commits import Commit, commit_tag_of, read_commits
from deltaproto.tables.log.files import build_listing, commit_info, read_actions
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.open import OpenedLog, open_table_log

_ROW_TRACKING_DOMAIN = "delta.rowTracking"
_HARMLESS = ("commitInfo", "txn", "add", "remove", "domainMetadata")


def is_named_copy(plan: Plan) -> bool:
    """Return True if the plan makes or undoes a copy that `apply` executes."""
    actions = {step.action for step in plan.steps}
    return (
        Action.SWAP in actions
        and not plan.sql_name.startswith("delta.`")
        and not is_manual_copy(plan.steps)
    )


class CopyNames(NamedTuple):
    """The quoted names of a copy."""

    table: str
    new: str
    old: str


class NamedTable(NamedTuple):
    """A table that a name refers to."""

    opened: OpenedLog
    state: TableState

    @property
    def version(self) -> int:
        """Its newest version."""
        return self.state.version

    def commits(self) -> list[Commit]:
        """Return the commits of its log, oldest first."""
        store = self.opened.store
        return list(read_commits(store, build_listing(store.list())))[::-1]


class CopyStage(IntEnum):
    """The stages of a copy, by the names in the catalog."""

    PLANNED = 0
    """there is no new table"""
    COPYING = 1
    """the new table exists, and the old one has its own name"""
    BETWEEN = 2
    """the old table is renamed, the new one not yet"""
    SWAPPED = 3
    """the new table has the name"""


class CopyState(NamedTuple):
    """The two tables of a copy."""

    tables: CopyTables
    stage: CopyStage
    old: NamedTable
    new: NamedTable | None
    copied: int | None
    """the version of the old table that the new one contains; None: nothing was copied yet"""
    foreign: tuple[Commit, ...]
    """commits to the new table that the plan did not make"""

    @property
    def names(self) -> CopyNames:
        """The names of the tables."""
        return self.tables.names

    @property
    def closed(self) -> bool:
        """True if the old table has the commit that aborts its writers."""
        return REPLACED_BY in self.old.state.metadata.configuration

    @property
    def old_name(self) -> str:
        """The name that the old table has now."""
        own = self.stage <= CopyStage.COPYING
        return self.names.table if own else self.names.old

    @property
    def new_name(self) -> str:
        """The name that the new table has now."""
        return self.names.table if self.stage is CopyStage.SWAPPED else self.names.new


class CopyTables:
    """Reads the tables of a plan that makes a copy, or of its undo plan.

    Args:
        owner: id of the plan that makes the copy.
    """

    def __init__(
        self,
        plan: Plan,
        owner: str,
        storage_options: Mapping[str, str],
        spark: SparkSettings,
    ) -> None:
        self.plan, self.owner = plan, owner
        self.names = CopyNames(
            plan.sql_name,
            suffixed_name(plan.sql_name, NEW_SUFFIX),
            suffixed_name(plan.sql_name, OLD_SUFFIX),
        )
        self.storage_options, self.spark = storage_options, spark
        self._reader = LogReader(storage_options, use_checksums=False)
        self._id = plan.fingerprint.table_id

    def read(self) -> CopyState:
        """Read which tables exist and how far the copy has come.

        Raises:
            TableError: when the names refer to other tables, or a log cannot be read.
            EngineError: when Spark is not available.
        """
        names = self.names
        table, new, old = map(self._find, names)
        match table and self._role(table), new and self._role(new), old and self._role(old):
            case "old", None, None:
                stage = CopyStage.PLANNED
            case "old", "new", None:
                stage = CopyStage.COPYING
            case None, "new", "old":
                stage = CopyStage.BETWEEN
            case "new", None, "old":
                stage = CopyStage.SWAPPED
            case _:
                raise self._unknown_error(dict(zip(names, (table, new, old), strict=True)))
        source = table if stage <= CopyStage.COPYING else old
        fresh = table if stage is CopyStage.SWAPPED else new
        assert source is not None
        copied, foreign = None, []
        for commit in () if fresh is None else fresh.commits():
            tag = commit_tag_of(commit)
            if tag is None or tag.plan != self.owner:
                foreign.append(commit)
            elif tag.copied is not None:
                copied = max(copied or 0, tag.copied)
        return CopyState(self, stage, source, fresh, copied, tuple(foreign))

    def refresh(self, table: NamedTable) -> NamedTable:
        """Read the log of a table again, at the location where it was."""
        return table._replace(state=self._reader.read_from(*table.opened))

    def _find(self, name: str) -> NamedTable | None:
        try:
            opened = open_table_log(name, self.storage_options, self.spark)
        except TableError as error:
            if error.code == ErrorCode.NOT_FOUND:
                return None
            raise
        return NamedTable(opened, self._reader.read_from(*opened))

    def _role(self, table: NamedTable) -> str:
        metadata = table.state.metadata
        if self._id is not None and metadata.id == self._id:
            return "old"
        if self._id is not None and metadata.property(COPY_OF) == self._id:
            return "new"
        return "other"

    def _unknown_error(self, found: Mapping[str, NamedTable | None]) -> TableError:
        roles = {"old": "the table that was planned", "new": "its copy", "other": "another table"}
        said = "; ".join(
            f"{name} is {'missing' if table is None else roles[self._role(table)]}"
            for name, table in found.items()
        )
        return TableError(
            ErrorCode.NOT_FOUND,
            f"the names of this copy refer to other tables: {said}",
            "rename or drop what is in the way, with the folder of a new table that is no longer "
            "needed, and run again or plan again",
        )


class CommitEffect(StrEnum):
    """The effect of a commit to the old table on the copy."""

    NOTHING = "nothing"
    """its rows are the same before and after"""
    APPEND = "append"
    """it only adds files, without deletion vectors"""
    CHANGE = "change"
    """it changes or removes rows, or its log was deleted"""
    METADATA = "metadata"
    """it changes protocol, schema or properties"""


class PendingCommit(NamedTuple):
    """A commit to the old table whose rows are not in the new one yet."""

    version: int
    effect: CommitEffect
    operation: str
    files: tuple[str, ...] = ()
    """names of the added files, without folders"""
    rows: int | None = None
    """added rows, by the statistics; None: unknown"""

    def __str__(self) -> str:
        return f"version {self.version} ({self.operation})"


def pending_commits(table: NamedTable, after: int, owner: str) -> list[PendingCommit]:
    """Return the commits after a version, oldest first.

    Args:
        owner: id of the plan that makes the copy, whose own commits change no rows.

    Raises:
        TableError: when a commit cannot be read.
    """
    store = table.opened.store
    listing = build_listing(store.list())
    newest = table.version if listing.newest is None else listing.newest
    found = []
    for version in range(after + 1, newest + 1):
        name = listing.commits.get(version)
        if name is None:
            found.append(PendingCommit(version, CommitEffect.CHANGE, "not in the log"))
            continue
        with store.open(name) as file:
            actions = list(read_actions(name, file, files=True))
        found.append(_classify(version, actions, owner))
    return found


def find_metadata_change(state: CopyState) -> str | None:
    """Describe what changed in the old table, other than rows, since the plan was made; or None."""
    fingerprint, seen = state.tables.plan.fingerprint, state.old.state
    if (seen.protocol, metadata_digest(seen.metadata)) != (
        fingerprint.protocol,
        fingerprint.metadata,
    ):
        return "they are not those of the plan"
    for commit in pending_commits(state.old, fingerprint.version, state.tables.owner):
        if commit.effect is CommitEffect.METADATA and commit.version <= seen.version:
            return str(commit)
    return None


def _classify(version: int, actions: Sequence[Mapping[str, Any]], owner: str) -> PendingCommit:
    info = commit_info([dict(action) for action in actions])
    commit = Commit(version, info, None, None)
    tag = commit_tag_of(commit)
    kinds = {kind for action in actions for kind in action}
    if tag is not None and tag.plan == owner and kinds <= {"commitInfo", "metaData"}:
        return PendingCommit(version, CommitEffect.NOTHING, commit.operation)
    domains = {a["domainMetadata"].get("domain") for a in actions if "domainMetadata" in a}
    added = [action["add"] for action in actions if "add" in action]
    removed = [action["remove"] for action in actions if "remove" in action]
    if {"protocol", "metaData"} & kinds or domains - {_ROW_TRACKING_DOMAIN}:
        return PendingCommit(version, CommitEffect.METADATA, commit.operation)
    if not kinds <= {*_HARMLESS}:
        return PendingCommit(version, CommitEffect.CHANGE, commit.operation)
    if all(file.get("dataChange") is False for file in (*added, *removed)):
        return PendingCommit(version, CommitEffect.NOTHING, commit.operation)
    plain = all(f.get("dataChange") is not False and not f.get("deletionVector") for f in added)
    if removed or not plain:
        return PendingCommit(version, CommitEffect.CHANGE, commit.operation)
    counts = [_rows(file) for file in added]
    return PendingCommit(
        version,
        CommitEffect.APPEND,
        commit.operation,
        tuple(unquote(str(file["path"])).rpartition("/")[2] for file in added),
        None if None in counts else sum(count or 0 for count in counts),
    )


def _rows(file: Mapping[str, Any]) -> int | None:
    try:
        statistics = decode_json(file.get("stats") or "{}")
        count = statistics.get("numRecords")
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None
    return count if isinstance(count, int) else None
