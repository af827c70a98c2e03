"""Who uses tables, from their own logs and from access logs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from deltaproto.app.arguments import (
    NONE,
    TableSource,
    connection_options,
    require_texts,
    table_name,
    table_sources,
)
from deltaproto.app.inventory import with_spark
from deltaproto.app.result import Result, Rows, findings_failure, show_in_notebooks
from deltaproto.counts import counted
from deltaproto.errors import (
    DeltaprotoError,
    ExitCode,
    ResultError,
    TableError,
    UsageError,
)
from deltaproto.fleet.inventory import open_inventory_tables
from deltaproto.fleet.schemas import is_inventory
from deltaproto.fleet.seen.collect import Discovery as _Discovery
from deltaproto.fleet.seen.collect import LogOptions, require_read
from deltaproto.fleet.seen.run_discovery import DiscoveryRequest, run_discovery
from deltaproto.fleet.seen.uses import Client, SeenClient
from deltaproto.policy.finding import Finding

if TYPE_CHECKING:
    from deltaproto.render.document.blocks import Document

_DAY = 86_400_000
"""milliseconds"""
_MAX_DAYS = 36_500


@dataclass(frozen=True, repr=False)
class ClientUse:
    """The observed use by one client, or by one program that could not be identified."""

    client: str | None
    """the client's id; None if it was not identified"""
    version: str | None
    """its version; None if it records none"""
    mark: str | None
    """the mark of an unidentified program; None for a client, and for a program without a mark"""
    access: tuple[str, ...]
    """the kinds of access that were seen: `read`, `append`, `dml`, `maintain`"""
    tables: tuple[str, ...]
    """the tables that it used"""
    commits: int
    """the number of its commits"""
    requests: int
    """the number of its requests in the access logs"""
    data_files: int
    """the number of its data files whose commits are no longer in the log; 0 if not requested"""
    first_seen: datetime | None
    """the time of its first commit or request (UTC); None if the logs have no time"""
    last_seen: datetime | None
    """the time of its last commit or request (UTC); None if the logs have no time"""
    longest_gap_hours: int | None
    """the longest time between two uses, in hours; None if all were in one hour"""
    principals: Mapping[str, tuple[str, ...]]
    """the names behind it by kind: user, job, notebook, cluster, stream, query, address"""
    confidence: str
    """how sure the client is: certain, likely or unknown"""
    could_be: tuple[str, ...]
    """ids of the clients that leave the mark of an unidentified program"""
    setting: str | None
    """the setting with which an unidentified program would identify itself"""

    def __repr__(self) -> str:
        name = self.client or self.mark or "without a mark"
        uses = ", ".join(
            (
                counted(len(self.tables), "table"),
                counted(self.commits, "commit"),
                counted(self.requests, "request"),
            )
        )
        return f"<ClientUse {name}{f'@{self.version}' if self.version else ''}: {uses}>"

    @classmethod
    def _of(cls, client: Client, seen: SeenClient) -> ClientUse:
        times = seen.all
        principals: dict[str, list[str]] = {}
        for name in sorted(seen.principals):
            principals.setdefault(str(name.kind), []).append(name.text)
        return cls(
            client.id,
            client.version,
            client.mark,
            tuple(sorted(map(str, seen.access))),
            tuple(sorted(seen.tables)),
            seen.commits.count,
            seen.requests.count,
            0 if seen.files is None else seen.files.count,
            _time(times.first),
            _time(times.last),
            times.longest_gap_hours,
            {kind: tuple(names) for kind, names in principals.items()},
            str(seen.confidence),
            seen.could_be,
            seen.setting,
        )


show_in_notebooks(ClientUse)


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


