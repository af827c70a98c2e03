"""The inventory of a command's options."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Option, Panel
from deltaproto.errors import UsageError
from deltaproto.fleet.inventory_reader import InventoryReader, open_inventory_reader
from deltaproto.inspection import age

if TYPE_CHECKING:
    from deltaproto.fleet.seen.seen_findings import RecentUses

_MAX_DAYS = 36_500


class EngineChoice(StrEnum):
    """What reads tables or queries an inventory."""

    LOCAL = "local"
    SPARK = "spark"


INVENTORY = Argument(
    "inventory",
    "INVENTORY",
    "Folder or URI of an inventory, from `scan --inventory`.",
    setting="inventory",
)

ENGINE = Option(
    ("--engine",),
    "Run on this machine (local) or on the executors of a Spark session (spark).",
    EngineChoice,
    EngineChoice.LOCAL,
    panel=Panel.SPARK,
)

SCAN = Option(
    ("--scan",),
    "Use this scan, or the last one before a time. Default: the newest scan of each root.",
    metavar="SCAN|TIME",
    panel=Panel.INPUT,
)


MAX_AGE = Option(
    ("--max-age",),
    "Warn if a scan or saved inspection is at least this many days old. Default: "
    f"{age.DEFAULT_MAX_AGE_DAYS}.",
    int,
    metavar="DAYS",
    panel=Panel.INPUT,
)


SEEN = Option(
    ("--seen",),
    "Compare the declared clients with those that discover counted in this inventory, and show "
    "which are not declared and which are not seen.",
    metavar="INVENTORY",
    panel=Panel.CLIENTS,
)
SEEN_DAYS = Option(
    ("--seen-days",),
    "Use the last N days of --seen. Default: 90.",
    int,
    metavar="N",
    panel=Panel.CLIENTS,
)


def read_seen(values: Mapping[str, Any]) -> tuple[RecentUses, str | None]:
    """Read the clients of `--seen`. Return a notice as well if they were counted long ago.

    Raises:
        UsageError: when there is no inventory, or `discover` never counted in it.
        TableError: corrupt-log, when the inventory is damaged.
    """
    from deltaproto.fleet.seen.seen_findings import DEFAULT_DAYS, load_recent_uses

    days = values["seen_days"]
    options.require_range(days, "--seen-days", _MAX_DAYS)
    storage = options.storage_options(values)
    max_age = parse_max_age(values)
    return load_recent_uses(values["seen"], storage, days or DEFAULT_DAYS, max_age)


def parse_max_age(values: Mapping[str, Any]) -> int:
    """Return the age in days from which saved data counts as old.

    Raises:
        UsageError: for a negative number, or more than a hundred years.
    """
    days: int | None = values["max_age"]
    if days is None:
        return age.DEFAULT_MAX_AGE_DAYS
    if not 0 <= days <= _MAX_DAYS:
        raise UsageError(f"--max-age {days} is out of range", f"give 0 to {_MAX_DAYS} days")
    return days


def open_inventory(name: str, values: Mapping[str, Any]) -> InventoryReader:
    """Open the inventory at `name` with the engine that the options select.

    Raises:
        UsageError: when `name` is not an inventory.
        EngineError: when Spark does not start.
    """
    storage = options.storage_options(values)
    with_spark = values["engine"] is EngineChoice.SPARK
    return open_inventory_reader(
        name, storage, options.spark_settings(values) if with_spark else None
    )
