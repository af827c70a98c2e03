"""One scan, from discovery to its row in the inventory."""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import compress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto import __version__
from deltaproto.errors import ErrorCode, UsageError
from deltaproto.fleet import local_engine
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.catalog_rows import (
    CatalogFinding,
    catalog_findings,
    finding_rows,
    note_other_names,
    with_all_names,
)
from deltaproto.fleet.discovered import (
    DiscoveredTable,
    FolderLinks,
    FolderSelection,
    PlaceKind,
    SkippedPlaces,
    UnreadablePlace,
)
from deltaproto.fleet.discovery import DiscoverySource, discover_tables
from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.rows_builder import flatten_lists, unnest_rows, unreadable_place_rows
from deltaproto.fleet.scan_history import Extent, extent_of
from deltaproto.fleet.scan_table import ReadSettings
from deltaproto.fleet.schemas import Inventory, inventory_schema
from deltaproto.fleet.staging import Staging, open_unfinished
from deltaproto.fleet.unchanged import LastScan
from deltaproto.identity import current_actor
from deltaproto.policy.document import normalize_location

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaproto.policy.finding import Finding


ScanProgress = Callable[[int, Callable[[], int | None]], None]
"""receives the number of tables read so far, and a function that returns how many are expected"""


class ScanRequest(NamedTuple):
    """The input of a scan."""

    source: DiscoverySource
    storage_options: Mapping[str, str]
    inventory: InventoryTables | None = None
    """None: count only, and save nothing"""
    parallel: int | None = None
    seconds: float = 60.0
    """time limit for one table"""
    resume: bool = False
    policy: str | None = None
    """path of the policy that is checked afterwards"""
    full: bool = False
    """also read tables whose log is unchanged since the last scan"""

    @property
    def extent(self) -> Extent:
        """The roots and patterns."""
        selection = self.source.selection
        return extent_of(self.source.root_names(), selection.include, selection.exclude)


class ScanResult(NamedTuple):
    """A finished scan."""

    scan_id: str
    seconds: float
    tally: Tally
    resumed: int
    """tables read by an earlier, unfinished run"""
    notes: tuple[str, ...] = ()
    """places that were not searched, and links out of the roots; one line each"""
    unchanged: int = 0
    """tables not read, since their log is unchanged since the last scan"""
    selection: FolderSelection = FolderSelection()
    """patterns of the folders that were searched"""
    not_searched: Mapping[PlaceKind, int] = MappingProxyType({})
    """how many places of each kind were not searched"""
    same_as: str | None = None
    """id of the last scan, if it found the same tables, and none has changed since"""


def run_scan(request: ScanRequest, progress: ScanProgress) -> ScanResult:
    """Read every table, and add the results to the inventory.

    Raises:
        UsageError: when a root, a list or the inventory cannot be used.
        StoreGoneError: when an object store no longer answers; the scan can be resumed.
    """
    began, clock = datetime.now(UTC), time.monotonic()
    with _open_staging(request, began) as staging:
        tally, done = Tally(), set[str]()
        if request.resume:
            # The store may have failed at that point.
            staging.drop_errors((ErrorCode.STORAGE, ErrorCode.TIMEOUT))
        for batch in staging.batches():
            tally.add(batch)
            done.update(map(normalize_location, batch.column("location").to_pylist()))
        resumed = len(done)
        last = LastScan(request.inventory, request.extent, full=request.full)
        progress(resumed, last.expected)
        skipped, entries = SkippedPlaces(), CatalogEntries()
        for batch in _read_tables(request, staging.scan_id, done, skipped, last, entries):
            staging.add(batch)
            tally.add(batch)
            progress(tally.tables + tally.errors.total(), last.expected)
        skipped.check_partitions(lambda: _partition_columns(staging))
        note_other_names(entries, skipped)
        compared = catalog_findings(entries, staging.batches())
        tally.add_findings(each.finding for each in compared)
        seconds = time.monotonic() - clock
        if request.inventory is not None:
            row = scan_row(request, staging.scan_id, tally, skipped, began, seconds, engine="local")
            request.inventory.add(
                row, lambda name: _unnested_rows(staging, name, entries, skipped.links, compared)
            )
        staging.remove()
        return ScanResult(
            staging.scan_id,
            seconds,
            tally,
            resumed,
            skipped.notes(),
            last.unchanged,
            request.source.selection,
            skipped.not_searched(),
            last.same_as(tally.tables, tally.errors.total()),
        )


