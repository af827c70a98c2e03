"""The inventory: five Delta tables with the results of scans, and one with the clients seen.

The tables of scans are partitioned by `scan_id`: each scan adds one partition, queries read one or
two, and old partitions are deleted without rewriting files. A scan is one commit in each table.
The row in `scans` is committed last: a scan without one is ignored. `clients_seen` is written by
`discover`, one commit for each run; runs exclude each other (`append_if_unchanged`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.schemas import (
    SCAN_PARTS,
    Inventory,
    inventory_schema,
    missing_inventory_error,
    require_types,
)
from deltaproto.identity import user_cache_folder
from deltaproto.interrupts import interruptible, map_in_threads, reader_pool
from deltaproto.location import Location, LocationKind, locate
from deltaproto.redaction import Redactor
from deltaproto.tables.engine_errors import first_line, is_disk_full, repeat_on_conflict
from deltaproto.tables.storage.local import LOG_FOLDER

if TYPE_CHECKING:
    import pyarrow as pa


PARTITION = "scan_id"
_CHECK_TABLE = "check its permissions, and that it is intact: it is a regular Delta table"
_R = TypeVar("_R")


class InventoryTables:
    """The inventory in a folder or under a URI, through delta-rs.

    Args:
        storage_options: in deltalake's format.
    """

    def __init__(self, where: str, storage_options: Mapping[str, str]) -> None:
        try:
            self.location: Location = locate(where)
            self.location.path_or_uri.encode()
        except TableError as error:
            raise UsageError(error.message, error.hint) from None
        except UnicodeEncodeError:
            hint = "pass another path: an inventory needs one in UTF-8"
            raise UsageError(f"the path {where!a} of the inventory is not UTF-8", hint) from None
        self._options = dict(storage_options)
        self._read: dict[Inventory, Any] = {}

    def staging_folder(self, *, here: bool = True) -> str:
        """Folder of unfinished scans: next to a local inventory, else in the user's cache.

        Args:
            here: False if a path is one of another machine, which Spark Connect reaches.
        """
        if self.location.path is not None and here:
            return self.location.path
        digest = hashlib.sha256(self.location.uri.encode()).hexdigest()[:16]
        return os.path.join(user_cache_folder(), digest)

    def uri(self, name: Inventory) -> str:
        """Return the URI of one of its tables."""
        base = self.location.path_or_uri
        return f"{base.rstrip('/')}/{name}"

    def add(
        self,
        scan: Mapping[str, Any],
        rows: Callable[[Inventory], Iterable[pa.RecordBatch]],
    ) -> None:
        """Make a scan visible: its rows first, then its row in `scans`.

        Rows from an earlier attempt are not added again.

        Raises:
            UsageError: when the inventory cannot be written.
        """
        import pyarrow as pa

        scan_id = str(scan["scan_id"])

        def add_part(name: Inventory) -> None:
            if scan_id not in self.scan_ids(name):
                wanted = inventory_schema(name)
                self.append(
                    name, lambda: pa.RecordBatchReader.from_batches(wanted, iter(rows(name)))
                )

        local = self.location.local
        with (ThreadPoolExecutor if local else reader_pool)(len(SCAN_PARTS)) as pool:
            for _ in map_in_threads(pool, add_part, SCAN_PARTS):
                pass
        if scan_id not in self.scan_ids(Inventory.SCANS):
            row = pa.Table.from_pylist([dict(scan)], schema=inventory_schema(Inventory.SCANS))
            self.append(Inventory.SCANS, lambda: row)

    def append(self, name: Inventory, rows: Callable[[], Any]) -> None:
        """Add rows to one of its tables, which is created if it does not exist.

        Args:
            rows: returns an Arrow table or reader with the columns of `inventory_schema`; it is
                called again if another process deleted rows meanwhile.

        Raises:
            UsageError: when the inventory cannot be written.
        """
        from deltalake import CommitProperties, write_deltalake
        from deltalake.exceptions import DeltaError

        def write() -> None:
            table = self._table_with_all_columns(name)
            self.wait_for(
                write_deltalake,
                table,
                rows(),
                mode="append",
                schema_mode=_schema_mode(table, name),
                commit_properties=CommitProperties(max_commit_retries=100),
            )

        self._read.pop(name, None)
        try:
            repeat_on_conflict(write)
        except (DeltaError, OSError) as error:
            raise self._unwritable_error(name, error) from None

    def _table_with_all_columns(self, name: Inventory) -> Any:
        """Return one of its tables; create it, and add the columns that an earlier release lacked.

        Appends change no metadata: a commit that does makes concurrent appends fail.
        """
        from deltalake import write_deltalake

        table = self._open_or_create(name)
        wanted = inventory_schema(name)
        if not {field.name for field in table.schema().fields}.issuperset(wanted.names):
            merged = {"mode": "append", "schema_mode": "merge"}
            self.wait_for(write_deltalake, table, wanted.empty_table(), **merged)
        return table

    def append_if_unchanged(self, name: Inventory, rows: Any) -> bool:
        """Add rows if no other process wrote to the table since this object read it.

        A table that this object did not read must not exist, or have no rows yet. All writers of
        the table must use this method or `replace_if_unchanged`.

        Returns:
            False, and nothing is added, if another process wrote to it: read it again.

        Raises:
            UsageError: when the inventory cannot be written.
        """
        return self._write_if_unchanged(name, rows, mode="append")

    def replace_if_unchanged(self, name: Inventory, condition: str, rows: Any) -> bool:
        """Replace the rows that match a condition by others that match it, in one commit.

        Otherwise like `append_if_unchanged`.
        """
        return self._write_if_unchanged(name, rows, mode="overwrite", predicate=condition)

    def _write_if_unchanged(self, name: Inventory, rows: Any, **how: Any) -> bool:
        from deltalake import CommitProperties, Transaction, write_deltalake
        from deltalake.exceptions import CommitFailedError, DeltaError

        table = self._read.pop(name, None)
        try:
            if table is None:
                table = self._open_or_create(name)
                if table.version() > 0:
                    return False
            before = table.version()
            self.wait_for(
                write_deltalake,
                table,
                rows,
                schema_mode=_schema_mode(table, name),
                # Delta refuses the later of two commits with the same application id.
                commit_properties=CommitProperties(
                    max_commit_retries=100,
                    app_transactions=[Transaction(f"deltaproto.{name}", before + 1)],
                ),
                **how,
            )
        except CommitFailedError:
            return False
        except (DeltaError, OSError) as error:
            raise self._unwritable_error(name, error) from None
        if table.version() == before + 1:
            # Later versions may have rows of others.
            self._read[name] = table
        return True

    def wait_for(self, work: Callable[..., _R], *arguments: Any, **named: Any) -> _R:
        """Return what `work` with deltalake returns; Ctrl-C does not wait for an object store."""
        call = partial(work, *arguments, **named)
        return call() if self.location.local else interruptible(call)

    def refresh(self, name: Inventory) -> None:
        """Read a table at its newest version from now on."""
        self._read.pop(name, None)

    def vacuum(self, name: Inventory) -> None:
        """Delete files of one of its tables that are older than its retention.

        Raises:
            UsageError: when the table cannot be written.
        """
        from deltalake.exceptions import DeltaError

        try:
            self.wait_for(self._table(name).vacuum, dry_run=False)
        except (DeltaError, OSError) as error:
            raise self._unwritable_error(name, error) from None

    def _unwritable_error(self, name: Inventory, error: BaseException) -> UsageError:
        cause = self._describe_error(error)
        hint = "free some space" if is_disk_full(cause) else _CHECK_TABLE
        return UsageError(f"cannot write the inventory's table {name}: {cause}", hint)

    def _open_or_create(self, name: Inventory) -> Any:
        table = self._table(name)
        if table is None:
            self._create(name)
            table = self._table(name)
        return table

    def _create(self, name: Inventory) -> None:
        from deltalake import CommitProperties, DeltaTable
        from deltalake.exceptions import DeltaError

        if self.location.path is not None:
            os.makedirs(self.uri(name), exist_ok=True)
        try:
            self.wait_for(
                DeltaTable.create,
                self.uri(name),
                inventory_schema(name),
                partition_by=None if name is Inventory.CLIENTS_SEEN else [PARTITION],
                name=f"deltaproto_{name}",
                storage_options=self._options or None,
                # If another scan is faster, a retry would create the table again, as version 1.
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except DeltaError:
            # Another scan may have created it at the same time.
            if self._table(name) is None:
                raise

    def scan_ids(self, name: Inventory) -> set[str]:
        """Return the scans with rows in one of its tables."""
        table = self._table(name)
        if table is None:
            return set()
        return {row[PARTITION] for row in table.partitions()}

    def drop(self, name: Inventory, condition: str) -> None:
        """Delete the rows of one of its tables that match the condition, and old files.

        Raises:
            UsageError: when the table cannot be written.
        """
        from deltalake import CommitProperties
        from deltalake.exceptions import DeltaError

        def delete() -> None:
            table = self._table(name)
            retries = CommitProperties(max_commit_retries=100)
            self.wait_for(table.delete, condition, commit_properties=retries)

        self._read.pop(name, None)
        if not self.has_table(name):
            return
        try:
            repeat_on_conflict(delete)
            self.wait_for(self._table(name).vacuum, dry_run=False)
        except (DeltaError, OSError) as error:
            raise UsageError(
                f"cannot delete old scans from the inventory's table {name}: "
                f"{self._describe_error(error)}",
                "run again; scans that are already deleted stay deleted",
            ) from None

    def _describe_error(self, error: BaseException) -> str:
        """Return deltalake's error message in one line and without credentials."""
        from deltaproto.tables.delta_rs import find_store_refusal

        if refused := find_store_refusal(error):
            return refused.cause or "no permission"
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        return Redactor(self._options)(first_line(error))

    def readable(self, name: Inventory) -> Any:
        """Return one of its tables, opened with deltalake.

        It stays at this version until this object writes to it, so that all queries of a command
        see the same rows and the log is listed once.

        Raises:
            UsageError: when there is no inventory.
            TableError: when it cannot be read, is missing next to other tables of the inventory, or
                has a column of a different type from what `scan` writes.
        """
        if name not in self._read:
            table = self._table(name)
            if table is None:
                raise self._missing_error(name)
            require_types(name, table.schema())
            self._read[name] = table
        return self._read[name]

    def is_surely_missing(self) -> bool:
        """Return True if it is a local folder without scans; needs no deltalake."""
        folder = f"{self.uri(Inventory.SCANS)}/{LOG_FOLDER}"
        return self.location.path is not None and not os.path.lexists(folder)

    def has_table(self, name: Inventory) -> bool:
        """Return True if one of its tables exists. Raises like `readable`."""
        return self._table(name) is not None

    def _missing_error(self, name: Inventory) -> UsageError | TableError:
        if not any(map(self.has_table, {Inventory.SCANS, Inventory.TABLES} - {name})):
            exists = self.location.path is None or os.path.lexists(self.location.path)
            return missing_inventory_error(self.location.path_or_uri, exists=exists)
        return TableError(
            ErrorCode.CORRUPT_LOG,
            f"{self.location.path_or_uri}: the inventory has no table {name}",
            "finish a stopped scan with scan --resume, otherwise scan again into a new folder",
        )

    def _table(self, name: Inventory) -> Any:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            return self.wait_for(DeltaTable, self.uri(name), storage_options=self._options or None)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            found = self._store_problem(name) or TableError(
                ErrorCode.CORRUPT_LOG,
                self._describe_error(error),
                _CHECK_TABLE,
            )
            message = f"cannot read the inventory's table {name}: {found.message}"
            raise TableError(ErrorCode(found.code), message, found.hint) from None

    def _store_problem(self, name: Inventory) -> TableError | None:
        """Return why an object store cannot be listed; None if it can.

        deltalake reports all of its problems alike.
        """
        from deltaproto.tables.storage import open_log

        location = locate(self.uri(name))
        if location.path is not None:
            return None
        try:
            open_log(location, self._options, read_ahead=True).list()
        except TableError as error:
            return error
        return None


def _schema_mode(table: Any, name: Inventory) -> Literal["merge"] | None:
    """Return `merge` if the stored table has other columns than this release writes.

    Rows then get null in the columns of a newer release, and in those that a user added.
    """
    stored = {field.name for field in table.schema().fields}
    return None if stored == set(inventory_schema(name).names) else "merge"


def open_inventory_tables(where: str, storage_options: Mapping[str, str]) -> InventoryTables:
    """Return the inventory at a path or URI.

    Raises:
        UsageError: when `where` is neither.
    """
    found = InventoryTables(where, storage_options)
    if found.location.kind is LocationKind.CATALOG:
        hint = "an inventory is a folder: `deltaproto scan URL --inventory FOLDER` writes one"
        raise UsageError(f"{where} is a catalog, not an inventory", hint)
    if not found.location.local and "://" not in found.location.uri:
        raise UsageError(f"{where} is not a folder", "pass a path or a URI for the inventory")
    return found
