"""Reads tables from a scan in the inventory for the planner.

Most tables of a fleet fall into a few groups of equal rows. The records of a group are built once.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping
from typing import Any

from deltaproto.caches import BoundedCache
from deltaproto.errors import TableError
from deltaproto.fleet.catalog_places import unity_addresses
from deltaproto.fleet.inventory_queries import InventoryQueries
from deltaproto.fleet.read_inventory import (
    error_from_row,
    facts_from_row,
    read_error_rows,
    read_table_rows,
)
from deltaproto.fleet.scan_history import PastScan
from deltaproto.location import locate
from deltaproto.plan_inputs.from_snapshot import input_for_equal_row, input_from_row
from deltaproto.planning.request import PlanInput
from deltaproto.policy.hazards import location_hazards
from deltaproto.tables.engine_errors import contain_table_errors

_CACHE_SIZE = 4096
_OWN = ("table", "location", "id", "version")
"""columns of a row that are of its table alone"""
_WITHOUT_REFERENCES = 2
"""the format of marshal in which equal values have equal bytes"""


def read_plan_inputs(
    queries: InventoryQueries, scan: PastScan, where: str | None, notice: str | None = None
) -> Iterator[tuple[str, str, PlanInput | TableError]]:
    """Yield name, location and planner input of each table; without `where`, also unreadable ones.

    Args:
        notice: a remark on the scan's age, added to each plan.

    Raises:
        UsageError: when `where` is invalid.
        TableError: when the inventory cannot be read.
    """
    groups = RowGroups(scan, notice)
    for row in read_table_rows(queries, scan, where):
        found: PlanInput | TableError
        try:
            with contain_table_errors():
                found = groups.input_of(row)
        except TableError as error:
            found = error
        yield row["table"], row["location"], found
    if not where:
        for row in read_error_rows(queries, scan):
            yield row["table"], row["location"], error_from_row(row)


class RowGroups:
    """Builds planner input from rows of one scan; equal rows share their records.

    Args:
        notice: a remark on the scan's age, added to each plan.
    """

    def __init__(self, scan: PastScan, notice: str | None = None) -> None:
        self._scan, self._notice = scan, notice
        self._address = unity_addresses(scan.roots)
        self._known = BoundedCache[tuple[object, ...], tuple[object, PlanInput]](_CACHE_SIZE)

    def input_of(self, row: Mapping[str, Any]) -> PlanInput:
        """Return the planner input of a row of `tables_query`, with `row_group` set.

        Raises:
            TableError: see `facts_from_row` and `input_from_row`.
        """
        key = _group_key(row)
        known = None if key is None else self._known.get(key)
        if known is None:
            facts = facts_from_row(row)
            scan = self._scan
            found = input_from_row(row, facts, scan.scan_id, scan.ended_at, self._notice)
            if key is None:
                return found._replace(address=self._address(found.name))
            group: object = object()
            self._known[key] = group, found
        else:
            group, first = known
            found = input_for_equal_row(row, first)
        # The only field of the table that depends on the version.
        group = group, found.table.to_checkpoint
        return found._replace(row_group=group, address=self._address(found.name))


def _group_key(row: Mapping[str, Any]) -> tuple[object, ...] | None:
    """Return what rows with the same records have in common; None if the row may be damaged."""
    version = row["version"]
    if not isinstance(version, int) or version < 0:
        return None
    content = [value for column, value in row.items() if column not in _OWN]
    try:
        return (
            marshal.dumps(content, _WITHOUT_REFERENCES),
            locate(row["table"]).by_name,
            *location_hazards(row["location"]),
        )
    except (TableError, TypeError, ValueError):
        return None