def _read_tables(
    request: ScanRequest,
    scan_id: str,
    done: set[str],
    skipped: SkippedPlaces,
    last: LastScan,
    entries: CatalogEntries,
) -> Iterator[pa.RecordBatch]:
    saved = request.inventory is not None
    settings = ReadSettings(scan_id, request.storage_options, request.seconds, saved)
    unseen: list[UnreadablePlace] = []
    threads = request.parallel or local_engine.THREADS
    named, local, remote = discover_tables(
        request.source, request.storage_options, threads, skipped, entries
    )
    # A catalog's tables can be on any store, and its pages arrive while earlier tables are read.
    yield from local_engine.read_remote_tables(
        readable_tables(named, unseen, done), settings, request.parallel
    )
    yield from local_engine.read_local_tables(
        readable_tables(local, unseen, done), settings, request.parallel, last
    )
    yield from local_engine.read_remote_tables(
        readable_tables(remote, unseen, done), settings, request.parallel
    )
    if unseen:
        yield unreadable_place_rows(scan_id, unseen)


def readable_tables(
    found: Iterable[DiscoveredTable | UnreadablePlace],
    unseen: list[UnreadablePlace],
    done: set[str],
) -> Iterator[DiscoveredTable]:
    """Yield the tables found; unreadable places are appended to `unseen`."""
    for each in found:
        if (
            done
            and normalize_location(
                each.location if isinstance(each, DiscoveredTable) else each.place
            )
            in done
        ):
            continue
        if isinstance(each, DiscoveredTable):
            yield each
        else:
            unseen.append(each)


@contextmanager
def _open_staging(request: ScanRequest, began: datetime) -> Iterator[Staging]:
    inventory, extent = request.inventory, request.extent
    if inventory is None:
        with (
            tempfile.TemporaryDirectory(prefix="deltaproto-scan-") as aside,
            Staging(aside, new_scan_id(began)) as staging,
        ):
            yield staging
        return
    folder = inventory.staging_folder()
    if request.resume:
        taken = open_unfinished(folder, extent)
    else:
        taken = Staging(folder, new_scan_id(began), extent)
    if taken is None:
        raise nothing_to_resume_error()
    with taken:
        yield taken


def nothing_to_resume_error() -> UsageError:
    """Return the error of `--resume` without an unfinished scan."""
    return UsageError("no unfinished scan to resume", "leave out --resume to start a new one")


def new_scan_id(began: datetime) -> str:
    """Return an id that sorts by time, to the microsecond, and is unique."""
    return f"{began:%Y%m%dT%H%M%SZ}-{began.microsecond:05x}{secrets.randbelow(16**3):03x}"


def _partition_columns(staging: Staging) -> Iterator[tuple[str, list[str] | None]]:
    for batch in staging.batches():
        names = ("location", "partition_columns")
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _unnested_rows(
    staging: Staging,
    name: Inventory,
    entries: CatalogEntries,
    links: FolderLinks,
    compared: Sequence[CatalogFinding],
) -> Iterator[pa.RecordBatch]:
    for batch in staging.batches():
        rows = unnest_rows(with_all_names(batch, entries, links), name)
        if rows.num_rows:
            yield rows
    if name is Inventory.FINDINGS and compared:
        import pyarrow as pa

        more = finding_rows(staging.scan_id, compared)
        yield pa.RecordBatch.from_pylist(more, schema=inventory_schema(name))


