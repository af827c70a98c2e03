"""Inventories as they are queried: on this machine, or with Spark."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Protocol as Interface

from deltaproto.counts import counted
from deltaproto.errors import TableError
from deltaproto.inspection import age

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaproto.fleet.drift.attribution import CommitAttributor
    from deltaproto.fleet.drift.diff import Difference
    from deltaproto.fleet.evaluate import PolicyTally
    from deltaproto.fleet.inventory import InventoryTables
    from deltaproto.fleet.inventory_queries import InventoryQueries
    from deltaproto.fleet.newest_state import NewestState
    from deltaproto.fleet.overview import Overview
    from deltaproto.fleet.scan_history import PastScan, ScannedPlace, ScanPair
    from deltaproto.fleet.schemas import Inventory
    from deltaproto.fleet.spark_checks import SparkChecks
    from deltaproto.policy.context import TableFacts
    from deltaproto.policy.evaluate import Checker
    from deltaproto.policy.table_check import TableCheck
    from deltaproto.protocol.table_state import SparkSettings


class ScanLister(Interface):
    """An inventory that can list its scans."""

    def scans(self) -> list[PastScan]:
        """Return all scans, oldest first."""
        ...

    def places(self, scan: PastScan) -> Iterator[ScannedPlace]:
        """Yield the places of all tables and errors of a scan."""
        ...


class InventoryReader(ABC):
    """An inventory that can be queried, with one engine."""

    def __init__(self, queries: InventoryQueries) -> None:
        self.scans = queries.scans
        self.places = queries.places
        self.require_whole = queries.require_whole
        self._shared = queries

    def checked(
        self, scan: PastScan, checker: Checker, state: NewestState | None = None
    ) -> Iterator[TableCheck]:
        """Yield the check of every table of a scan, or of those that no newer scan replaces."""
        for row, check in self._rows(scan, checker):
            # An unreadable table has no location in its check.
            if state is None or state.is_newest(scan, row["location"]):
                yield check

    def overview(self, state: NewestState, checker: Checker) -> Overview:
        """Return the data of a report."""
        from deltaproto.fleet.overview import build_overview

        return build_overview(self._shared, state, checker, self.drift, self._rows)

    def facts(
        self, scan: PastScan, more: Iterable[str]
    ) -> Iterator[tuple[Mapping[str, Any], TableFacts | TableError]]:
        """Yield every table of a scan: its row, and what a check reads from it, or its error.

        Args:
            more: further columns of the rows.

        Raises:
            TableError: when the inventory cannot be read.
        """
        from deltaproto.fleet.read_inventory import read_facts

        return read_facts(self._shared, scan, more=more)

    def batches(
        self, table: Inventory, scan: PastScan, where: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a scan in one of the inventory's tables.

        Args:
            where: a condition on its columns, in the engine's SQL.

        Raises:
            UsageError: when `where` is invalid.
            TableError: when the inventory cannot be read.
        """
        import pyarrow as pa

        from deltaproto.fleet.inventory_queries import LocalInventoryQueries
        from deltaproto.fleet.read_inventory import rows_query
        from deltaproto.fleet.schemas import rows_schema

        schema = rows_schema(table)
        query = rows_query(self._shared, table, scan.scan_id, schema.names, where)
        if isinstance(self._shared, LocalInventoryQueries):
            for batch in self._shared.ask(query, (table,), where):
                yield pa.RecordBatch.from_arrays(
                    [batch.column(field.name).cast(field.type) for field in schema], schema=schema
                )
            return
        yield pa.RecordBatch.from_pylist([*self._shared.rows(query, (table,), where)], schema)

    @abstractmethod
    def drift(self, pair: ScanPair, attributor: CommitAttributor | None) -> Iterator[Difference]:
        """Yield every change between two scans, by location."""

    @abstractmethod
    def counted(self, scan: PastScan, checker: Checker) -> PolicyTally:
        """Count the policy's findings in a scan."""

    @abstractmethod
    def forget(self, days: int) -> list[str]:
        """Delete scans that ended more than `days` days ago; return their ids."""

    @abstractmethod
    def _rows(
        self, scan: PastScan, checker: Checker, more: Iterable[str] = ()
    ) -> Iterator[tuple[Mapping[str, Any], TableCheck]]:
        """Yield every table of a scan with its check, and with `more` of its columns."""


