"""Inventories of scans: their rows, checks, drift and reports."""

from __future__ import annotations

import html
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Self

from deltaproto.app.arguments import (
    NONE,
    connection_options,
    parse_choice,
    require_texts,
    require_type,
)
from deltaproto.app.checking import CheckResults, load_checks
from deltaproto.app.drifting import Drift
from deltaproto.app.forecasting import Forecast
from deltaproto.app.result import Rows
from deltaproto.counts import counted
from deltaproto.errors import (
    ExitCode,
    ResultError,
    UsageError,
    no_tables_error,
)
from deltaproto.fleet.build_report import build_report, load_report_policy
from deltaproto.fleet.inventory_reader import (
    InventoryReader,
    build_scan_notices,
    check_state,
    describe_scan,
    find_uncompared_scans,
    open_inventory_reader,
    require_current,
    select_newest_state,
)
from deltaproto.fleet.newest_state import NewestState
from deltaproto.fleet.scan_history import MAY_BE_BEHIND, PastScan, ScanPair, select_pair
from deltaproto.fleet.schemas import Inventory as _Tables
from deltaproto.fleet.schemas import is_inventory, rows_schema
from deltaproto.policy.table_check import TableCheck, unreadable_input
from deltaproto.render.overview.write import ReportFormat

_LOG = logging.getLogger("deltaproto.inventory")
_MOST_TABLES = 50_000


class Report(str):
    """A report as text. Notebooks show a report in HTML in a frame."""

    errors: int
    """the number of tables and places that the scan could not read"""
    incomplete: int
    """the number of tables that may have newer commits, which only their catalog knows"""

    def __repr__(self) -> str:
        state = "ok" if self.ok else "incomplete"
        return f"<Report {state}, {counted(len(self), 'character')}>"

    def _repr_html_(self) -> str:
        if self.lstrip().startswith("<!"):
            page = html.escape(str(self))
            return f'<iframe srcdoc="{page}" width="100%" height="600"></iframe>'
        return f"<pre>{html.escape(str(self))}</pre>"

    @property
    def ok(self) -> bool:
        """True if the report covers every table completely: the command would exit with 0."""
        return not (self.errors or self.incomplete)

    def raise_for_status(self) -> Self:
        """Return the report itself if it is ok.

        Raises:
            ResultError: when the report is incomplete.
        """
        if self.ok:
            return self
        unread = counted(self.errors, "table or place", "tables or places")
        raise ResultError(
            self,
            ExitCode.UNREADABLE,
            f"the report is incomplete: {unread} could not be read, and "
            f"{counted(self.incomplete, 'table')} {MAY_BE_BEHIND}",
            "see `Inventory.errors()`, and scan again",
        )


