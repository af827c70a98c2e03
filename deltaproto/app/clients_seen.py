"""The clients that `discover` counted in an inventory, for checks and plans."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from deltaproto.counts import counted
from deltaproto.errors import UsageError
from deltaproto.inspection.age import DEFAULT_MAX_AGE_DAYS, age_warning

if TYPE_CHECKING:
    from deltaproto.fleet.seen.seen_findings import RecentUses, SeenChecks
    from deltaproto.policy.table_check import TableCheck

SeenInventory = tuple[str | os.PathLike[str], int, Mapping[str, str]]
"""an inventory in which `discover` counted, the number of days to count, and storage options"""

_LOG = logging.getLogger("deltaproto.check")


def load_recent_uses(
    name: str | os.PathLike[str], days: int, storage_options: Mapping[str, str]
) -> tuple[RecentUses, str | None]:
    """Return the clients of the last days. Return a notice as well if they were counted long ago.

    Args:
        name: the inventory.
        days: counted back from the newest run of `discover`.

    Raises:
        UsageError: for an invalid number of days, when there is no inventory, or when `discover`
            never counted in it.
        TableError: corrupt-log, when the inventory is damaged.
    """
    from deltaproto.fleet.seen.seen_findings import MOST_DAYS, RecentUses
    from deltaproto.fleet.seen.stored_uses import require_stored

    if not 0 < days <= MOST_DAYS:
        raise UsageError(f"seen_days is {days}", f"pass a number from 1 to {MOST_DAYS}")
    stored = require_stored(os.fspath(name), storage_options)
    old = age_warning(stored.last_run, datetime.now(UTC), DEFAULT_MAX_AGE_DAYS)
    notice = None if old is None else f"{name}: the newest run of discover {old}; run it again"
    return RecentUses(stored, days), notice


def compare_and_log(
    name: str | os.PathLike[str], compared: SeenChecks, tables: Iterable[TableCheck]
) -> Iterator[TableCheck]:
    """Yield each check with the findings about clients seen; then log which tables had no count."""
    yield from compared.checked(tables)
    if missing := compared.uncounted:
        _LOG.warning(
            "%s: discover has not counted the commits of %s, such as %s; clients that are not "
            "declared may use them",
            name,
            counted(len(missing), "table"),
            missing[0],
        )