class _LocalInventory(InventoryReader):
    def __init__(self, inventory: InventoryTables) -> None:
        from deltaproto.fleet.inventory_queries import LocalInventoryQueries

        self._inventory, self._queries = inventory, LocalInventoryQueries(inventory)
        super().__init__(self._queries)

    def drift(self, pair: ScanPair, attributor: CommitAttributor | None) -> Iterator[Difference]:
        from deltaproto.fleet.drift.query import find_drift

        return find_drift(self._queries, pair, attributor)

    def counted(self, scan: PastScan, checker: Checker) -> PolicyTally:
        from deltaproto.fleet.evaluate import PolicyTally

        tally = PolicyTally()
        for each in checker.with_policy(self.checked(scan, checker)):
            tally.add(each)
        return tally

    def forget(self, days: int) -> list[str]:
        from deltaproto.fleet.old_scans import delete_old_scans

        return delete_old_scans(self._inventory, self.scans(), days)

    def _rows(
        self, scan: PastScan, checker: Checker, more: Iterable[str] = ()
    ) -> Iterator[tuple[Mapping[str, Any], TableCheck]]:
        from deltaproto.fleet.evaluate import check_rows

        return check_rows(self._queries, scan, checker, more)


class _SparkInventory(InventoryReader):
    def __init__(self, where: str, spark: SparkSettings) -> None:
        from deltaproto.fleet.spark_questions import SparkInventoryQueries
        from deltaproto.tables.session import spark_session

        self._session, self._where = spark_session(spark), where
        self._queries = SparkInventoryQueries(self._session, where)
        super().__init__(self._queries)

    def drift(self, pair: ScanPair, attributor: CommitAttributor | None) -> Iterator[Difference]:
        from deltaproto.fleet.spark_questions import read_differences

        return read_differences(self._queries.drift(pair, attributor, ordered=True))

    def counted(self, scan: PastScan, checker: Checker) -> PolicyTally:
        return self._checks(scan, checker).tally()

    def forget(self, days: int) -> list[str]:
        from deltaproto.fleet.old_scans import delete_old_scans_with_spark

        return delete_old_scans_with_spark(self._session, self._where, self.scans(), days)

    def _rows(
        self, scan: PastScan, checker: Checker, more: Iterable[str] = ()
    ) -> Iterator[tuple[Mapping[str, Any], TableCheck]]:
        return self._checks(scan, checker).checked(more)

    def _checks(self, scan: PastScan, checker: Checker) -> SparkChecks:
        from deltaproto.fleet.spark_checks import SparkChecks

        return SparkChecks(self._queries, scan, checker)


def open_inventory_reader(
    name: str, storage_options: Mapping[str, str], spark: SparkSettings | None
) -> InventoryReader:
    """Open the inventory at `name`; with Spark if its settings are passed.

    Raises:
        UsageError: when `name` is not an inventory.
        EngineError: when Spark does not start.
    """
    from deltaproto.fleet.inventory import open_inventory_tables

    inventory = open_inventory_tables(name, storage_options)
    if spark is not None:
        return _SparkInventory(inventory.location.path_or_uri, spark)
    return _LocalInventory(inventory)


def require_current(
    name: str,
    inventory: InventoryQueries | InventoryReader,
    state: NewestState,
    wanted: str | None,
    storage: Mapping[str, str],
) -> None:
    """Require a state that can be evaluated: nothing newer was stopped, and no row is missing.

    Args:
        wanted: the scan that an option names, which may be older; None: the newest state.

    Raises:
        TableError: see `require_finished` and `InventoryQueries.require_whole`.
    """
    if not wanted:
        require_finished(name, state, storage)
    inventory.require_whole(*state.contributing)


def check_state(
    name: str,
    inventory: InventoryReader,
    state: NewestState,
    wanted: str | None,
    storage: Mapping[str, str],
    checker: Checker,
) -> Iterator[TableCheck]:
    """Yield the check of every table of a state; an error for each scan that cannot be evaluated.

    Args:
        wanted: the scan that an option names, which may be older; None: the newest state.
    """
    from deltaproto.policy.table_check import unreadable_input

    if not wanted:
        try:
            require_finished(name, state, storage)
        except TableError as error:
            yield unreadable_input(name, error)
    for scan in state.contributing:
        try:
            inventory.require_whole(scan)
        except TableError as error:
            # Check nothing: it is unknown which rows are missing or duplicated.
            yield unreadable_input(name, error)
        else:
            yield from inventory.checked(scan, checker, state)


def select_newest_state(lister: ScanLister, wanted: str | None) -> NewestState:
    """Return the scan that an option names, or the newest scan of each root.

    Raises:
        UsageError: when the inventory has no such scan.
    """
    from deltaproto.fleet.newest_state import NewestState, newest_of_each_root
    from deltaproto.fleet.scan_history import find_fuller_scan, find_scan

    scans = lister.scans()
    selected = [find_scan(scans, wanted)] if wanted else newest_of_each_root(scans)
    fuller = {scan: found for scan in selected if (found := find_fuller_scan(scans, scan))}
    return NewestState(selected, lister.places, fuller)


class ScanNotices(NamedTuple):
    """Notices about the scans that are evaluated."""

    texts: list[str]
    doubtful: bool
    """whether an old scan or lost names count as a warning"""


