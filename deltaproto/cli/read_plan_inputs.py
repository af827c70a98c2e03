"""Reads the tables that plan, plan-upgrade and plan-downgrade name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.inventories import parse_max_age
from deltaproto.cli.progress import count_steps, show_waiting, warn
from deltaproto.cli.signals import was_interrupted
from deltaproto.errors import TableError, no_tables_error
from deltaproto.fleet.inventory_reader import (
    build_scan_notices,
    old_scan_warnings,
    require_current,
    select_newest_state,
)
from deltaproto.fleet.schemas import is_inventory
from deltaproto.inspection.age import SavedAges
from deltaproto.inspection.saved import saved_entries
from deltaproto.interrupts import work_ahead
from deltaproto.location import LocationKind, is_remote, locate
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.plan_inputs.from_snapshot import input_from_saved
from deltaproto.planning.request import PlanInput
from deltaproto.tables.engine_errors import contain_table_errors

_Read = Callable[[], PlanInput | TableError]


def read_plan_inputs(
    names: Sequence[str], inventories: set[str], values: Mapping[str, Any]
) -> Iterator[tuple[str, PlanInput | TableError]]:
    """Yield the name of each table, with its planner input or the reason why it cannot be read.

    A table that several arguments contain, such as its path and an inventory, is planned once: as
    the first of them has it.

    Args:
        inventories: the names that are inventories; extended here.
    """
    show = options.shows_progress(values)
    with count_steps("tables planned", show=show) as seen:
        number = 0
        earlier: set[tuple[str, str]] = set()
        for name, read in _read_ahead(names, inventories, values):
            before, here = number, set()
            for table, found in _read_named_inputs(name, read, inventories, values, show):
                number += 1
                seen(number)
                if len(names) > 1:
                    here.add(key := _identity(table, found))
                    if key in earlier:
                        continue
                yield table, found
            earlier |= here
            if number == before and not values["allow_empty"]:
                yield name, no_tables_error(name)


def _identity(table: str, found: PlanInput | TableError) -> tuple[str, str]:
    """Return the location of a table, and its catalog name, which a policy may match, if any."""
    try:
        location = locate(table)
    except TableError:
        return table, ""
    where = location.uri if isinstance(found, TableError) else found.location
    return where, table if location.by_name else ""


def _read_ahead(
    names: Iterable[str], inventories: set[str], values: Mapping[str, Any]
) -> Iterator[tuple[str, _Read]]:
    """Yield each name with a function that reads the table of that name."""
    storage, spark = options.storage_options(values), options.spark_settings(values)

    def read(name: str) -> PlanInput | TableError:
        try:
            with contain_table_errors():
                return load_plan_input(name, storage, spark, time.time())
        except TableError as error:
            return error

    return work_ahead(read, names, lambda name: name not in inventories and is_remote(name))


def _read_named_inputs(
    name: str, read: _Read, inventories: set[str], values: Mapping[str, Any], show: bool
) -> Iterator[tuple[str, PlanInput | TableError]]:
    """Yield the tables that one argument names; add the argument to `inventories` if it is one."""
    if name not in inventories:
        read_first = is_remote(name)
        storage = options.storage_options(values)
        for table, found in _read_table_inputs(name, read, values, show):
            if read_first and isinstance(found, TableError) and is_inventory(name, storage, found):
                inventories.add(name)
                break
            yield table, found
        else:
            return
    try:
        yield from _read_inventory_inputs(name, values)
    except TableError as error:
        if was_interrupted():
            raise
        yield name, error


def _read_inventory_inputs(
    name: str, values: Mapping[str, Any]
) -> Iterator[tuple[str, PlanInput | TableError]]:
    from deltaproto.fleet import rows_for_plans
    from deltaproto.fleet.inventory import open_inventory_tables
    from deltaproto.fleet.inventory_queries import LocalInventoryQueries

    storage = options.storage_options(values)
    queries = LocalInventoryQueries(open_inventory_tables(name, storage))
    state = select_newest_state(queries, values["scan"])
    # Otherwise plan nothing: it is unknown which rows are missing or duplicated.
    require_current(name, queries, state, values["scan"], storage)
    now, days = datetime.now(UTC), parse_max_age(values)
    for notice in build_scan_notices(name, state, now, days).texts:
        warn(notice)
    for scan in state.contributing:
        old = next(iter(old_scan_warnings(name, (scan,), now, days)), None)
        for table, location, found in rows_for_plans.read_plan_inputs(
            queries, scan, values["where"], old
        ):
            if state.is_newest(scan, location):
                yield table, found


def _read_table_inputs(
    name: str, read: _Read, values: Mapping[str, Any], show: bool
) -> Iterator[tuple[str, PlanInput | TableError]]:
    if os.path.isfile(name):
        ages = SavedAges(name, datetime.now(UTC), parse_max_age(values))
        for entry in saved_entries(name, ages):
            for notice in ages.new():
                warn(notice)
            try:
                found: PlanInput | TableError = input_from_saved(entry, name, ages)
            except TableError as error:
                found = error
            yield str(entry.get("table", name)), found
        return
    try:
        by_name = locate(name).kind is LocationKind.NAME
    except TableError as error:
        yield name, error
        return
    with show_waiting(f"reading {name} with Spark", show=show and by_name):
        found = read()
    yield name, found
