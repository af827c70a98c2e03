"""The table between the steps: its state, and the commits since another moment.

Read from the log without its checksum files, by code that shares nothing with the engine that
executes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deltaproto.drafting.live import digest
from deltaproto.errors import ErrorCode, TableError
from deltaproto.planning.plan import Plan
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.log.commits import Commit, commits
from deltaproto.tables.log.names import sort_names
from deltaproto.tables.log.ratified import is_whole
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.reach import Reached, reach


class Point(NamedTuple):
    """What a plan depends on, at one version."""

    version: int
    protocol: Protocol
    metadata: str | None
    """digest of schema, partitioning and Delta's own properties; None: not known"""


class Sight(NamedTuple):
    """The table at its newest version, and how it came there."""

    table_id: str | None
    now: Point
    commits: tuple[Commit, ...]
    """those after the moment that was asked about, oldest first, as far as they are left"""


def named(plan: Plan) -> str:
    """What finds the plan's table from any folder: its location, or its name in a catalog."""
    return plan.location if plan.sql_name.startswith("delta.`") else plan.table


class Watched:
    """One table's log, looked at again and again.

    Raises:
        TableError: when the table cannot be found, or lies elsewhere than its plan says.
        EngineError: when a catalog name needs Spark and there is none.
    """

    def __init__(
        self, plan: Plan, storage_options: Mapping[str, str], spark: SparkSettings
    ) -> None:
        self.reached: Reached = reach(named(plan), storage_options, spark)
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

    def look(self, since: int) -> Sight:
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
        return Sight(
            table_id=state.metadata.id,
            now=Point(state.version, state.protocol, digest(state.metadata)),
            commits=tuple(found),
        )
