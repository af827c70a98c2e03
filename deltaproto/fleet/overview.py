"""The data of a fleet report: tables, verdicts, and earlier scans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from typing import Protocol as Interface

from deltaproto.caches import IdentityKey
from deltaproto.clients.model import Access, Verdict
from deltaproto.fleet.drift.diff import Difference
from deltaproto.fleet.inventory_queries import InventoryQueries
from deltaproto.fleet.last_writers import LastWriters
from deltaproto.fleet.newest_state import NewestState, newest_of_each_root
from deltaproto.fleet.scan_history import PastScan, ScannedPlace, ScanPair, sql_literal
from deltaproto.fleet.schemas import Inventory
from deltaproto.fleet.seen.uses import SeenUses
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import Finding
from deltaproto.policy.table_check import TableCheck

_COLUMNS = (
    *("version", "min_reader_version", "min_writer_version", "features"),
    *("isolation_level", "last_commit_at", "last_operation", "last_engine"),
)
_SCANS = 30
"""number of earlier scans included"""


class ClientAccessVerdict(NamedTuple):
    """What one client can do with one table."""

    client: str
    """the client with version and path"""
    access: Access
    verdict: Verdict
    because: tuple[str, ...]


class TableRow(NamedTuple):
    """One table."""

    table: str
    location: str
    version: int
    protocol: tuple[int, int]
    """reader and writer version"""
    features: tuple[tuple[str, bool | None, bool | None], ...]
    """name, whether enabled, whether present"""
    isolation: str | None
    """declared isolation level"""
    last_commit: datetime | None
    last_operation: str | None
    last_engine: str | None
    findings: tuple[Finding, ...]
    verdicts: tuple[ClientAccessVerdict, ...]
    complete: bool
    other_names: tuple[str, ...] = ()
    """further names of the location, in catalogs and through links"""


class UnreadableRow(NamedTuple):
    """A table that could not be read."""

    table: str
    location: str
    code: str
    message: str
    findings: tuple[Finding, ...] = ()


class ScanFigures(NamedTuple):
    """Counts for the fleet after one scan."""

    scan: PastScan
    protocols: Mapping[tuple[int, int], int]
    """tables by reader and writer version"""
    features: Mapping[str, int]
    """tables that support the feature"""


class Overview(NamedTuple):
    """All data of a report."""

    scan: PastScan
    """the newest scan"""
    sources: Sequence[PastScan]
    """the scans that tables come from, newest first"""
    tables: Sequence[TableRow]
    unread: Sequence[UnreadableRow]
    past: Sequence[ScanFigures]
    """the fleet after each scan up to this one, oldest first"""
    pairs: Sequence[ScanPair]
    """each source, with the last scan of the same extent before it"""
    changes: Sequence[Difference]
    """changes within each pair, for the tables that come from the later scan"""
    of_policy: tuple[Finding, ...] = ()
    """findings on the policy itself"""
    waived: int = 0
    """findings that the policy waives"""
    off: int = 0
    """findings of rules that the policy turns off"""
    last_writers: LastWriters | None = None
    """without a policy: the clients that are evaluated"""
    clients_seen: SeenUses | None = None
    """what runs of `discover` counted; None: there were none"""
    counted_at: datetime | None = None
    """when the newest of these runs began"""


class CheckedRows(Interface):
    """Reads every table of a scan with its check; the rows also have the columns `more`."""

    def __call__(
        self, scan: PastScan, checker: Checker, more: Iterable[str], /
    ) -> Iterable[tuple[Mapping[str, Any], TableCheck]]:
        """Yield the rows, in any order; those that the scan could not read have an error."""
        ...


def build_overview(
    queries: InventoryQueries,
    state: NewestState,
    checker: Checker,
    drift: Callable[[ScanPair, None], Iterable[Difference]],
    checked_rows: CheckedRows,
) -> Overview:
    """Read the newest state of all tables, and the scans before the newest one.

    Raises:
        TableError: when the inventory cannot be read.
        TableError: corrupt-log, when a compared scan lacks rows.
    """
    scan, known = state.scans[0], queries.scans()
    pairs = [
        pair for part in state.contributing if (pair := _previous_pair(known, part)) is not None
    ]
    changes = []
    queries.require_whole(*(pair.before for pair in pairs))
    for pair in pairs:
        changes += [
            change for change in drift(pair, None) if state.is_newest(pair.now, change.location)
        ]
    found = _RowCollector(checker)
    for part in state.contributing:
        for row, checked in checked_rows(part, checker, _COLUMNS):
            if state.is_newest(part, row["location"]):
                found.add(row, checked)
    of_policy = checker.check_policy()
    return Overview(
        scan,
        state.contributing,
        sorted(found.tables, key=lambda table: table.location),
        sorted(found.unread, key=lambda table: table.location),
        _past_figures(queries, known[: known.index(scan) + 1], state),
        pairs,
        sorted(changes, key=lambda change: change.location),
        of_policy.findings if of_policy else (),
        found.waived + (len(of_policy.suppressed) if of_policy else 0),
        found.off + (of_policy.silenced if of_policy else 0),
    )


def _previous_pair(scans: Sequence[PastScan], now: PastScan) -> ScanPair | None:
    before = [each for each in scans[: scans.index(now)] if each.extent == now.extent]
    return ScanPair(before[-1], now) if before else None


class _RowCollector:
    """Collects the tables of a fleet, and those that could not be read."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.tables: list[TableRow] = []
        self.unread: list[UnreadableRow] = []
        self.waived = self.off = 0
        # Tables with equal requirements share their verdicts.
        self._known: dict[
            IdentityKey[tuple[DeclaredVerdict, ...]], tuple[ClientAccessVerdict, ...]
        ] = {}

    def add(self, row: Mapping[str, Any], checked: TableCheck) -> None:
        """Add a row of the inventory and its check."""
        self._checker.observe(checked)
        self.waived += len(checked.suppressed)
        self.off += checked.silenced
        if checked.error is not None:
            problem = str(checked.error.code), checked.error.message
            unread = UnreadableRow(row["table"], row["location"], *problem, checked.findings)
            self.unread.append(unread)
            return
        key = IdentityKey(checked.verdicts)
        verdicts = self._known.get(key)
        if verdicts is None:
            verdicts = self._known[key] = _access_verdicts(checked.verdicts)
        self.tables.append(_build_row(row, checked, verdicts))


