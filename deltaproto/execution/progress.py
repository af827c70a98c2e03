"""Determines a plan's progress from the table itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.location import LocationKind, catalog_server, locate
from deltaproto.plan_inputs.from_log import fingerprint_of, metadata_digest
from deltaproto.planning.plan import Fingerprint, Plan, Step
from deltaproto.planning.statement import Action
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.sql.quoting import name_in_statements, split_name
from deltaproto.tables.log.catalog_managed import has_every_commit
from deltaproto.tables.log.commits import Commit, commit_tag_of, read_commits
from deltaproto.tables.log.files import build_listing
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.open import OpenedLog, open_table_log


class TableObservation(NamedTuple):
    """The latest table state and the commits leading to it."""

    now: Fingerprint
    commits: tuple[Commit, ...]
    """commits after the given version, oldest first, excluding any already cleaned up"""
    unlisted_vectors: bool = False
    """whether live files have deletion vectors that the protocol does not support"""


def table_address(plan: Plan) -> str:
    """Return the address of the plan's table from any folder: its location or catalog name.

    A name in statements is resolved by the session that runs them; a name given with its
    catalog's URL, while statements use the path, by that catalog.
    """
    if not plan.sql_name.startswith("delta.`"):
        return name_in_statements(plan.table)
    return plan.table if locate(plan.table).kind is LocationKind.CATALOG else plan.location


def reading_address(plan: Plan) -> str:
    """Return the address by which a table is read if no statement follows.

    A catalog that is reached without Spark then resolves its names.
    """
    return plan.table if locate(plan.table).kind is LocationKind.CATALOG else table_address(plan)


class TableWatcher:
    """Observes one table's log repeatedly.

    Args:
        session: whether the Spark session that is to run the statements resolves their name.

    Raises:
        TableError: when the table cannot be found, or its location differs from the plan's.
        EngineError: when a catalog name needs Spark and it is not available.
    """

    def __init__(
        self,
        plan: Plan,
        storage_options: Mapping[str, str],
        spark: SparkSettings,
        *,
        session: bool = True,
    ) -> None:
        address = table_address(plan) if session else reading_address(plan)
        through_session = address != plan.table and locate(plan.table).kind is LocationKind.CATALOG
        try:
            self.reached: OpenedLog = open_table_log(address, storage_options, spark)
        except TableError as error:
            if through_session and error.code in (ErrorCode.NOT_FOUND, ErrorCode.ENGINE):
                raise _session_error(plan, error.message) from None
            raise
        self.storage_options = storage_options
        self._reader = LogReader(storage_options, use_checksums=False)
        found = self.reached.location.uri
        if found.rstrip("/") == plan.location.rstrip("/"):
            return
        if through_session:
            other = f"{address} is at {found} in this Spark session, but at {plan.location}"
            raise _session_error(plan, f"{other} in the catalog of the plan")
        raise TableError(
            ErrorCode.NOT_FOUND,
            f"{plan.table} is now at {found}, but was at {plan.location} when it was planned",
            "plan again for the table that the name now refers to",
        )

    @property
    def uri(self) -> str:
        """The table's location."""
        return self.reached.location.uri

    def observe(self, since: int) -> TableObservation:
        """Read the table's current state and the commits after version `since`.

        Raises:
            TableError: when the log or one of these commits cannot be read.
        """
        location, store = self.reached
        state = self._reader.read_from(location, store)
        listing = build_listing(store.list())
        if not has_every_commit(store, state.protocol):
            raise TableError(
                ErrorCode.CATALOG_MANAGED,
                f"{location.text}: the catalog has commits that the log does not show",
                "run again, or read the table by its catalog name",
            )
        found: list[Commit] = []
        for commit in read_commits(store, listing):
            if commit.version <= since:
                break
            if commit.version > state.version:
                continue
            if commit.problem is not None:
                raise commit.problem
            found.append(commit)
        found.reverse()
        return TableObservation(
            now=fingerprint_of(state),
            commits=tuple(found),
            unlisted_vectors="deletionVectors" not in state.protocol.supported
            and state.traces.get(Trace.DELETION_VECTORS) is True,
        )


