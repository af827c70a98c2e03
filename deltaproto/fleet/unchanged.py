"""Reuses rows of the last scan for tables whose log has not changed since.

A row depends only on the table's log, its name and this release. So the digest of a table covers
every file of the log folder with size, times and inode: an equal digest means an equal row.
Anything that could be wrong is read again: errors, incomplete rows, logs on object stores, and logs
that were written just before they were read, because a second write may have kept the same time.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from itertools import accumulate
from typing import TYPE_CHECKING

from deltaproto import __version__
from deltaproto.errors import DeltaprotoError
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.inventory_queries import LocalInventoryQueries
from deltaproto.fleet.read_inventory import TABLES_READ, rows_query
from deltaproto.fleet.rows_builder import stored_digest, take_rows
from deltaproto.fleet.scan_history import Extent, PastScan, extent_of
from deltaproto.fleet.schemas import (
    CATALOG_RULES,
    KEYS,
    LOG_DIGEST,
    OTHER_NAMES,
    Inventory,
    inventory_schema,
    staged_schema,
)
from deltaproto.interrupts import READER_THREADS, wait_for
from deltaproto.tables.storage.interface import FolderEntry
from deltaproto.tables.storage.local import LOG_FOLDER

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaproto.fleet.inventory import InventoryTables

_FORMAT = 3
_SETTLED_NS = 3_000_000_000
"""age of a log's newest file: file systems keep times to 2 seconds or better"""


def log_digest(found: DiscoveredTable, listed: list[FolderEntry] | None = None) -> str | None:
    """Return the digest of a whole log on disk; None if it has to be read again next time.

    Call it before the log is read, so that a later change is noticed.

    Args:
        listed: receives the log folder as a log store lists it; nothing if it cannot be inspected,
            and for a log that is not on disk.
    """
    if "://" in found.location or found.commits is not None:
        # The log lacks commits that only a catalog has ratified.
        return None
    began, texts = time.time_ns(), list[str]()
    try:
        newest = _collect(f"{found.location}/{LOG_FOLDER}", "", listed, texts)
    except (OSError, ValueError):
        if listed is not None:
            listed.clear()
        return None
    if not texts or newest > began - _SETTLED_NS:
        return None
    texts.sort()
    own = (_FORMAT, __version__, found.table, found.location, found.catalog, found.type)
    text = repr(own) + "".join(texts)
    return blake2b(os.fsencode(text), digest_size=16).hexdigest()


def _collect(folder: str, below: str, listed: list[FolderEntry] | None, texts: list[str]) -> int:
    """Add the files of a folder and, to `texts`, the files of its subfolders.

    A text has the name, size, times and inode of a file; names cannot contain the separator.
    Returns the newest modification time of a file in nanoseconds, 0 without any.

    Args:
        listed: receives the folder itself.

    Raises:
        OSError: when a file or folder cannot be inspected, or a subfolder is unusual.
    """
    newest = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if not below and name[0] == ".":
                # Readers ignore hidden files, such as Hadoop's checksums.
                continue
            if entry.is_dir():
                # Outside these folders, readers mistake a folder for a broken file.
                if entry.is_symlink() or not (below or name[0] == "_"):
                    raise OSError(f"{entry.path} is not a usual folder")
                if not below and listed is not None:
                    listed.append(FolderEntry(f"{name}/", None))
                newest = max(newest, _collect(entry.path, f"{below}{name}/", listed, texts))
                continue
            found = entry.stat()
            size, modified = found.st_size, found.st_mtime_ns
            if modified > newest:
                newest = modified
            if listed is not None and not below:
                listed.append(FolderEntry(name, size))
            texts.append(
                f"{below}{name}\0{size}\0{modified}\0{found.st_ctime_ns}\0{found.st_ino}\0"
            )
    return newest