def _access_verdicts(verdicts: Iterable[DeclaredVerdict]) -> tuple[ClientAccessVerdict, ...]:
    return tuple(
        ClientAccessVerdict(
            judged.verdict.named,
            judged.verdict.access,
            judged.verdict.verdict,
            judged.verdict.because,
        )
        for judged in verdicts
    )


def _build_row(
    row: Mapping[str, Any], checked: TableCheck, verdicts: tuple[ClientAccessVerdict, ...]
) -> TableRow:
    return TableRow(
        row["table"],
        row["location"],
        row["version"],
        (row["min_reader_version"], row["min_writer_version"]),
        tuple(
            sorted((each["feature"], each["enabled"], each["present"]) for each in row["features"])
            if row["features"]
            else ()
        ),
        row["isolation_level"],
        row["last_commit_at"] and row["last_commit_at"].astimezone(UTC),
        row["last_operation"],
        row["last_engine"],
        checked.findings,
        verdicts,
        checked.complete,
        checked.other_names,
    )


def _past_figures(
    queries: InventoryQueries, scans: Sequence[PastScan], state: NewestState
) -> list[ScanFigures]:
    """Return the fleet after each of the last scans, combined by root like the newest state."""
    if len(state.scans) == 1:
        scans = [each for each in scans if each.extent == state.scans[0].extent]
    ends = range(max(0, len(scans) - _SCANS), len(scans))
    parts = [newest_of_each_root(scans[: end + 1]) for end in ends]
    if len(state.scans) == 1:
        parts = [each[:1] for each in parts]
    alone = [each[0] for each in parts if len(each) == 1]
    protocols = _count_versions(queries, alone)
    rows = _ProtocolRows(queries)
    found = [
        ScanFigures(
            each[0],
            protocols.get(each[0].scan_id, {}) if len(each) == 1 else rows.count(each),
            {},
        )
        for each in parts
    ]
    # Only the first one is compared with the newest.
    first = _count_features(queries, parts[0]) if len(parts[0]) == 1 else rows.features(parts[0])
    return [found[0]._replace(features=first), *found[1:]]


