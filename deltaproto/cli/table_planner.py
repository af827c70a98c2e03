"""Plans tables one after the other, and reads those again whose saved state is not enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.cli import options
from deltaproto.errors import TableError
from deltaproto.interrupts import work_ahead
from deltaproto.location import is_remote, locate
from deltaproto.plan_inputs.cache import CachingPlanner
from deltaproto.plan_inputs.client_scope import ClientScope, PolicyCheckedPlan
from deltaproto.plan_inputs.from_log import load_plan_input, with_saved_names
from deltaproto.plan_inputs.planners import Planner
from deltaproto.planning.engine import Engine, parse_engine
from deltaproto.planning.plan import Plan
from deltaproto.planning.request import PlanInput
from deltaproto.tables.engine_errors import contain_table_errors


class PendingPlan(NamedTuple):
    """A table to plan."""

    name: str
    found: PlanInput | TableError
    checked: PolicyCheckedPlan | None = None
    """its plan, if that is known"""
    old: bool = False
    """whether `found` is saved, and the plan must be for the table as it is now"""


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

    def begin(
        self, tables: Iterable[tuple[str, PlanInput | TableError]]
    ) -> Iterator[tuple[PendingPlan, Callable[[], PlanInput]]]:
        """Yield each table for `plan`; several remote tables are read at the same time."""
        pending = (self._begin(name, found) for name, found in tables)
        return work_ahead(self._read_now, pending, _waits)

    def _begin(self, name: str, found: PlanInput | TableError) -> PendingPlan:
        if isinstance(found, TableError) or found.fingerprint.metadata is not None:
            return PendingPlan(name, found)
        # Only rows of an inventory have a group.
        if self._fresh and found.row_group is not None:
            return PendingPlan(name, found, old=True)
        try:
            with contain_table_errors():
                checked = self._plan(found)
        except TableError as error:
            return PendingPlan(name, error)
        # Saved plans can be applied, so plan for the table as it is now.
        old = self._save is not None and bool(checked.plan.steps)
        return PendingPlan(name, found, None if old else checked, old)

    def _read_now(self, pending: PendingPlan) -> PlanInput:
        saved = pending.found
        if isinstance(saved, TableError):
            raise saved
        if not pending.old:
            return saved
        where = saved.address or locate(saved.location).path_or_uri
        now = load_plan_input(where, self._storage, self._spark, time.time())
        return with_saved_names(now, saved)

    def plan(self, pending: PendingPlan, read: Callable[[], PlanInput]) -> PolicyCheckedPlan:
        """Plan for one table, and save the plan if it has steps.

        Args:
            pending: the table, from `begin`.
            read: returns it as it has to be planned, from `begin`.

        Raises:
            TableError: if the table cannot be read.
            UsageError: if the plan cannot be saved.
        """
        found, checked = read(), pending.checked
        if checked is None:
            saved = pending.old or found.fingerprint.metadata is None
            checked = self._plan(found, caches=saved)
        self._users.observe(checked, found)
        if self._save is not None and checked.plan.steps:
            self._save(checked.plan)
        return checked

    def _plan(self, found: PlanInput, *, caches: bool = True) -> PolicyCheckedPlan:
        # Inventories have many tables that fall into few groups.
        if caches and self._cache_saved:
            return self._caching(found)
        return self._check(self._add_clients(found))

    def _add_clients(self, found: PlanInput) -> PlanInput:
        return self._users.with_clients(found).executed_by(self._engine, self._spark.conf)

    def _check(self, ready: PlanInput) -> PolicyCheckedPlan:
        """Plan for one table, and check the result."""
        if self._prepare is not None:
            ready = self._prepare(ready)
        return self._users.check_plan(self._planner(ready), ready)


def _waits(pending: PendingPlan) -> bool:
    saved = pending.found
    return (
        pending.old
        and not isinstance(saved, TableError)
        and is_remote(saved.address or saved.location)
    )
