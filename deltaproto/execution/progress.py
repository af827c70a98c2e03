"""Where a plan stands, told from the table itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.plan_inputs.from_log import digest
from deltaproto.planning.plan import Plan, Step
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.log.catalog_managed import is_whole
from deltaproto.tables.log.commit_tag import mark_of
from deltaproto.tables.log.commits import Commit, commits
from deltaproto.tables.log.files import sort_names
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.open import OpenedLog, open_table_log


class Baseline(NamedTuple):
    """What a plan depends on, at one version."""

    version: int
    protocol: Protocol
    metadata: str | None
    """digest of schema, partitioning and Delta's own properties; None: not known"""


class TableObservation(NamedTuple):
    """The table at its newest version, and how it came there."""

    table_id: str | None
    now: Baseline
    commits: tuple[Commit, ...]
    """those after the moment that was asked about, oldest first, as far as they are left"""


def named(plan: Plan) -> str:
    """What finds the plan's table from any folder: its location, or its name in a catalog."""
    return plan.location if plan.sql_name.startswith("delta.`") else plan.table


class TableWatcher:
    """One table's log, looked at again and again.

    Raises:
        TableError: when the table cannot be found, or lies elsewhere than its plan says.
        EngineError: when a catalog name needs Spark and there is none.
    """

    def __init__(
        self, plan: Plan, storage_options: Mapping[str, str], spark: SparkSettings
    ) -> None:
        self.reached: OpenedLog = open_table_log(named(plan), storage_options, spark)
        self.storage_options = storage_options
        self._reader = LogReader(storage_options, use_checksums=False)
        if self.reached.location.uri.rstrip("/") != plan.location.rstrip("/"):
            raise TableError(
                ErrorCode.NOT_FOUND,
                f"{plan.table} lies at {self.reached.location.uri} now, and at {plan.location} "
                "when it was planned",
                "plan again for the table that the name means now",
            )

    @property
    def uri(self) -> str:
        """Where the table lies."""
        return self.reached.location.uri

    def look(self, since: int) -> TableObservation:
        """The table now, with the commits after version `since`.

        Raises:
            TableError: when the log cannot be read, or a commit in it.
        """
        location, store = self.reached
        state = self._reader.read_from(location, store)
        listing = sort_names(store.list())
        if not is_whole(store, state.protocol):
            raise TableError(
                ErrorCode.CATALOG_MANAGED,
                f"{location.text}: the catalog has commits that its log does not show",
                "run again, or read it by its catalog name",
            )
        found: list[Commit] = []
        for commit in commits(store, listing):
            if commit.version <= since:
                break
            if commit.version > state.version:
                continue
            if commit.problem is not None:
                raise commit.problem
            found.append(commit)
        found.reverse()
        return TableObservation(
            table_id=state.metadata.id,
            now=Baseline(state.version, state.protocol, digest(state.metadata)),
            commits=tuple(found),
        )


_DROPPED = "DROP FEATURE"


class ForeignCommit(NamedTuple):
    """A commit of somebody else that changed what the plan depends on."""

    commit: Commit
    what: str
    """`the protocol`, or `schema or properties`"""


class Progress(NamedTuple):
    """How far a plan has come."""

    done: int
    """so many steps, from the first on, are finished"""
    early: frozenset[str]
    """features that went in the first of two calls, so that the rest of the two is not needed"""
    own: Mapping[str, tuple[Commit, ...]]
    """the commits of each step since the point"""
    point: Baseline
    """the table as the plan's own commits, and harmless ones of others, left it"""
    foreign: ForeignCommit | None
    partial: bool = False
    """the next step has made commits already, and was cut off"""

    @property
    def started(self) -> bool:
        """Whether some of the plan is done, a step that was cut off included."""
        return self.done > 0 or bool(self.own)


def progress_from_commits(
    plan_id: str,
    plan: Plan,
    done: int,
    early: frozenset[str],
    sight: TableObservation,
    start: Baseline,
) -> Progress:
    """Where the plan stands, from `start` on, where `done` steps were finished.

    `sight` holds the commits after `start`.
    """
    own: dict[str, list[Commit]] = {}
    protocol, metadata = start.protocol, start.metadata
    foreign: ForeignCommit | None = None
    for commit in sight.commits:
        mark = mark_of(commit)
        ours = mark is not None and mark.plan == plan_id
        new = commit.protocol if commit.protocol is not None else protocol
        seen = metadata if commit.metadata is None else digest(commit.metadata)
        if ours:
            assert mark is not None
            own.setdefault(mark.step, []).append(commit)
        elif new != protocol:
            foreign = foreign or ForeignCommit(commit, "the protocol")
        elif metadata is not None and seen != metadata:
            foreign = foreign or ForeignCommit(commit, "schema or properties")
        protocol, metadata = new, seen
    if foreign is None:
        foreign = _unseen(sight.now, protocol, metadata)
    for number, step in enumerate(plan.steps[done:], done):
        mine = own.get(step.id, [])
        later = any(each.id in own for each in plan.steps[number + 1 :])
        finished = bool(mine) and is_finished(step, mine, early, protocol)
        if dropped_in_first_call(step, mine, protocol):
            early |= {step.feature or ""}
        elif not (finished or later):
            break
        done = number + 1
    return Progress(
        done,
        early,
        {name: tuple(each) for name, each in own.items()},
        sight.now,
        foreign,
        partial=done < len(plan.steps) and plan.steps[done].id in own,
    )


def _unseen(now: Baseline, protocol: Protocol, metadata: str | None) -> ForeignCommit | None:
    """A change that no commit shows which is left: log files of before it may have been deleted."""
    commit = Commit(now.version, {}, None, None)
    if now.protocol != protocol:
        return ForeignCommit(commit, "the protocol")
    if metadata is not None and now.metadata != metadata:
        return ForeignCommit(commit, "schema or properties")
    return None


def is_finished(
    step: Step, own: Sequence[Commit], early: frozenset[str], protocol: Protocol
) -> bool:
    """Whether these commits are all that the step makes.

    The last operation that a statement makes is made last; a statement that was cut off lacks it.
    """
    if not step.operations or not own:
        return False
    if own[-1].operation != step.operations[-1]:
        return False
    return protocol == without_comments(step.protocol_after, early)


def dropped_in_first_call(step: Step, own: Sequence[Commit], protocol: Protocol) -> bool:
    """Whether the first of two calls to drop a feature was enough."""
    return (
        step.expects is not None
        and step.feature is not None
        and step.feature not in protocol.supported
        and any(commit.operation == _DROPPED for commit in own)
    )


def without_comments(protocol: Protocol, features: frozenset[str]) -> Protocol:
    """The protocol that is predicted where these went earlier."""
    for feature in features & protocol.supported:
        protocol = protocol.without_feature(feature)
    return protocol
