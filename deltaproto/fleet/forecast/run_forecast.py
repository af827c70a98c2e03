"""The forecast of an inventory's newest state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from deltaproto.errors import TableError
from deltaproto.fleet.forecast.records import (
    Affected,
    Forecast,
    TableForecast,
)
from deltaproto.fleet.forecast.table_forecast import Forecaster
from deltaproto.fleet.inventory import open_inventory_tables
from deltaproto.fleet.inventory_queries import NewestState
from deltaproto.fleet.inventory_reader import InventoryReader
from deltaproto.fleet.seen.seen_findings import RecentUses, uses_for_plans
from deltaproto.fleet.seen.stored_uses import read_stored
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.policy.context import TableFacts
from deltaproto.policy.document import Policy
from deltaproto.protocol.automatic_upgrades import (
    WINDOW_DAYS,
)
from deltaproto.tables.engine_errors import contain_table_errors

_LAST_COMMIT = "last_commit_at"


def load_forecaster(
    inventory: str,
    storage_options: Mapping[str, str],
    policy: Policy | None,
    clients: Iterable[str],
    client_files: Iterable[str],
    today: date,
) -> Forecaster:
    """Return a forecaster for the policy's clients, `clients`, and those that `discover` counted.

    Args:
        clients: `ID@VERSION`; they count as clients of every table, with default access.

    Raises:
        UsageError: for an unknown client, or an unreadable inventory.
        TableError: corrupt-log, when the inventory's clients are damaged.
    """
    stored = read_stored(open_inventory_tables(inventory, storage_options))
    seen = None if stored is None else RecentUses(stored, max(WINDOW_DAYS.values()))
    scope = ClientScope(
        policy,
        client_files,
        clients,
        seen=None if seen is None else uses_for_plans(seen),
    )
    return Forecaster(scope, seen, today)


def run_forecast(
    inventory: InventoryReader, state: NewestState, forecaster: Forecaster
) -> Forecast:
    """Return the forecast of every table in the newest state.

    Raises:
        UsageError: when the inventory cannot be read.
    """
    tables = tuple(
        _forecast(row, facts, forecaster)
        for scan in state.contributing
        for row, facts in inventory.facts(scan, (_LAST_COMMIT,))
        if state.holds(scan, row["location"])
    )
    affected = any(each.affected is not Affected.NO for each in tables)
    new = forecaster.new_tables() if affected else ()
    return Forecast(tables, new, forecaster.declared)


def _forecast(
    row: Mapping[str, Any], facts: TableFacts | TableError, forecaster: Forecaster
) -> TableForecast:
    last = row.get(_LAST_COMMIT)
    try:
        if isinstance(facts, TableError):
            raise facts
        with contain_table_errors():
            return forecaster.forecast(facts, None if last is None else last.date())
    except TableError as error:
        return TableForecast(row["table"], row["location"], Affected.UNKNOWN, None, error=error)
