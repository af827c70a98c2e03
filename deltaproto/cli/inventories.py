"""Inventories as commands query them: on this machine, or with Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Protocol as Interface

from deltaproto.cli import options
from deltaproto.cli.declare import Option, Panel
from deltaproto.errors import UsageError
from deltaproto.inspection import age

if TYPE_CHECKING:
    from deltaproto.fleet.drift.attribution import CommitAttributor
    from deltaproto.fleet.drift.diff import Difference
    from deltaproto.fleet.evaluate import PolicyTally
    from deltaproto.fleet.inventory import InventoryTables
    from deltaproto.fleet.newest import NewestState
    from deltaproto.fleet.scan_history import Pair, PastScan
    from deltaproto.fleet.spark_checks import SparkChecks
    from deltaproto.policy.evaluate import Checked, Checker


_MOST_DAYS = 36_500


class EngineChoice(StrEnum):
    """What reads tables or queries an inventory."""

    LOCAL = "local"
    SPARK = "spark"


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
    str,
    metavar="SCAN|TIME",
    panel=Panel.INPUT,
)


MAX_AGE = Option(
    ("--max-age",),
    f"Warn if a scan or saved inspection is this many days old (default: {age.MAX_AGE}).",
    int,
    metavar="DAYS",
    panel=Panel.INPUT,
)


def max_age(values: Mapping[str, Any]) -> int:
    """Return the age in days from which saved data counts as old.

    Raises:
        UsageError: for a negative number, or more than a hundred years.
    """
    given: int | None = values["max_age"]
    if given is None:
        return age.MAX_AGE
    if not 0 <= given <= _MOST_DAYS:
        raise UsageError(f"--max-age {given} is out of range", f"give 0 to {_MOST_DAYS} days")
    return given


class Lists(Interface):
    """An inventory that can list its scans."""

    def scans(self) -> list[PastScan]:
        """Return all scans, oldest first."""
        ...

    def locations(self, scan: PastScan) -> Iterator[str]:
        """Yield the locations of all tables and errors of a scan."""
        ...


class Asked(Lists, Interface):
    """An inventory that can be queried."""

    def require_whole(self, scan: PastScan) -> None:
        """Check that no row of a scan is missing or stored twice."""
        ...

    def drift(self, pair: Pair, detective: CommitAttributor | None) -> Iterator[Difference]:
        """Yield every change between two scans, by location."""
        ...

    def checked(self, scan: PastScan, checker: Checker) -> Iterator[Checked]:
        """Yield the check of every table of a scan."""
        ...

    def counted(self, scan: PastScan, checker: Checker) -> PolicyTally:
        """Count the policy's findings in a scan."""
        ...

    def forget(self, days: int) -> list[str]:
        """Delete scans that ended more than `days` days ago; return their ids."""
        ...


class _Here:
    def __init__(self, inventory: InventoryTables) -> None:
        from deltaproto.fleet.scan_history import LocalQuestions

        self._inventory, self._questions = inventory, LocalQuestions(inventory)
        self.scans = self._questions.scans
        self.require_whole = self._questions.require_whole
        self.locations = self._questions.locations

    def drift(self, pair: Pair, detective: CommitAttributor | None) -> Iterator[Difference]:
        from deltaproto.fleet.drift.query import drift

        return drift(self._questions, pair, detective)

    def checked(self, scan: PastScan, checker: Checker) -> Iterator[Checked]:
        from deltaproto.fleet.evaluate import checked

        return checked(self._questions, scan, checker)

    def counted(self, scan: PastScan, checker: Checker) -> PolicyTally:
        from deltaproto.fleet.evaluate import PolicyTally

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
        self.locations = self._questions.locations

    def drift(self, pair: Pair, detective: CommitAttributor | None) -> Iterator[Difference]:
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
    """Open the inventory at `name` with the engine that the options select.

    Raises:
        UsageError: when `name` is not an inventory.
        EngineError: when Spark does not start.
    """
    from deltaproto.fleet.inventory import inventory_at

    storage = options.pairs(values["storage_option"], "--storage-option")
    inventory = inventory_at(name, storage)
    if values["engine"] is EngineChoice.SPARK:
        return _OnSpark(inventory.location.path or inventory.location.uri, values)
    return _Here(inventory)


def chosen(asked: Lists, wanted: str | None) -> PastScan:
    """Return the scan that an option names, or the newest.

    Raises:
        UsageError: when the inventory has no such scan.
    """
    from deltaproto.fleet.scan_history import newest, pick

    scans = asked.scans()
    return pick(scans, wanted) if wanted else newest(scans)


def newest_state(asked: Lists, wanted: str | None) -> NewestState:
    """Return the scan that an option names, or the newest scan of each root.

    Raises:
        UsageError: when the inventory has no such scan.
    """
    from deltaproto.fleet.newest import NewestState, newest_of_each_root

    scans = asked.scans()
    selected = [chosen(asked, wanted)] if wanted else newest_of_each_root(scans)
    return NewestState(selected, asked.locations)


class ScanNotices(NamedTuple):
    """Notices about the scans that are evaluated."""

    texts: list[str]
    old: bool
    """whether a scan is so old that it counts as a warning"""


def old_scans(
    name: str, scans: Iterable[PastScan], now: datetime, max_age: int = age.MAX_AGE
) -> list[str]:
    """Return a warning for each scan that is old or dated in the future."""
    said = ((scan, age.remark(scan.ended_at, now, max_age)) for scan in scans)
    return [f"{name}: scan {scan.scan_id} {each}; scan again" for scan, each in said if each]


def scan_notices(
    name: str, state: NewestState, now: datetime, max_age: int = age.MAX_AGE
) -> ScanNotices:
    """Describe the age of the scans and, if there are several, what each contributes."""
    texts = old_scans(name, state.contributing, now, max_age)
    old = bool(texts)
    if state.contributing[1:]:
        others = "; ".join(told(scan) for scan in state.contributing[1:])
        texts.append(
            f"{name}: tables outside the roots of the newest scan come from {others}; "
            "--scan evaluates one scan only"
        )
    return ScanNotices(texts, old)


def require_finished(inventory: str, state: NewestState, storage: Mapping[str, str]) -> None:
    """Check that a finished scan has replaced every scan that was started and stopped.

    Raises:
        TableError: not-found, when one was; the newest state of its tables is then unknown.
    """
    from deltaproto.errors import ErrorCode, TableError
    from deltaproto.fleet.inventory import inventory_at
    from deltaproto.fleet.staging import in_words, unfinished_scans

    folder = inventory_at(inventory, storage).staging_folder()
    for stopped in unfinished_scans(folder):
        if state.replaces(stopped):
            continue
        of = f" of {in_words(stopped.extent)}" if stopped.extent else ""
        raise TableError(
            ErrorCode.NOT_FOUND,
            f"{inventory}: the newest scan, {stopped.scan_id}{of}, is not finished",
            f"run the same scan with --resume, or choose a finished one: "
            f"--scan {state.scans[0].scan_id}",
        )


def told(scan: PastScan, now: datetime | None = None) -> str:
    """Describe a scan in one line; with `now`, include its age."""
    ended = age.at(scan.ended_at)
    if now is not None:
        ended += f" ({age.in_words(now - scan.ended_at)})"
    return f"scan {scan.scan_id}, ended {ended}, of {', '.join(scan.roots)}"
