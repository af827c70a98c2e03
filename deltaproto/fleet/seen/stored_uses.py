"""The inventory's table `clients_seen`: what all runs of `deltaproto discover` counted.

Each run adds the commits and the access log files that no earlier run counted, in one commit. The
rows outlive the logs, which tables and stores delete after weeks. A row is about one client on one
table: its commits or its requests. One more row, without a location, names the counted files.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.clients.model import Access
from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.fleet.inventory import InventoryTables, open_inventory_tables
from deltaproto.fleet.scan import new_scan_id
from deltaproto.fleet.scan_history import sql_literal
from deltaproto.fleet.schemas import (
    Inventory,
    inventory_schema,
    is_inventory,
    missing_inventory_error,
)
from deltaproto.fleet.seen.collect import INVENTORY_SOURCE, Discovery, Source
from deltaproto.fleet.seen.commits import PRIVATE_MARKS, ReadUpTo
from deltaproto.fleet.seen.log_files import CountedFile
from deltaproto.fleet.seen.requests import AGENT_MARK
from deltaproto.fleet.seen.times import Times
from deltaproto.fleet.seen.user_agents import product_of
from deltaproto.fleet.seen.uses import (
    Client,
    Mark,
    Name,
    PrincipalKind,
    SeenClient,
    SeenTable,
    SeenUses,
    Usage,
    shorten,
)
from deltaproto.protocol.writers import Confidence

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaproto.fleet.overview import Overview

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_HOURS = range(0, 8000 * 365 * 24)
"""hours since the epoch that a run stores: commits can claim any time"""
_EMPTY: Mapping[str, Any] = dict.fromkeys(
    (
        *("location", "table", "table_id", "first_version", "last_version", "client"),
        *("client_version", "mark", "confidence", "could_be", "setting", "access", "commits"),
        *("requests", "principals", "evidence", "files"),
    )
)
_MOST_RUNS = 30
"""runs after which their rows are merged"""
_HASHED = re.compile(r"sha256:[0-9a-f]{16}")


class StoredUses(NamedTuple):
    """What the runs counted."""

    uses: SeenUses
    """by the tables' locations"""
    names: Mapping[str, str]
    """name of each table by its location, as the newest run named it"""
    counted: Mapping[str, ReadUpTo]
    """the newest counted commit of each table, by its location"""
    gaps: frozenset[str]
    """locations of tables whose log lost commits before a run counted them"""
    files: frozenset[CountedFile]
    last_run: datetime
    """when the newest run began"""
    last_id: str
    """id of the newest run"""
    runs: int

    def added_to(self, found: Discovery, source: str) -> Discovery:
        """Return a discovery with these uses as well; call it once.

        Args:
            source: name of this source.
        """
        now = {place: name for name, place in found.places.items()}
        self.uses.rename_tables({**self.names, **now})
        counts = [(client.id, seen.all.count) for client, seen in self.uses.clients.items()]
        every = sum(count for _, count in counts)
        known = sum(count for client, count in counts if client is not None)
        self.uses.include(found.uses)
        sources = (Source(source, INVENTORY_SOURCE, every, known, 0), *found.sources)
        return found._replace(uses=self.uses, sources=sources)


def require_stored(name: str, storage_options: Mapping[str, str]) -> StoredUses:
    """Read what the runs counted in the inventory `name`.

    Raises:
        UsageError: when it is not an inventory, or has no run.
        TableError: like `read_stored`.
    """
    if not is_inventory(name, storage_options):
        raise missing_inventory_error(name)
    stored = read_stored(open_inventory_tables(name, storage_options))
    if stored is None:
        raise UsageError(
            f"{name} has no {Inventory.CLIENTS_SEEN}",
            f"count them with `deltaproto discover {name}`",
        )
    return stored


def add_clients_seen(overview: Overview, name: str, storage_options: Mapping[str, str]) -> Overview:
    """Add what the runs counted to the data of a report. Raises like `require_stored`."""
    stored = read_stored(open_inventory_tables(name, storage_options))
    if stored is None:
        return overview
    return overview._replace(clients_seen=stored.uses, counted_at=stored.last_run)


