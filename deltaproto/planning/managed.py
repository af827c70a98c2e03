"""What Delta Spark refuses of catalog-managed tables that it takes from others.

Source: measured with Delta Spark 4.4.0, its in-memory coordinator in place of a catalog.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.planning.outcome import Refusal
from deltaproto.planning.table import Table

_DEPENDENCIES = frozenset({"delta.enableincommittimestamps"})


def upkeep(table: Table, what: str) -> Refusal | None:
    """The refusal of OPTIMIZE, REORG and VACUUM, which only the catalog runs."""
    if not table.managed:
        return None
    return Refusal(
        "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        f"a catalog manages the table, and Delta Spark refuses {what} there",
        "let the catalog maintain the table",
    )


def dependencies(table: Table, keys: Iterable[str]) -> Refusal | None:
    """The refusal of a change of properties that catalog-managed tables depend on."""
    changed = sorted(key for key in keys if key.lower() in _DEPENDENCIES)
    if not table.managed or not changed:
        return None
    return Refusal(
        "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES",
        f"a catalog manages the table, and {', '.join(changed)} can be neither set nor unset there",
        "leave the property as it is",
    )
