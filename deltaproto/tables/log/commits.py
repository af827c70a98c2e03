"""The log's commits one by one, newest first, in bounded memory."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.errors import TableError
from deltaproto.protocol.feature import CLUSTERING_DOMAIN
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.stored_secrets import hide_in_name
from deltaproto.protocol.writers import name_writer
from deltaproto.tables.log.files import LogListing, commit_info, read_actions
from deltaproto.tables.log.snapshot import Snapshot
from deltaproto.tables.storage.interface import LogStore

_KEPT_ACTIONS = {"commitInfo", "protocol", "metaData", "txn"}


class Commit(NamedTuple):
    """The contents of one commit, without its file actions."""

    version: int
    info: Mapping[str, Any]
    """commitInfo as stored; empty if the writer recorded none"""
    protocol: Protocol | None
    metadata: Metadata | None
    transactions: tuple[tuple[str, int], ...] = ()
    """application id and version of each `txn` action: a streaming query and its batch"""
    problem: TableError | None = None
    """set when the commit cannot be read; the rest is then empty"""
    clusters: bool = False
    """True if it stores which columns the table is clustered by"""

    @property
    def operation(self) -> str:
        """The operation's name in commitInfo, or `unknown`."""
        return str(self.info.get("operation") or "unknown")

    @property
    def engine(self) -> str | None:
        """The engine that wrote the commit: the name it recorded, or `ID@VERSION` of a client."""
        return name_writer(self.info)

    @property
    def user(self) -> str | None:
        """The user who wrote the commit, if recorded."""
        user = self.info.get("userName") or self.info.get("userId")
        return None if user is None else str(user)

    @property
    def timestamp(self) -> int | None:
        """Milliseconds since the epoch; see `commit_time`."""
        return commit_time(self.info)

    @property
    def in_words(self) -> str:
        """Version, operation and writer as text."""
        who = " by ".join(part for part in (self.engine, self.user) if part)
        return f"version {self.version}, {self.operation}" + (f" ({who})" if who else "")


def commit_time(info: Mapping[str, Any]) -> int | None:
    """Return a commitInfo's in-commit timestamp, or else the time of the writer's clock.

    In milliseconds since the epoch; None if it has neither.
    """
    for key in ("inCommitTimestamp", "timestamp"):
        value = info.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def read_commits(store: LogStore, listing: LogListing) -> Iterator[Commit]:
    """Yield every commit in the log, newest first; a damaged one has its problem set."""
    for version in sorted(listing.commits, reverse=True):
        yield _read_commit(store, listing.commits[version], version)


class LogState(NamedTuple):
    """Protocol and metadata at one version; None if the log does not reach that far back."""

    protocol: Protocol | None
    metadata: Metadata | None


def state_from_checkpoint(store: LogStore, listing: LogListing, version: int) -> LogState | None:
    """Return protocol and metadata from a checkpoint of exactly `version`, if there is one."""
    for checkpoint in listing.checkpoints.get(version, ()):
        from deltaproto.tables.log.checkpoint import checkpoint_actions

        snapshot = Snapshot()
        try:
            snapshot.add_older(checkpoint.files[0], checkpoint_actions(store, checkpoint))
        except TableError:
            continue
        return LogState(snapshot.protocol, snapshot.metadata)
    return None


def _read_commit(store: LogStore, name: str, version: int) -> Commit:
    snapshot = Snapshot()
    kept: list[Mapping[str, Any]] = []
    clusters = False
    try:
        with store.open(name) as file:
            for action in read_actions(name, file):
                domain = action.get("domainMetadata")
                if isinstance(domain, dict) and domain.get("domain") == CLUSTERING_DOMAIN:
                    clusters = True
                if _KEPT_ACTIONS & action.keys():
                    kept.append(action)
        snapshot.add_older(name, kept)
    except TableError as problem:
        return Commit(version, {}, None, None, problem=problem)
    transactions = tuple(
        (hide_in_name(str(txn.get("appId"))), txn["version"])
        for action in kept
        if isinstance(txn := action.get("txn"), dict) and isinstance(txn.get("version"), int)
    )
    return Commit(
        *(version, commit_info(kept), snapshot.protocol, snapshot.metadata, transactions),
        clusters=clusters,
    )


_KEY = "deltaproto"


class CommitTag(NamedTuple):
    """The plan, step and run that made a commit."""

    plan: str
    step: str
    run: str
    """unique for each call of `apply`"""
    actor: str | None = None
    """the user who ran it; None in commits of earlier releases"""
    copied: int | None = None
    """the version of the old table whose rows the new one has after this commit of a copy"""

    def text(self) -> str:
        """Return the text for `commitInfo.userMetadata`."""
        members = self._asdict()
        if self.copied is None:
            del members["copied"]
        return json.dumps({_KEY: members}, separators=(",", ":"))


def commit_tag_of(commit: Commit) -> CommitTag | None:
    """Return the tag of a commit, or None."""
    text = commit.info.get("userMetadata")
    if not isinstance(text, str) or _KEY not in text:
        return None
    try:
        found = json.loads(text)[_KEY]
        plan, step, run = (str(found[name]) for name in ("plan", "step", "run"))
        actor, copied = found.get("actor"), found.get("copied")
        return CommitTag(
            plan,
            step,
            run,
            actor if isinstance(actor, str) else None,
            copied if isinstance(copied, int) else None,
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