@dataclass(frozen=True, repr=False)
class Discovery(Result):
    """Who used the tables, to the extent that the logs show it."""

    found: _Discovery
    """everything that was read, as a record"""

    @property
    def clients(self) -> tuple[ClientUse, ...]:
        """The clients that were identified, most active first."""
        return tuple(ClientUse._of(*each) for each in self.found.uses.identified)

    @property
    def unidentified(self) -> tuple[ClientUse, ...]:
        """The programs that were not identified, most active first."""
        return tuple(ClientUse._of(*each) for each in self.found.uses.unidentified)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Principals that read deleted or stale rows (`DP401`, `DP402`); needs access logs."""
        return self.found.findings

    @property
    def tables(self) -> int:
        """The number of tables whose log was read."""
        return self.found.tables

    @property
    def errors(self) -> Mapping[str, TableError]:
        """Tables and access logs that could not be read, or not completely, by their name."""
        return {failed.table: failed.error for failed in self.found.failed}

    @property
    def complete(self) -> bool:
        """True if every table and every access log was read completely."""
        return self.found.complete

    def rows(self) -> Rows:
        """Return one row for each client and each unidentified program, with the attributes of
        `ClientUse`; `principals` is a list of `kind name`.
        """
        import pyarrow as pa

        text, number, stamp = pa.string(), pa.int64(), pa.timestamp("ms", "UTC")
        columns = {
            **dict.fromkeys(("client", "version", "mark"), text),
            **dict.fromkeys(("access", "tables"), pa.list_(text)),
            **dict.fromkeys(("commits", "requests", "data_files"), number),
            **dict.fromkeys(("first_seen", "last_seen"), stamp),
            "longest_gap_hours": number,
            "principals": pa.list_(text),
            "confidence": text,
            "could_be": pa.list_(text),
            "setting": text,
        }
        return Rows.of(map(_row, (*self.clients, *self.unidentified)), columns)

    def write_policy(self, path: str | os.PathLike[str]) -> str:
        """Write a policy that declares the clients seen, or add them to an existing one.

        Everything else in an existing policy stays as it is.

        Returns:
            The difference as a unified diff; empty if the policy declared them all.

        Raises:
            UsageError: when an existing policy is invalid or cannot be extended, or when the file
                cannot be written.
        """
        from deltaproto.fleet.seen.policy_file import draft_file

        drafted = draft_file(os.fspath(path), self.found, datetime.now(UTC))
        if drafted.after != drafted.before:
            try:
                with open(path, "w", encoding="utf-8", newline="") as file:
                    file.write(drafted.after)
            except OSError as error:
                raise UsageError(
                    f"cannot write {path}: {error.strerror}", "check the path"
                ) from None
        return drafted.diff

    def _failure(self) -> DeltaprotoError | None:
        if self.found.failed:
            (table, error, *_), count = self.found.failed[0], len(self.found.failed)
            unread = counted(count, "table or log", "tables or logs")
            text = f"{unread} could not be read completely; {table}: "
            text += error.message.removeprefix(f"{table}: ")
            return ResultError(self, ExitCode.UNREADABLE, text, error.hint)
        table = self.findings[0].table if self.findings else ""
        return findings_failure(self, table, self.findings, complete=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of `discover`."""
        from deltaproto.render.discover import discovery_fields

        return discovery_fields(self.found)

    def _document(self) -> Document:
        from deltaproto.render.discover import discovery_document

        return discovery_document(self.found, details=True)

    def __repr__(self) -> str:
        uses, failed = self.found.uses, len(self.found.failed)
        unread = f", {failed} not read completely" if failed else ""
        tables, clients = counted(self.tables, "table"), counted(len(uses.identified), "client")
        return f"<Discovery of {tables}: {clients}, {len(uses.unidentified)} unidentified{unread}>"


def _row(use: ClientUse) -> dict[str, Any]:
    names = [f"{kind} {name}" for kind, names in use.principals.items() for name in names]
    return {**vars(use), "principals": names}


def discover(
    tables: TableSource | Iterable[TableSource],
    *,
    access_logs: Sequence[str] = (),
    data_files: bool = False,
    days: int | None = None,
    pseudonymize: bool = False,
    allow_empty: bool = False,
    engine: str = "local",
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
    store: bool = True,
) -> Discovery:
    """Find out which clients use tables, for whom and how often.

    The tables' own logs show who writes; readers are only in the access logs of the object store.
    Tables that cannot be read never stop the others; they are in `errors`.

    Args:
        tables: tables, folders with tables at any depth, and inventories; one or several.
        access_logs: access logs of the object store: files, folders and URIs; or system tables of
            Databricks, as exports or by name.
        data_files: also read the writers of data files whose commits are no longer in the log.
        days: only the last N days; None: everything still in the logs.
        pseudonymize: hashes instead of the names of users, jobs, notebooks, clusters and queries.
        allow_empty: accept folders without tables, and access logs without requests to them.
        engine: local, or spark to read the logs on the executors of a Spark session.
        storage_options: as in deltalake.
        spark_remote: a Spark Connect URL.
        spark_conf: settings of a Spark session that is started here.
        store: if `tables` is one inventory and `days` is None, add what was counted to its
            `clients_seen`, and return it together with what earlier runs added.

    Raises:
        UsageError: for an invalid request, when the inventory cannot be written, and when the
            executors fail.
        TableError: when the only table cannot be read, or there is no table.
        EngineError: when Spark does not start, or disconnects.
    """
    names = [table_name(each) for each in table_sources(tables)]
    if not names:
        raise UsageError("no tables", "pass a table, a folder or an inventory")
    if days is not None and not 0 < days <= _MAX_DAYS:
        raise UsageError(f"days is {days}", f"pass a number from 1 to {_MAX_DAYS}, or None")
    by = connection_options(None, storage_options, spark_remote, spark_conf)
    since = None if days is None else int(time.time() * 1000) - days * _DAY
    settings = LogOptions(by.storage_options, by.spark, since, pseudonymize, data_files=data_files)
    logs = require_texts(access_logs, "access_logs")
    inventory = None
    if store and days is None and len(names) == 1 and is_inventory(names[0], by.storage_options):
        inventory = open_inventory_tables(names[0], by.storage_options)
    on_spark = with_spark(engine)
    request = DiscoveryRequest(names, logs, settings, allow_empty, on_spark=on_spark)
    found = run_discovery(request, inventory, lambda _: nullcontext(_ignore))
    require_read(found, names, logs=bool(logs), allow_empty=allow_empty)
    return Discovery(found)


def _ignore(_count: int) -> None:
    pass
