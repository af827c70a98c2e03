"""Compares the log of a table with its entries in catalogs.

A wrong finding is worse than a missing one: nothing is reported that is unknown, or known only from
another version of the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from deltaproto.counts import counted
from deltaproto.errors import ErrorCode
from deltaproto.location import CATALOG_SCHEMES, quote_for_shell
from deltaproto.policy.document import normalize_location
from deltaproto.policy.finding import Finding
from deltaproto.policy.rules import (
    entry_columns_differ,
    entry_of_another_table,
    entry_protocol_differs,
    entry_without_log,
)
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED, UNITY_TABLE_ID
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import TableState
from deltaproto.tables.catalogs.described import (
    ColumnDifference,
    DeclaredProtocol,
    compare_digests,
    describe_differences,
    log_columns_digest,
    schema_columns,
)
from deltaproto.tables.catalogs.interface import CatalogTable

_UC_IDS = (UNITY_TABLE_ID, "ucTableId")
_NO_LOG = (str(ErrorCode.NOT_FOUND), str(ErrorCode.NOT_A_DELTA_TABLE))
_NAMED = 4
_SYNC = "on Databricks, MSCK REPAIR TABLE … SYNC METADATA does it"


class CatalogEntry(NamedTuple):
    """One entry of one catalog."""

    catalog: str
    """address of the catalog, without a name"""
    table: CatalogTable

    @property
    def name(self) -> str:
        return self.table.name


class LogFacts(NamedTuple):
    """What the log of a table shows."""

    protocol: Protocol
    configuration: Mapping[str, str | None]
    columns: str | None
    """digest of the columns; None: not known"""
    complete: bool
    """whether the newest version was read"""
    state: TableState | None = None
    """None: only the digest is known"""

    @classmethod
    def of(cls, state: TableState, *, complete: bool) -> LogFacts:
        """Return the facts of a table that was read just now."""
        metadata = state.metadata
        digest = log_columns_digest(metadata.schema, metadata.partition_columns)
        return cls(state.protocol, metadata.configuration, digest, complete, state)


def find_missing_log(
    table: str, location: str, code: str, entries: Sequence[CatalogEntry]
) -> Iterator[Finding]:
    """Yield a finding if a table cannot be read because its log is missing.

    Args:
        code: of the error.
    """
    if code not in _NO_LOG or not _is_missing(location):
        return
    catalogs = first_few(dict.fromkeys(entry.catalog for entry in entries))
    yield entry_without_log.RULE.finding(
        table,
        f"{catalogs} has an entry for this table, but there is no Delta log at its location",
        "drop the entry, restore the folder, or correct the location of the entry",
        evidence=location,
    )


def compare_with_log(
    table: str, log: LogFacts, entries: Sequence[CatalogEntry]
) -> Iterator[Finding]:
    """Yield the findings on entries of a table whose log was read."""
    yield from _other_ids(table, log.configuration, entries)
    if log.complete:
        yield from _other_columns(table, log, entries)
        yield from _other_protocols(table, log.protocol, entries)


def first_few(names: Iterable[str], between: str = " or ") -> str:
    """Join the first names, and count the others."""
    every = list(names)
    more = len(every) - _NAMED
    return between.join(every[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _other_ids(
    table: str, configuration: Mapping[str, str | None], entries: Iterable[CatalogEntry]
) -> Iterator[Finding]:
    own = next((value for key in _UC_IDS if (value := configuration.get(key))), None)
    listed = [each for each in entries if each.catalog.startswith("uc:") and each.table.id]
    known = {(each.catalog, str(each.table.id).lower()) for each in listed}
    for entry in listed:
        # Each further name of a table has its own id.
        if own is not None and (entry.catalog, own.lower()) not in known:
            yield entry_of_another_table.RULE.finding(
                table,
                f"The log belongs to another table of Unity Catalog than {entry.name}",
                f"look for the table with the id {own}; it may be a copied folder",
                evidence=f"id in the log: {own}; of the entry: {entry.table.id}",
                detail=entry.name,
            )


def _other_columns(table: str, log: LogFacts, entries: Iterable[CatalogEntry]) -> Iterator[Finding]:
    for entry in entries:
        what = _column_differences(entry.table, log)
        if not what:
            continue
        hint = f"update the entry: run the crawler again, or register the table again; {_SYNC}"
        if log.state is None and entry.catalog.partition(":")[0] in CATALOG_SCHEMES:
            address = quote_for_shell(f"{entry.catalog}/{entry.name}")
            hint += f"; `deltaproto inspect {address}` shows the columns"
        yield entry_columns_differ.RULE.finding(
            table,
            f"The entry {entry.name} {what}",
            hint,
            evidence=f"digest of the entry: {entry.table.columns}; of the log: {log.columns}",
            detail=entry.name,
        )


def _column_differences(entry: CatalogTable, log: LogFacts) -> str:
    """Return how the columns differ, as the end of a sentence; empty if they are equal."""
    listed, digest = entry.columns, log.columns
    if listed is None or digest is None:
        return ""
    own = entry.columns_in_full
    if log.state is not None and own is not None:
        metadata = log.state.metadata
        full = schema_columns(metadata.schema, metadata.partition_columns, hive=own.hive)
        differences = full and describe_differences(own, full)
        return f"has different columns from the log: {differences}" if differences else ""
    here, there = listed.partition("-")[0], digest.partition("-")[0]
    columns = counted(int(here), "column")
    match compare_digests(listed, digest):
        case ColumnDifference.NUMBER:
            return f"has {columns}, and the log has {there}"
        case ColumnDifference.NAMES:
            return f"has {columns}, and the log as many, but not with the same names"
        case ColumnDifference.TYPES:
            return "has the columns of the log, but not all with the same types"
        case None:
            return ""


def _other_protocols(
    table: str, protocol: Protocol, entries: Iterable[CatalogEntry]
) -> Iterator[Finding]:
    for entry in entries:
        differences = list(_differences(entry.table.protocol, protocol))
        if differences:
            yield entry_protocol_differs.RULE.finding(
                table,
                f"The properties of the entry {entry.name} state a different protocol from the "
                f"log: {'; '.join(differences)}",
                f"update or remove the properties of the entry; {_SYNC}",
                evidence=f"the log has {protocol}",
                detail=entry.name,
            )


def _differences(stated: DeclaredProtocol | None, protocol: Protocol) -> Iterator[str]:
    if stated is None:
        return
    versions = (
        ("reader", stated.reader, protocol.min_reader_version),
        ("writer", stated.writer, protocol.min_writer_version),
    )
    for which, here, there in versions:
        if here is not None and here != there:
            yield f"{which} version {here} instead of {there}"
    supported = {_feature_key(name) for name in protocol.supported}
    more = [name for name in stated.features if _feature_key(name) not in supported]
    if more:
        yield f"also {', '.join(sorted(more))}"
    listed = {_feature_key(name) for name in stated.features}
    # An entry that lists any features lists all of them.
    missing = [name for name in protocol.listed if _feature_key(name) not in listed]
    if listed and missing:
        yield f"without {', '.join(sorted(missing))}"


def _feature_key(name: str) -> str:
    """Return a key for comparisons, equal for all names of one feature."""
    return "catalogManaged" if name in CATALOG_MANAGED else name.lower()


def _is_missing(location: str) -> bool:
    """Return True if a path is missing here; False if it may be on another machine."""
    place = normalize_location(location)
    return not place.startswith("/") or os.path.isdir(os.path.dirname(place))