def old_scan_warnings(
    name: str, scans: Iterable[PastScan], now: datetime, max_age: int = age.DEFAULT_MAX_AGE_DAYS
) -> list[str]:
    """Return a warning for each scan that is old or dated in the future."""
    warnings = ((scan, age.age_warning(scan.ended_at, now, max_age)) for scan in scans)
    return [f"{name}: scan {scan.scan_id} {each}; scan again" for scan, each in warnings if each]


def unsearched_notices(name: str, scans: Iterable[PastScan]) -> list[str]:
    """Return a notice for each kind of place that a scan did not search, or did not store."""
    notices = []
    for scan in scans:
        if scan.not_searched is None:
            notices.append(
                f"{name}: scan {scan.scan_id} is from a release that did not store which folders "
                "it did not search; scan again"
            )
        for places in scan.not_searched or ():
            notices.append(f"{name}: scan {scan.scan_id}: {places.note}")
    return notices


def lost_names_notices(name: str, state: NewestState) -> Iterator[str]:
    """Yield a notice for each scan whose catalog names later scans did not store."""
    for scan, lost in state.lost_names.items():
        read = counted(lost.tables, "table was read", "tables were read")
        yield (
            f"{name}: {read} again without catalog names such as {lost.first}, which scan "
            f"{scan.scan_id} found: patterns with these names do not match; scan "
            f"{', '.join(scan.roots)} again"
        )


def _missing_tables_notices(name: str, state: NewestState) -> Iterator[str]:
    """Yield a notice for each scan that could not search places where tables were found before."""
    for scan, before in state.fuller.items():
        if scan in state.contributing:
            unread = counted(scan.errors, "table or place", "tables or places")
            yield (
                f"{name}: scan {scan.scan_id} could not read {unread}, and has "
                f"{counted(scan.tables, 'table')}; scan {before.scan_id} had {before.tables:,}: "
                "tables below places that could not be searched are not counted"
            )


def build_scan_notices(
    name: str, state: NewestState, now: datetime, max_age: int = age.DEFAULT_MAX_AGE_DAYS
) -> ScanNotices:
    """Describe the age of the scans, what they did not search, and what each contributes."""
    texts = old_scan_warnings(name, state.contributing, now, max_age)
    texts += lost_names_notices(name, state)
    doubtful = bool(texts)
    texts += unsearched_notices(name, state.contributing)
    texts += _missing_tables_notices(name, state)
    if state.contributing[1:]:
        others = "; ".join(describe_scan(scan) for scan in state.contributing[1:])
        texts.append(
            f"{name}: tables outside the roots of the newest scan come from {others}; "
            "--scan evaluates one scan only"
        )
    return ScanNotices(texts, doubtful)


def require_finished(inventory: str, state: NewestState, storage: Mapping[str, str]) -> None:
    """Check that a finished scan has replaced every scan that was started and stopped.

    Raises:
        TableError: not-found, when one was; the newest state of its tables is then unknown.
    """
    from deltaproto.errors import ErrorCode
    from deltaproto.fleet.inventory import open_inventory_tables
    from deltaproto.fleet.staging import in_words, unfinished_scans

    tables = open_inventory_tables(inventory, storage)
    # A path that is not here was read through Spark Connect.
    here = tables.location.path is None or os.path.isdir(tables.location.path)
    folder = tables.staging_folder(here=here)
    for stopped in unfinished_scans(folder):
        if state.replaces(stopped):
            continue
        of = f" of {in_words(stopped.extent)}" if stopped.extent else ""
        by, resume = "", "run the same scan with --resume"
        if stopped.owner:
            by = f"; the user {stopped.owner} began it"
            resume = "wait if it still runs, or let that user resume it with --resume"
        raise TableError(
            ErrorCode.NOT_FOUND,
            f"{inventory}: the newest scan, {stopped.scan_id}{of}, is not finished{by}",
            f"{resume}, or choose a finished one: --scan {state.scans[0].scan_id}",
        )


def describe_scan(scan: PastScan, now: datetime | None = None) -> str:
    """Describe a scan in one line; with `now`, include its age."""
    ended = age.format_time(scan.ended_at)
    if now is not None:
        ended += f" ({age.format_age(now - scan.ended_at)})"
    return f"scan {scan.scan_id}, ended {ended}, of {', '.join(scan.roots)} {scan.limits}".rstrip()


def find_uncompared_scans(lister: ScanLister, name: str, storage: Mapping[str, str]) -> list[str]:
    """Describe newer or other scans that a comparison with the newest scan does not include."""
    state = select_newest_state(lister, None)
    notices = [
        f"{name}: not compared: {describe_scan(scan)}; choose it with --until {scan.scan_id}"
        for scan in state.contributing[1:]
    ]
    try:
        require_finished(name, state, storage)
    except TableError as error:
        notices.append(error.message)
    return notices