def _count_versions(
    queries: InventoryQueries, scans: Sequence[PastScan]
) -> dict[str, Counter[tuple[int, int]]]:
    found: dict[str, Counter[tuple[int, int]]] = {}
    if not scans:
        return found
    wanted = ", ".join(sql_literal(scan.scan_id) for scan in scans)
    query = (
        "SELECT scan_id, min_reader_version AS reader, min_writer_version AS writer, "  # noqa: S608
        f"count(*) AS tables FROM {queries.name(Inventory.TABLES)} WHERE scan_id IN ({wanted}) "
        "GROUP BY scan_id, min_reader_version, min_writer_version"
    )
    for row in queries.rows(query, (Inventory.TABLES,)):
        versions = (row["reader"], row["writer"])
        found.setdefault(row["scan_id"], Counter())[versions] = row["tables"]
    return found


def _count_features(queries: InventoryQueries, scans: Sequence[PastScan]) -> Counter[str]:
    query = (
        f"SELECT feature, count(*) AS tables FROM {queries.name(Inventory.FEATURES)} "  # noqa: S608
        f"WHERE scan_id = {sql_literal(scans[0].scan_id)} GROUP BY feature"
    )
    return Counter(
        {row["feature"]: row["tables"] for row in queries.rows(query, (Inventory.FEATURES,))}
    )


class _ProtocolRows:
    """Counts over the states of several scans; each scan is read once."""

    def __init__(self, queries: InventoryQueries) -> None:
        self._queries = queries
        self._places: dict[str, list[ScannedPlace]] = {}
        self._protocols: dict[str, list[tuple[str, tuple[int, int]]]] = {}

    def count(self, scans: Sequence[PastScan]) -> Counter[tuple[int, int]]:
        """Return the tables by protocol in the newest state of the scans."""
        state = NewestState(scans, self._of)
        return Counter(
            protocol
            for part in state.contributing
            for location, protocol in self._read(part)
            if state.is_newest(part, location)
        )

    def features(self, scans: Sequence[PastScan]) -> Counter[str]:
        """Return the tables by supported feature in the newest state of the scans."""
        state, name = NewestState(scans, self._of), self._queries.name(Inventory.FEATURES)
        return Counter(
            row["feature"]
            for part in state.contributing
            for row in self._queries.rows(
                f"SELECT location, feature FROM {name} "  # noqa: S608
                f"WHERE scan_id = {sql_literal(part.scan_id)}",
                (Inventory.FEATURES,),
            )
            if state.is_newest(part, row["location"])
        )

    def _of(self, scan: PastScan) -> list[ScannedPlace]:
        if scan.scan_id not in self._places:
            self._places[scan.scan_id] = list(self._queries.places(scan))
        return self._places[scan.scan_id]

    def _read(self, scan: PastScan) -> list[tuple[str, tuple[int, int]]]:
        if scan.scan_id not in self._protocols:
            query = (
                "SELECT location, min_reader_version AS reader, "  # noqa: S608
                "min_writer_version AS writer "
                f"FROM {self._queries.name(Inventory.TABLES)} "
                f"WHERE scan_id = {sql_literal(scan.scan_id)}"
            )
            self._protocols[scan.scan_id] = [
                (row["location"], (row["reader"], row["writer"]))
                for row in self._queries.rows(query, (Inventory.TABLES,))
            ]
        return self._protocols[scan.scan_id]