def read_stored(inventory: InventoryTables, *, pseudonymize: bool = False) -> StoredUses | None:
    """Read what the runs counted; None if there were none.

    Args:
        pseudonymize: replace the names of principals that were stored in clear text by hashes.

    Raises:
        TableError: when the inventory cannot be read.
        TableError: corrupt-log, when a row has values that no run writes.
    """
    uses = SeenUses(pseudonymize=pseudonymize)
    names: dict[str, str] = {}
    counted: dict[str, ReadUpTo] = {}
    gaps: set[str] = set()
    files: set[CountedFile] = set()
    last: tuple[datetime, str] | None = None
    runs = 0
    if not inventory.has_table(Inventory.CLIENTS_SEEN):
        return None
    rows = _rows(inventory)
    try:
        for run in _runs(rows):
            before = dict(counted)
            runs += 1
            for row in run:
                last = row["ran_at"].astimezone(UTC), row["run_id"]
                if row["location"] is None:
                    files.update(CountedFile(each["name"], each["size"]) for each in row["files"])
                elif _is_new(row, before):
                    names[row["location"]] = row["table"]
                    if row["last_version"] is not None:
                        gaps.update((row["location"],) if _has_gap(row, before) else ())
                        counted[row["location"]] = ReadUpTo(row["table_id"], row["last_version"])
                    _include(row, uses)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise TableError(
            ErrorCode.CORRUPT_LOG,
            f"the inventory's table {Inventory.CLIENTS_SEEN} has a value that no run of discover "
            f"writes: {error}",
            "the inventory is damaged; delete this table, and the next run creates it again",
        ) from None
    if last is None:
        return None
    return StoredUses(uses, names, counted, frozenset(gaps), frozenset(files), *last, runs)


def _rows(inventory: InventoryTables) -> list[dict[str, Any]]:
    """Return all rows, the oldest run first."""
    table = inventory.wait_for(inventory.readable(Inventory.CLIENTS_SEEN).to_pyarrow_table)
    return sorted(table.to_pylist(), key=lambda row: row["run_id"])


