"""The clients that made the newest commits of a fleet's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.errors import UsageError
from deltaproto.protocol.writers import identify_name

if TYPE_CHECKING:
    from deltaproto.clients.catalog import ClientCatalog


class LastWriters(NamedTuple):
    """The writers of the newest commits of an inventory's tables. Readers leave no commits."""

    tables: int
    clients: Mapping[str, int]
    """number of tables by `ID@VERSION`"""
    without_version: Mapping[str, int]
    """number of tables by client id, for commits that do not show the client's version"""
    unidentified: Mapping[str, int]
    """number of tables by the engine's recorded name"""
    unnamed: int
    """number of tables whose newest commit names no writer, or was not read by the scan"""
    highest: tuple[int, int]
    """the highest reader and the highest writer version"""

    @property
    def unknown(self) -> int:
        """The number of tables whose last writer cannot be evaluated."""
        return self.tables - sum(self.clients.values())


def summarize_rows(rows: Iterable[Mapping[str, Any]], catalog: ClientCatalog) -> LastWriters:
    """Count the writers of rows of the inventory's `tables`."""
    clients: Counter[str] = Counter()
    without_version: Counter[str] = Counter()
    unidentified: Counter[str] = Counter()
    tables = unnamed = reader = writer = 0
    for row in rows:
        tables += 1
        reader = max(reader, row["min_reader_version"])
        writer = max(writer, row["min_writer_version"])
        name = row["last_engine"]
        if not name:
            unnamed += 1
            continue
        client, version = identify_name(name)
        if client is None:
            unidentified[name] += 1
        elif version is None or not _is_version(catalog, client, version):
            without_version[client] += 1
        else:
            clients[f"{client}@{version}"] += 1
    highest = (reader, writer)
    return LastWriters(tables, clients, without_version, unidentified, unnamed, highest)


def _is_version(catalog: ClientCatalog, client: str, version: str) -> bool:
    try:
        catalog.resolve(f"{client}@{version}")
    except UsageError:
        return False
    return True
