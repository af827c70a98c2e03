"""Plans tables one after the other, and reads those again whose saved state is not enough."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from deltaproto.cli import options
from deltaproto.errors import TableError
from deltaproto.fleet.schemas import is_on_object_store
from deltaproto.interrupts import defer_signals, wait_for
from deltaproto.location import locate
from deltaproto.plan_inputs.cache import CachingPlanner
from deltaproto.plan_inputs.client_scope import ClientScope, PolicyCheckedPlan
from deltaproto.plan_inputs.from_log import load_plan_input, with_saved_names
from deltaproto.plan_inputs.planners import Planner
from deltaproto.planning.engine import Engine, parse_engine
from deltaproto.planning.plan import Plan
from deltaproto.planning.request import PlanInput
from deltaproto.tables.engine_errors import contain_table_errors

_PARALLEL_READS = 16
"""tables on object stores that are read at the same time"""


class PendingPlan(NamedTuple):
    """A table to plan."""

    name: str
    found: PlanInput | TableError
    checked: PolicyCheckedPlan | None = None
    """its plan, if that is known"""
    old: bool = False
    """whether `found` is saved, and the plan must be for the table as it is now"""
    reading: Future[PlanInput] | None = None
    """reads the table as it is now, if that has begun"""


class TablePlanner:
    """Plans one table after the other; the arguments are those of `plan_tables`."""

    def __init__(
        self,
        values: Mapping[str, Any],
        users: ClientScope,
        planner: Planner,
        prepare: Callable[[PlanInput], PlanInput] | None,
        cache_saved: bool,
        save: Callable[[Plan], None] | None,
    ) -> None:
        self._users, self._planner, self._prepare = users, planner, prepare
        self._cache_saved, self._save = cache_saved, save
        self._fresh = values["fresh"]
        self._engine = parse_engine(values["engine"]) if values["engine"] else Engine()
        self._spark = options.spark_settings(values)
        self._storage = options.storage_options(values)
        # SQL may contain a table version.
        self._caching = CachingPlanner(
            self._check, users, self._add_clients, by_version=bool(values.get("sql"))
        )

    def begin(self, tables: Iterable[tuple[str, PlanInput | TableError]]) -> Iterator[PendingPlan]:
        """Yield each table for `plan`; several on object stores are read at the same time."""
        waiting: deque[PendingPlan] = deque()
        with ThreadPoolExecutor(_PARALLEL_READS, thread_name_prefix="table") as pool:
            try:
                for name, found in tables:
                    waiting.append(self._begin(name, found, pool))
                    while waiting and (
                        waiting[0].reading is None or len(waiting) > _PARALLEL_READS
                    ):
                        yield waiting.popleft()
                yield from waiting
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _begin(
        self, name: str, found: PlanInput | TableError, pool: ThreadPoolExecutor
    ) -> PendingPlan:
        if isinstance(found, TableError) or found.fingerprint.metadata is not None:
            return PendingPlan(name, found)
        # Only rows of an inventory have a group.
        if not (self._fresh and found.row_group is not None):
            try:
                with contain_table_errors():
                    checked = self._plan(found)
            except TableError as error:
                return PendingPlan(name, error)
            # What is saved can be applied, so it is planned for the table as it is now.
            if self._save is None or not checked.plan.steps:
                return PendingPlan(name, found, checked)
        if not is_on_object_store(found.location):
            return PendingPlan(name, found, old=True)
        with defer_signals():
            return PendingPlan(name, found, reading=pool.submit(self._read_now, found), old=True)

    def _read_now(self, saved: PlanInput) -> PlanInput:
        where = locate(saved.location).path_or_uri
        now = load_plan_input(where, self._storage, self._spark, time.time())
        return with_saved_names(now, saved)

    def plan(self, pending: PendingPlan) -> PolicyCheckedPlan:
        """Plan for one table, and save the plan if it has steps.

        Raises:
            TableError: if the table cannot be read.
            UsageError: if the plan cannot be saved.
        """
        found, checked = pending.found, pending.checked
        if isinstance(found, TableError):
            raise found
        if checked is None:
            caches = pending.old or found.fingerprint.metadata is None
            if pending.old:
                reading = pending.reading
                found = self._read_now(found) if reading is None else wait_for(reading)
            checked = self._plan(found, caches=caches)
        self._users.observe(checked, found)
        if self._save is not None and checked.plan.steps:
            self._save(checked.plan)
        return checked

    def _plan(self, found: PlanInput, *, caches: bool = True) -> PolicyCheckedPlan:
        # Saved tables are many, and fall into few groups.
        if caches and self._cache_saved:
            return self._caching(found)
        return self._check(self._add_clients(found))

    def _add_clients(self, found: PlanInput) -> PlanInput:
        return self._users.on(found).executed_by(self._engine, self._spark.conf)

    def _check(self, ready: PlanInput) -> PolicyCheckedPlan:
        """Plan for one table, and check the result."""
        if self._prepare is not None:
            ready = self._prepare(ready)
        return self._users.ruled(self._planner(ready), ready)