class LastScan:
    """The rows of the last finished scan with the same roots and patterns.

    Args:
        inventory: None: there is no last scan.
        full: whether every table is read again, so no rows are needed.
    """

    def __init__(
        self,
        inventory: InventoryTables | None = None,
        extent: Extent = extent_of((), (), ()),
        *,
        full: bool = False,
    ) -> None:
        self._inventory, self._extent, self._full = inventory, extent, full
        self._loading: Future[None] | None = None
        self._scan: PastScan | None = None
        self._rows: pa.RecordBatch | None = None
        self._known: dict[str, int] = {}
        """row by digest, which covers the name and location of its table"""
        self.unchanged = 0
        """number of reused rows"""

    def start_loading(self) -> None:
        """Start to load the rows, if that has not started.

        The inventory's engine starts threads, after which no process can be forked.
        """
        if self._loading or self._inventory is None or not self.may_have_rows:
            return
        pool = ThreadPoolExecutor(1, thread_name_prefix=READER_THREADS)
        self._loading = pool.submit(self._load, LocalInventoryQueries(self._inventory))
        pool.shutdown(wait=False)

    @property
    def may_have_rows(self) -> bool:
        """False if it is known before loading that every table must be read."""
        inventory = self._inventory
        return not (self._full or inventory is None or inventory.is_surely_missing())

    @property
    def loading(self) -> bool:
        """Whether its rows are being loaded."""
        return self._loading is not None and not self._loading.done()

    @property
    def compares(self) -> bool:
        """Whether it has rows, or may have some after loading."""
        return self.loading or bool(self._known)

    def split(
        self, tables: Sequence[DiscoveredTable], digests: Sequence[str | None], scan_id: str
    ) -> tuple[pa.RecordBatch | None, list[DiscoveredTable]]:
        """Return the staged rows of unchanged tables, and the other tables.

        Args:
            digests: the digest of each table's log as it is now.
        """
        if self._loading is not None:
            wait_for(self._loading)
        same, others = list[int](), list[DiscoveredTable]()
        for found, digest in zip(tables, digests, strict=True):
            row = self._known.get(digest or "")
            if row is None:
                others.append(found)
            else:
                same.append(row)
        if not same or self._rows is None:
            return None, others
        import pyarrow as pa

        self.unchanged += len(same)
        schema = self._rows.schema
        _, *columns = (take_rows(column, same) for column in self._rows.columns)
        ids = pa.repeat(pa.scalar(scan_id, schema.field(0).type), len(same))
        return pa.RecordBatch.from_arrays([ids, *columns], schema=schema), others

    def expected(self) -> int | None:
        """Return how many tables and errors the last scan had; None if unknown.

        Call it after the processes of this scan have started.
        """
        if self._scan is None:
            return expected_count(self._inventory, self._extent)
        return self._scan.tables + self._scan.errors

    def same_as(self, tables: int, errors: int) -> str | None:
        """Return the id of the last scan if nothing that it found has changed, else None.

        Args:
            tables: the number of tables that were found now; `errors` of those not readable.
        """
        last = self._scan
        if last is None or errors or last.errors or not self.unchanged == tables == last.tables:
            return None
        return last.scan_id

    def _load(self, queries: LocalInventoryQueries) -> None:
        """Load the rows; none if the inventory is missing, older than the digests, or damaged."""
        try:
            last = _last_of_extent(queries, self._extent)
            if last is None:
                return
            queries.require_whole(last)
            self._scan = last
            rows = {name: _rows_of(queries, name, last.scan_id) for name in TABLES_READ}
        except DeltaprotoError:
            return
        tables = rows[Inventory.TABLES]
        place = {where: n for n, where in enumerate(tables.column("location").to_pylist())}
        if len(place) < tables.num_rows:
            return
        nested, counts = [], []
        for name in (Inventory.FEATURES, Inventory.FINDINGS):
            column, lengths = _nest(rows[name], name, place)
            nested.append(column)
            counts.append(lengths)
        self._rows = _staged(tables, dict(zip(("features", "findings"), nested, strict=True)))
        digests = tables.column(LOG_DIGEST).to_pylist()
        for row, stored in enumerate(digests):
            # If rows were lost since then, the counts differ.
            digest = (stored or "").partition("-")[0]
            if digest and stored == stored_digest(digest, *(each[row] for each in counts)):
                self._known[digest] = row


def expected_count(inventory: InventoryTables | None, extent: Extent) -> int | None:
    """Return how many tables and errors the last scan of the extent found; None if unknown."""
    if inventory is None:
        return None
    with suppress(DeltaprotoError):
        last = _last_of_extent(LocalInventoryQueries(inventory), extent)
        return None if last is None else last.tables + last.errors
    return None


def _last_of_extent(queries: LocalInventoryQueries, extent: Extent) -> PastScan | None:
    scans = [scan for scan in queries.scans() if scan.extent == extent]
    return scans[-1] if scans else None


def _rows_of(queries: LocalInventoryQueries, name: Inventory, scan_id: str) -> pa.RecordBatch:
    import pyarrow as pa

    schema = inventory_schema(name)
    # Compare a table's catalog entries again.
    where = f"rule NOT LIKE '{CATALOG_RULES}%'" if name is Inventory.FINDINGS else None
    batches = [
        pa.RecordBatch.from_arrays(
            [batch.column(field.name).cast(field.type) for field in schema], schema=schema
        )
        for batch in queries.ask(rows_query(queries, name, scan_id, schema.names, where), (name,))
    ]
    none = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    return pa.concat_batches([none, *batches])


def _nest(
    rows: pa.RecordBatch, name: Inventory, place: Mapping[str, int]
) -> tuple[pa.Array, list[int]]:
    """Return the rows as one list for each table, and the lengths of the lists."""
    import pyarrow as pa

    kind = staged_schema().field(str(name)).type
    parents = [place.get(where, -1) for where in rows.column("location").to_pylist()]
    numbers = rows.column("number").to_pylist() if "number" in rows.schema.names else parents
    order = sorted(range(len(parents)), key=lambda n: (parents[n], numbers[n]))
    found = Counter(parents)
    lengths = [found[n] for n in range(len(place))]
    inner = rows.select([n for n in rows.schema.names if n not in KEYS])
    # Rows without a table sort first.
    inner = inner.take(pa.array(order[found[-1] :], pa.int32()))
    ends = pa.array([0, *accumulate(lengths)], pa.int32())
    values = pa.StructArray.from_arrays(inner.columns, fields=list(kind.value_type))
    return pa.ListArray.from_arrays(ends, values, type=kind), lengths


def _staged(tables: pa.RecordBatch, nested: Mapping[str, pa.Array]) -> pa.RecordBatch:
    import pyarrow as pa

    schema = staged_schema()
    columns = [
        nested[field.name]
        if field.name in nested
        else pa.nulls(tables.num_rows, field.type)
        # Only this scan knows what else a catalog lists for a table.
        if field.name in ("error", OTHER_NAMES)
        else tables.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