class Inventory:
    """The results of scans: a folder with five Delta tables.

    Queries are about the newest scan of each root, unless `scan` names one by its id, or by a time
    by which it ended.

    Args:
        location: a folder or a URI.
        engine: local, or spark for very large inventories.
        storage_options: as in deltalake.
        spark_remote: a Spark Connect URL.
        spark_conf: settings of a Spark session that is started here.

    Raises:
        UsageError: when there is no inventory.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        engine: str = "local",
        storage_options: Mapping[str, str] = NONE,
        spark_remote: str | None = None,
        spark_conf: Mapping[str, str] = NONE,
    ) -> None:
        self.location = os.fspath(location)
        """the folder or URI, as it was named"""
        by = connection_options(None, storage_options, spark_remote, spark_conf)
        self._storage = by.storage_options
        if not is_inventory(self.location, self._storage):
            raise UsageError(
                f"{self.location} is not an inventory",
                "create one: deltaproto.scan(…, inventory=…)",
            )
        spark = by.spark.reaching(self.location) if with_spark(engine) else None
        # Opened by each method: a reader stays at the versions that it has read.
        self._open = partial(open_inventory_reader, self.location, self._storage, spark)
        self._open()

    def scans(self) -> list[PastScan]:
        """Return all scans, oldest first."""
        return self._open().scans()

    def tables(self, where: str | None = None, *, scan: str | None = None) -> Rows:
        """Return one row for each table that was read.

        Args:
            where: a condition on its columns, in SQL: `min_reader_version = 3`.

        Raises:
            UsageError: for an invalid condition, or an unknown scan.
        """
        return self._rows(_Tables.TABLES, where, scan)

    def features(self, where: str | None = None, *, scan: str | None = None) -> Rows:
        """Return one row for each feature of each table; see `tables`."""
        return self._rows(_Tables.FEATURES, where, scan)

    def findings(self, where: str | None = None, *, scan: str | None = None) -> Rows:
        """Return one row for each finding on each table; see `tables`."""
        return self._rows(_Tables.FINDINGS, where, scan)

    def errors(self, where: str | None = None, *, scan: str | None = None) -> Rows:
        """Return one row for each table or place that could not be read; see `tables`."""
        return self._rows(_Tables.ERRORS, where, scan)

    def check(
        self,
        policy: str | os.PathLike[str] | None = None,
        *,
        clients: Sequence[str] = (),
        access: Sequence[str] = (),
        after: str | None = None,
        seen: str | os.PathLike[str] | None = None,
        seen_days: int = 90,
        client_files: Sequence[str] = (),
        scan: str | None = None,
    ) -> CheckResults:
        """Check every table of the inventory; the arguments are those of `deltaproto.check`.

        Tables that could not be read have `error`, and so has a scan that was stopped or lost rows.

        Raises:
            UsageError: for an invalid policy, an unknown client, or an unknown scan, and if
                `discover` never counted in `seen`.
        """
        compared = None if seen is None else (seen, seen_days, self._storage)
        loaded = load_checks(policy, clients, access, client_files, after, compared)
        scans: list[str] = []

        def checks() -> Iterator[TableCheck]:
            reader = self._open()
            state = self._state(reader, scan)
            now = datetime.now(UTC)
            scans.extend(
                f"{self.location}: {describe_scan(each, now)}" for each in state.contributing
            )
            found = False
            for checked in check_state(
                self.location, reader, state, scan, self._storage, loaded.checker
            ):
                found = True
                yield checked
            if not found:
                yield unreadable_input(self.location, no_tables_error(self.location))

        results = loaded.collect(checks())
        results.notes += tuple(scans)
        return results

    def drift(
        self, since: str | None = None, until: str | None = None, *, commits: bool = True
    ) -> Drift:
        """Compare two scans of the same roots.

        The first scan of its roots is compared with itself, and so is a scan that `since` and
        `until` both select: nothing changed.

        Args:
            since: the earlier scan; None: the last one of the same roots before `until`.
            until: the later scan; None: the newest.
            commits: search the tables' logs for the commits that made the changes.

        Raises:
            UsageError: for an unknown scan.
            TableError: when rows of a scan are missing.
        """
        from deltaproto.fleet.drift.attribution import CommitAttributor
        from deltaproto.fleet.scan_history import find_scan, newest_scan

        for name, value in (("since", since), ("until", until)):
            require_type(value, str, name, "a scan id or a time as text: 2026-11-01T08:00Z")
        reader = self._open()
        scans = reader.scans()
        later = find_scan(scans, until) if until else newest_scan(scans)
        pair = select_pair(scans, since, until) or ScanPair(later, later)
        for each in pair:
            if not (each.tables or each.errors):
                raise no_tables_error(f"scan {each.scan_id}")
        reader.require_whole(*pair)
        left = find_uncompared_scans(reader, self.location, self._storage)
        attributor = CommitAttributor(self._storage, pair.now.roots) if commits else None
        changes = tuple(reader.drift(pair, attributor))
        return Drift(pair, changes, () if until else tuple(left))

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        format: str = "html",
        policy: str | os.PathLike[str] | None = None,
        client_files: Sequence[str] = (),
        scan: str | None = None,
        most: int = _MOST_TABLES,
    ) -> Report:
        """Return a report about the fleet as text, and also write it to `path`.

        Args:
            format: html, text, markdown, json, openmetrics or csv.
            policy: the clients and rules to evaluate; None: the clients that made the newest
                commits.
            most: list at most this many tables; totals cover all.

        Raises:
            UsageError: for an invalid policy, an unknown scan, or a file that cannot be written.
            TableError: when the inventory is empty, a scan was stopped, or rows are missing.
        """
        from deltaproto.fleet.seen.stored_uses import add_clients_seen
        from deltaproto.render.overview.write import render_report

        rules = None if policy is None else os.fspath(policy)
        chosen = parse_choice(ReportFormat, format, "format")
        loaded = load_report_policy(rules, allow_empty=False)
        files = require_texts(client_files, "client_files")
        reader, state = self._current(scan)
        found = build_report(loaded, files, reader, state)
        found = add_clients_seen(found, self.location, self._storage)
        if not (found.tables or found.unread):
            raise no_tables_error(self.location)
        text = Report(render_report(found, rules, chosen, most, datetime.now(UTC)))
        text.errors = len(found.unread)
        text.incomplete = sum(not row.complete for row in found.tables)
        if path is not None:
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            except OSError as error:
                raise UsageError(
                    f"cannot write {path}: {error.strerror}", "check the path"
                ) from None
        return text

    def forecast(
        self,
        policy: str | os.PathLike[str] | None = None,
        *,
        clients: Sequence[str] = (),
        client_files: Sequence[str] = (),
        scan: str | None = None,
    ) -> Forecast:
        """Forecast what Databricks may turn on automatically, and which clients that blocks.

        The clients are those of the policy, those named, and those that `discover` counted; without
        any, all known clients at their newest versions.

        Args:
            policy: a policy file.
            clients: further clients, as ID@VERSION.

        Raises:
            UsageError: for an invalid policy, an unknown client, or an unknown scan.
            TableError: when the inventory is empty, a scan was stopped, or rows are missing.
        """
        from deltaproto.fleet.forecast.forecaster import load_forecaster, run_forecast

        rules = load_report_policy(None if policy is None else os.fspath(policy), allow_empty=False)
        reader, state = self._current(scan)
        today = datetime.now(UTC).date()
        named = require_texts(clients, "clients")
        files = require_texts(client_files, "client_files")
        forecaster = load_forecaster(self.location, self._storage, rules, named, files, today)
        found = run_forecast(reader, state, forecaster)
        if not found.tables:
            raise no_tables_error(self.location)
        return Forecast(found)

    def forget(self, days: int) -> list[str]:
        """Delete the scans that ended more than `days` days ago; return their ids."""
        return self._open().forget(days)

    def _current(self, scan: str | None) -> tuple[InventoryReader, NewestState]:
        """Return the newest state, or the state of one scan; refuse a state with missing rows."""
        reader = self._open()
        state = self._state(reader, scan)
        require_current(self.location, reader, state, scan, self._storage)
        return reader, state

    def _state(self, reader: InventoryReader, scan: str | None) -> NewestState:
        state = select_newest_state(reader, scan)
        for notice in build_scan_notices(self.location, state, datetime.now(UTC)).texts:
            _LOG.warning("%s", notice)
        return state

    def _rows(self, table: _Tables, where: str | None, scan: str | None) -> Rows:
        import pyarrow as pa

        reader = self._open()
        state = self._state(reader, scan)
        found = []
        for each in state.contributing:
            for batch in reader.batches(table, each, where):
                if len(state.scans) > 1:
                    places = batch.column("location").to_pylist()
                    batch = batch.filter(
                        pa.array([state.is_newest(each, p) for p in places], pa.bool_())
                    )
                found.append(batch)
        return Rows(pa.Table.from_batches(found, rows_schema(table)))

    def __repr__(self) -> str:
        return f"Inventory({self.location!r})"


def with_spark(engine: str) -> bool:
    """Return True for the engine `spark`. Raises UsageError for an unknown one."""
    if engine not in ("local", "spark"):
        raise UsageError(f'engine: unknown "{engine}"', "one of local, spark")
    return engine == "spark"