def _runs(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for _, run in groupby(rows, key=lambda row: row["run_id"]):
        yield list(run)


def _is_new(row: Mapping[str, Any], before: Mapping[str, ReadUpTo]) -> bool:
    """Return False for commits that an earlier run counted."""
    earlier = before.get(row["location"])
    if row["last_version"] is None or earlier is None or earlier.table_id != row["table_id"]:
        return True
    return bool(row["first_version"] > earlier.version)


def _has_gap(row: Mapping[str, Any], before: Mapping[str, ReadUpTo]) -> bool:
    """Return True if commits are missing between these and the commits of earlier runs."""
    if row["first_version"] is None:
        return True
    earlier = before.get(row["location"])
    same = earlier is not None and earlier.table_id == row["table_id"]
    return earlier is not None and same and bool(row["first_version"] > earlier.version + 1)


def _include(row: Mapping[str, Any], uses: SeenUses) -> None:
    seen = SeenClient(Confidence(row["confidence"]))
    seen.could_be, seen.setting = tuple(row["could_be"] or ()), row["setting"]
    table = seen.tables[row["location"]] = SeenTable()
    _fill(seen, row)
    _fill(table, row)
    for each in row["principals"] or ():
        name, usage = Name(PrincipalKind(each["kind"]), _hide(each["name"], uses)), Usage()
        _fill(usage, each)
        for principals in (seen.principals, table.principals):
            principals.setdefault(name, Usage()).include(usage)
    for each in row["evidence"] or ():
        mark = Mark(each["field"], _show(each["field"], each["value"], uses))
        seen.evidence[mark] = seen.evidence.get(mark, 0) + each["count"]
    client = Client(row["client"], row["client_version"], row["mark"])
    mine = uses.client(client, seen.confidence)
    mine.could_be, mine.setting = seen.could_be, seen.setting
    mine.include(seen)


def _hide(text: str, uses: SeenUses) -> str:
    return text if _HASHED.fullmatch(text) else uses.hide(text)


def _show(field: str, text: str, uses: SeenUses) -> str:
    if field in PRIVATE_MARKS:
        return _hide(text, uses)
    # The end of a user agent may name a cluster.
    return product_of(text) if uses.pseudonymize and field == AGENT_MARK else shorten(text)


def _fill(usage: Usage, row: Mapping[str, Any]) -> None:
    usage.access.update(map(Access, row["access"] or ()))
    usage.commits, usage.requests = (_times(row[kind]) for kind in ("commits", "requests"))


def _times(stored: Mapping[str, Any]) -> Times:
    first, last = (
        None if each is None else (each.astimezone(UTC) - _EPOCH) // _MILLISECOND
        for each in (stored["first"], stored["last"])
    )
    return Times.of(stored["count"], first, last, stored["hours"] or ())


def store_run(
    inventory: InventoryTables,
    stored: StoredUses | None,
    began: datetime,
    found: Discovery,
    writers: SeenUses,
) -> bool:
    """Add what a run counted to the inventory, except for tables with an incomplete log.

    The rows of many runs are replaced by their sums, so that reading stays fast.

    Args:
        stored: what `read_stored` returned before the run; the tables of its `uses` are still
            locations.
        found: the run; its `uses` are from requests.
        writers: the uses of commits.

    Returns:
        False, without adding anything, if another run has added counts since then: anything counted
        by both would count twice.

    Raises:
        UsageError: when the inventory cannot be written.
    """
    many = stored if stored is not None and stored.runs >= _MOST_RUNS else None
    if many is not None and not _merge_runs(inventory, many):
        return False
    run_id = new_scan_id(began)
    if stored is not None and run_id <= stored.last_id:
        # The other machine's clock is ahead. Keep ids in the order of the runs.
        run_id = f"{stored.last_id}~"
    readers = _of_clients(found.uses, found.places, found.places)
    rows = _table(run_id, began, found.files, chain(_of_writers(writers, found), readers))
    added = inventory.append_if_unchanged(Inventory.CLIENTS_SEEN, rows)
    if added and many is not None:
        inventory.vacuum(Inventory.CLIENTS_SEEN)
    return added


def _merge_runs(inventory: InventoryTables, stored: StoredUses) -> bool:
    places = {place: place for place in stored.names}
    rows = (
        {**row, "table": stored.names[row["location"]], **_versions(stored, row["location"])}
        for row in _of_clients(stored.uses, places, places)
    )
    return inventory.replace_if_unchanged(
        Inventory.CLIENTS_SEEN,
        f"run_id <= {sql_literal(stored.last_id)}",
        _table(stored.last_id, stored.last_run, stored.files, rows),
    )


def _versions(stored: StoredUses, location: str) -> dict[str, Any]:
    done = stored.counted.get(location)
    if done is None:
        return {}
    first = None if location in stored.gaps else 0
    return {"first_version": first, "last_version": done.version, "table_id": done.table_id}


def _table(
    run_id: str, began: datetime, files: Iterable[CountedFile], rows: Iterable[dict[str, Any]]
) -> pa.Table:
    import pyarrow as pa

    keys = {"run_id": run_id, "ran_at": began}
    known = [each._asdict() for each in files if each.size is not None]
    every = [{**_EMPTY, **keys, "files": known}, *({**row, **keys} for row in rows)]
    return pa.Table.from_pylist(every, schema=inventory_schema(Inventory.CLIENTS_SEEN))


def _of_writers(writers: SeenUses, found: Discovery) -> Iterator[dict[str, Any]]:
    for row in _of_clients(writers, found.places, found.read):
        done = found.read[row["table"]]
        versions = {"first_version": done.oldest_version, "last_version": done.newest_version}
        yield {**row, **versions, "table_id": done.table_id}


def _of_clients(
    uses: SeenUses, places: Mapping[str, str], only: Container[str]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each client and table; the first of a client has its evidence."""
    for client, seen in uses.clients.items():
        evidence = [
            {"field": mark.field, "value": mark.text, "count": count} for mark, count in seen.marks
        ]
        for table in filter(only.__contains__, seen.tables):
            usage = seen.tables[table]
            yield {
                **_EMPTY,
                "location": places[table],
                "table": table,
                "client": client.id,
                "client_version": client.version,
                "mark": client.mark,
                "confidence": str(seen.confidence),
                "could_be": list(seen.could_be),
                "setting": seen.setting,
                **_usage(usage),
                "principals": [
                    {"kind": str(name.kind), "name": name.text, **_usage(each)}
                    for name, each in usage.principals.items()
                ],
                "evidence": evidence,
            }
            evidence = []


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "access": [str(access) for access in Access if access in usage.access],
        "commits": _stored(usage.commits),
        "requests": _stored(usage.requests),
    }


def _stored(times: Times) -> dict[str, Any]:
    return {
        "count": times.count,
        "first": _moment(times.first),
        "last": _moment(times.last),
        "hours": [hour for hour in times.hours if hour in _HOURS],
    }


def _moment(milliseconds: int | None) -> datetime | None:
    if milliseconds is None or milliseconds // 3_600_000 not in _HOURS:
        return None
    return _EPOCH + milliseconds * _MILLISECOND
