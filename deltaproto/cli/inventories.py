"""Inventories that a command asks: on this machine, or with Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from typing import Protocol as Interface

from deltaproto.cli import options
from deltaproto.cli.declare import Option

if TYPE_CHECKING:
    from deltaproto.checking.check import Checked, Checker
    from deltaproto.fleet.drift.change import Change
    from deltaproto.fleet.drift.culprit import Detective
    from deltaproto.fleet.inventory import InventoryTables
    from deltaproto.fleet.past import Pair, PastScan
    from deltaproto.fleet.policy_tally import PolicyTally
    from deltaproto.fleet.spark_checks import SparkChecks


class EngineChoice(StrEnum):
    """What reads tables, or answers questions to an inventory."""

    LOCAL = "local"
    SPARK = "spark"


ENGINE = Option(
    ("--engine",),
    "local: this machine; spark: the executors of a Spark session.",
    EngineChoice,
    EngineChoice.LOCAL,
)

SCAN = Option(
    ("--scan",),
    "Of an inventory, this scan, or the last that had ended by a time; else the newest.",
    str,
    metavar="SCAN|TIME",
)


class Lists(Interface):
    """An inventory that lists its scans."""

    def scans(self) -> list[PastScan]:
        """All scans, oldest first."""
        ...


class Asked(Lists, Interface):
    """An inventory that answers."""

    def require_whole(self, scan: PastScan) -> None:
        """Check that no row of a scan is missing or stored twice."""
        ...

    def drift(self, pair: Pair, detective: Detective | None) -> Iterator[Change]:
        """Every change between two scans, by location."""
        ...

    def checked(self, scan: PastScan, checker: Checker) -> Iterator[Checked]:
        """The check of every table of a scan."""
        ...

    def counted(self, scan: PastScan, checker: Checker) -> PolicyTally:
        """What the policy says of a scan, in counts."""
        ...

    def forget(self, days: int) -> list[str]:
        """Forget scans that ended more than so many days ago; their ids."""
        ...


class _Here:
    def __init__(self, inventory: InventoryTables) -> None:
        from deltaproto.fleet.past import LocalQuestions

        self._inventory, self._questions = inventory, LocalQuestions(inventory)
        self.scans = self._questions.scans
        self.require_whole = self._questions.require_whole

    def drift(self, pair: Pair, detective: Detective | None) -> Iterator[Change]:
        from deltaproto.fleet.drift.local import drift

        return drift(self._questions, pair, detective)

    def checked(self, scan: PastScan, checker: Checker) -> Iterator[Checked]:
        from deltaproto.fleet.checks import checked

        return checked(self._questions, scan, checker)

    def counted(self, scan: PastScan, checker: Checker) -> PolicyTally:
        from deltaproto.fleet.policy_tally import PolicyTally

        tally = PolicyTally()
        for each in checker.with_policy(self.checked(scan, checker)):
            tally.add(each)
        return tally

    def forget(self, days: int) -> list[str]:
        from deltaproto.fleet.retention import forget

        return forget(self._inventory, self.scans(), days)


class _OnSpark:
    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        from deltaproto.fleet.spark_questions import SparkQuestions
        from deltaproto.tables.session import spark_session

        self._session, self._where = spark_session(options.spark_settings(values)), where
        self._questions = SparkQuestions(self._session, where)
        self.scans = self._questions.scans
        self.require_whole = self._questions.require_whole

    def drift(self, pair: Pair, detective: Detective | None) -> Iterator[Change]:
        from deltaproto.fleet.spark_questions import changes

        return changes(self._questions.drift(pair, detective, ordered=True))

    def checked(self, scan: PastScan, checker: Checker) -> Iterator[Checked]:
        return self._checks(scan, checker).checked()

    def counted(self, scan: PastScan, checker: Checker) -> PolicyTally:
        return self._checks(scan, checker).tally()

    def forget(self, days: int) -> list[str]:
        from deltaproto.fleet.retention import forget_with_spark

        return forget_with_spark(self._session, self._where, self.scans(), days)

    def _checks(self, scan: PastScan, checker: Checker) -> SparkChecks:
        from deltaproto.fleet.spark_checks import SparkChecks

        return SparkChecks(self._questions, scan, checker)


def opened_inventory(name: str, values: Mapping[str, Any]) -> Asked:
    """The inventory at `name`, asked with the engine that the options name.

    Raises:
        UsageError: when it is none.
        EngineError: when Spark does not start.
    """
    from deltaproto.fleet.inventory import inventory_at

    storage = options.pairs(values["storage_option"], "--storage-option")
    inventory = inventory_at(name, storage)
    if values["engine"] is EngineChoice.SPARK:
        return _OnSpark(inventory.location.path or inventory.location.uri, values)
    return _Here(inventory)


def chosen(asked: Lists, wanted: str | None) -> PastScan:
    """The scan that an option names, else the newest.

    Raises:
        UsageError: when there is none.
    """
    from deltaproto.fleet.past import newest, pick

    scans = asked.scans()
    return pick(scans, wanted) if wanted else newest(scans)


def scan_notices(asked: Lists, name: str, scan: PastScan, now: datetime) -> list[str]:
    """What to know of a scan: its age, and what newer or other scans saw beside it."""
    from deltaproto.checking.saved import OLD_DAYS

    found = []
    age = now - scan.ended_at
    if age.days >= OLD_DAYS:
        found.append(f"{name}: scan {scan.scan_id} is {age.days} days old; scan again")
    elif age.total_seconds() < -3600:
        found.append(f"{name}: scan {scan.scan_id} is dated in the future")
    scans = asked.scans()
    others = {root for each in scans for root in each.roots} - set(scan.roots)
    if others:
        found.append(
            f"{name}: only {', '.join(scan.roots)} is evaluated; other scans of this inventory "
            f"looked at {', '.join(sorted(others))}: choose one with --scan"
        )
    return found


def told(scan: PastScan) -> str:
    """A scan in a line."""
    ended = f"{scan.ended_at:%Y-%m-%d %H:%M} UTC"
    return f"scan {scan.scan_id}, ended {ended}, of {', '.join(scan.roots)}"