def _session_error(plan: Plan, cause: str) -> TableError:
    """Return the error for a session whose catalogs differ from those of a plan by name."""
    server = catalog_server(plan.table)
    catalog = split_name(plan.sql_name)[0]
    connector = f"spark.sql.catalog.{catalog}"
    hint = (
        f"its statements use the name {name_in_statements(plan.table)}: use a Spark session whose "
        f"catalog {catalog} is {server}, with --spark-remote, from Python in a notebook, or with "
        f"the connector's settings as --spark-conf ({connector}, {connector}.uri, …)"
    )
    if not CATALOG_MANAGED & plan.protocol_before.supported:
        hint += f"; or plan an external table by its location, {plan.location}"
    return TableError(ErrorCode.NOT_FOUND, cause, hint)


_DROP_OPERATION = "DROP FEATURE"


class ForeignCommit(NamedTuple):
    """A conflicting commit by another writer."""

    commit: Commit
    what: str
    """`the protocol`, `schema or properties`, or `the clustering columns`"""


class Progress(NamedTuple):
    """The progress of a plan's execution."""

    done: int
    """number of finished steps, from the first on"""
    early: frozenset[str]
    """features dropped in the first of two calls, so the rest of the two is not needed"""
    own: Mapping[str, tuple[Commit, ...]]
    """commits of each step since the baseline"""
    baseline: Fingerprint
    """table state after the plan's own commits and harmless commits by others"""
    foreign: ForeignCommit | None
    partial: bool = False
    """whether the next step was interrupted after its first commits"""

    @property
    def started(self) -> bool:
        """True if any part of the plan was executed, including an interrupted step."""
        return self.done > 0 or bool(self.own)


def progress_from_commits(
    plan_id: str,
    plan: Plan,
    done: int,
    early: frozenset[str],
    observed: TableObservation,
    start: Fingerprint,
) -> Progress:
    """Compute progress since `start`, given that `done` steps are already complete.

    `observed` contains the commits after `start`.
    """
    own: dict[str, list[Commit]] = {}
    protocol, metadata = start.protocol, start.metadata
    foreign: ForeignCommit | None = None
    for commit in observed.commits:
        tag = commit_tag_of(commit)
        ours = tag is not None and tag.plan == plan_id
        new = commit.protocol if commit.protocol is not None else protocol
        seen = metadata if commit.metadata is None else metadata_digest(commit.metadata)
        if ours:
            assert tag is not None
            own.setdefault(tag.step, []).append(commit)
        elif new != protocol:
            foreign = foreign or ForeignCommit(commit, "the protocol")
        elif metadata is not None and seen != metadata:
            foreign = foreign or ForeignCommit(commit, "schema or properties")
        elif commit.clusters and _depends_on_clustering(plan):
            foreign = foreign or ForeignCommit(commit, "the clustering columns")
        protocol, metadata = new, seen
    if foreign is None:
        foreign = _find_unlogged_change(observed.now, protocol, metadata)
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
        observed.now,
        foreign,
        partial=done < len(plan.steps) and plan.steps[done].id in own,
    )


def _depends_on_clustering(plan: Plan) -> bool:
    """Return True if a step clusters the table, or rewrites files, which clustering can prevent."""
    return any(
        step.action in (Action.CLUSTER_BY, Action.DROP, Action.REORG)
        or step.feature == "columnMapping"
        for step in plan.steps
    )


def _find_unlogged_change(
    now: Fingerprint, protocol: Protocol, metadata: str | None
) -> ForeignCommit | None:
    """Return a change whose commit is no longer in the log, as old log files may be deleted."""
    commit = Commit(now.version, {}, None, None)
    if now.protocol != protocol:
        return ForeignCommit(commit, "the protocol")
    if metadata is not None and now.metadata != metadata:
        return ForeignCommit(commit, "schema or properties")
    return None


def is_finished(
    step: Step, own: Sequence[Commit], early: frozenset[str], protocol: Protocol
) -> bool:
    """Return True if these commits complete the step.

    A statement's last operation is committed last, so an interrupted statement lacks it.
    """
    if not step.operations or not own:
        return False
    if own[-1].operation != step.operations[-1]:
        return False
    return protocol == without_features(step.protocol_after, early)


def dropped_in_first_call(step: Step, own: Sequence[Commit], protocol: Protocol) -> bool:
    """Return True if the first of two calls to drop a feature was enough."""
    return (
        step.expects is not None
        and step.feature is not None
        and step.feature not in protocol.supported
        and any(commit.operation == _DROP_OPERATION for commit in own)
    )


def without_features(protocol: Protocol, features: frozenset[str]) -> Protocol:
    """Return a predicted protocol without these features; unchanged if it supports none of them."""
    dropped = features & protocol.supported
    return protocol.without_features(dropped) if dropped else protocol