def scan_row(
    request: ScanRequest,
    scan_id: str,
    tally: Tally,
    skipped: SkippedPlaces,
    began: datetime,
    seconds: float,
    *,
    engine: str,
) -> dict[str, Any]:
    """Return the scan's row in `scans`."""
    here = current_actor()
    return {
        "scan_id": scan_id,
        "started_at": began,
        "ended_at": datetime.now(UTC),
        "seconds": seconds,
        "roots": request.source.root_names(),
        "included": list(request.source.selection.include),
        "excluded": list(request.source.selection.exclude),
        "policy": request.policy,
        "engine": engine,
        "tables": tally.tables,
        "errors": tally.errors.total(),
        "findings": tally.findings.total(),
        "complete": not tally.errors and not tally.incomplete,
        "not_searched": [places._asdict() for places in skipped.unsearched()],
        "host": here.host,
        "actor": here.actor,
        "tool_version": __version__,
    }


_FIRST = 10
_READ = ("min_reader_version", "min_writer_version", "isolation_level", "complete")


class Tally:
    """Counts over staged rows."""

    def __init__(self) -> None:
        self.tables = 0
        self.incomplete = 0
        """tables that the log alone does not show completely"""
        self.errors: Counter[str] = Counter()
        """counts by error code"""
        self.first_errors: list[tuple[str, str, str]] = []
        """table, message and hint of the first errors"""
        self.findings: Counter[str] = Counter()
        """counts by severity"""
        self.rules: Counter[tuple[str, str]] = Counter()
        """counts by rule and severity"""
        self.protocols: Counter[tuple[int, int]] = Counter()
        self.features: Counter[str] = Counter()
        """number of tables that support each feature"""
        self.enabled: Counter[str] = Counter()
        """number of tables on which each is enabled"""
        self.isolation: Counter[str | None] = Counter()
        """number of tables by declared isolation level; None: not declared"""

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of one batch."""
        # Do not use Arrow's functions: importing them takes an eighth of the time of a small scan.
        errors = batch.column("error").to_pylist()
        columns = (batch.column(name).to_pylist() for name in _READ)
        rows = zip(*columns, errors, strict=True)
        read = [row for *row, error in rows if error is None]
        self.tables += len(read)
        self.incomplete += sum(not complete for *_, complete in read)
        self.protocols.update((reader, writer) for reader, writer, *_ in read)
        self.isolation.update(level for *_, level, _ in read)
        rules, severities = _members(batch, "findings", ("rule", "severity"))
        self.findings.update(severities)
        self.rules.update(zip(rules, severities, strict=True))
        features, enabled = _members(batch, "features", ("feature", "enabled"))
        self.features.update(features)
        self.enabled.update(compress(features, enabled))
        if len(read) < batch.num_rows:
            self._add_errors(batch.column("table").to_pylist(), errors)

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Count findings that no row of a batch has."""
        for finding in findings:
            self.findings[str(finding.severity)] += 1
            self.rules[finding.rule, str(finding.severity)] += 1

    def _add_errors(self, tables: list[str], errors: list[dict[str, Any] | None]) -> None:
        failures = [(table, error) for table, error in zip(tables, errors, strict=True) if error]
        self.errors.update(error["code"] for _, error in failures)
        room = _FIRST - len(self.first_errors)
        for table, error in failures[:room]:
            self.first_errors.append((table, error["message"], error["hint"]))

    def dumped(self) -> str:
        """Return the counts as text, for `merge` in another process."""
        return json.dumps(
            {
                name: [[key, count] for key, count in value.items()]
                if isinstance(value, Counter)
                else value
                for name, value in vars(self).items()
            }
        )

    def merge(self, dumped: str) -> None:
        """Add the counts of another tally."""
        for name, value in json.loads(dumped).items():
            mine = getattr(self, name)
            if isinstance(mine, int):
                setattr(self, name, mine + value)
            elif isinstance(mine, Counter):
                for key, count in value:
                    mine[tuple(key) if isinstance(key, list) else key] += count
            else:
                mine += map(tuple, value[: _FIRST - len(mine)])


def _members(batch: pa.RecordBatch, name: str, members: Sequence[str]) -> Iterator[list[Any]]:
    """Yield some members of the structs in a column of lists."""
    values = flatten_lists(batch.column(name))
    for member in members:
        yield values.field(member).to_pylist()
