"""The interface of catalog clients, which need no JVM."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from threading import Lock
from typing import NamedTuple
from typing import Protocol as Interface

from deltaproto.counts import counted
from deltaproto.errors import ErrorCode, TableError
from deltaproto.location import Location
from deltaproto.sql.quoting import parse_name, quote_if_needed
from deltaproto.tables.catalogs.described import Columns, DeclaredProtocol

Name = tuple[str, ...]
"""parts of a name: catalog, schema and table, or database and table"""
CATALOG_MANAGED_TYPE = "catalog-managed"
NO_TIMESTAMP = -1
"""the timestamp of a version whose commit is unknown"""


class CatalogTable(NamedTuple):
    """A Delta table, as its catalog describes it."""

    name: str
    """the full name, its parts quoted where necessary"""
    location: str
    """path or URI; empty if the catalog does not show it"""
    type: str
    """`managed`, `external`, `catalog-managed`, or another type in the catalog's own words; empty:
    not known"""
    provider: str = "delta"
    owner: str | None = None
    id: str | None = None
    """the catalog's id of the table, which is not the id in the table's log"""
    protocol: DeclaredProtocol | None = None
    """the protocol in the entry's properties; None: they state none"""
    columns: str | None = None
    """`Columns.digest` of the entry; None: it has no columns, or the catalog did not list them"""
    columns_in_full: Columns | None = None
    """the columns of an entry that was requested individually"""
    link: bool = False
    """whether the entry is a second name by design, such as a resource link of AWS Glue"""

    def without_columns(self) -> CatalogTable:
        """Return the table with only the digest of its columns: lists may be long."""
        return self._replace(columns_in_full=None)


class CatalogFailure(NamedTuple):
    """A part of a catalog that could not be listed: tables in it are missing."""

    place: str
    error: TableError


class Tally(StrEnum):
    """What a client counts."""

    REQUESTS = "requests"
    RETRIES = "retries"
    """requests sent again after a transient error"""
    THROTTLED = "throttled"
    """requests sent again because the catalog limits the rate"""
    VIEWS = "views"
    OTHER_FORMATS = "other formats"
    OWN_CREDENTIALS = "own credentials"
    """tables for which the catalog gave no temporary credentials"""


class CatalogCounts:
    """Counts of one client, safe for threads."""

    def __init__(self) -> None:
        self._counter: Counter[Tally] = Counter()
        self._lock = Lock()
        self.other_places: set[str] = set()
        """locations of tables of other formats"""

    def describe_skipped(self) -> str:
        """Return how many views and tables of other formats were skipped; empty if none."""
        skipped = (
            (self[Tally.VIEWS], "view", "views"),
            (self[Tally.OTHER_FORMATS], "table of another format", "tables of other formats"),
        )
        return " and ".join(counted(*each) for each in skipped if each[0])

    def add(self, what: Tally, number: int = 1) -> None:
        with self._lock:
            self._counter[what] += number

    def add_other_format(self, location: str) -> None:
        """Count a table of another format."""
        self.add(Tally.OTHER_FORMATS)
        self.other_places.add(location)

    def __getitem__(self, what: Tally) -> int:
        return self._counter[what]


class Clock(NamedTuple):
    """Time for retries; tests pass their own."""

    now: Callable[[], float] = time.time
    """seconds since the epoch"""
    sleep: Callable[[float], object] = time.sleep


class CatalogUnavailable(TableError):
    """The catalog as a whole does not answer, or refuses the user: nothing more can be listed."""


class CatalogClient(Interface):
    """One catalog. Its methods may be called by several threads."""

    counts: CatalogCounts
    depth: int
    """number of parts in a table's name"""

    def schemas(self, above: Name) -> Iterator[Name | CatalogFailure]:
        """Yield the schemas at or below the name `above`, which may be empty.

        Raises:
            TableError: when `above` does not exist or may not be listed.
        """
        ...

    def pages(self, schema: Name) -> Iterator[list[CatalogTable]]:
        """Yield the Delta tables of a schema, one page at a time. Counts what it skips.

        Raises:
            TableError: when the schema cannot be listed, or not completely.
        """
        ...

    def schema_location(self, schema: Name) -> str | None:
        """Return the folder of a schema's managed tables; None if the catalog does not show it.

        Raises:
            TableError: when the catalog does not answer.
        """
        ...

    def table(self, name: Name) -> CatalogTable:
        """Return one Delta table.

        Raises:
            TableError: not-found, or not-a-delta-table for views and other formats.
        """
        ...

    def storage_options(self, table: CatalogTable) -> Mapping[str, str]:
        """Return storage options, such as temporary credentials, for reading the table.

        Raises:
            TableError: when the catalog does not answer.
        """
        ...

    def commits(self, table: CatalogTable) -> Mapping[int, int]:
        """Return the newest versions of a catalog-managed table, with their in-commit timestamps.

        Timestamps are in milliseconds. If the catalog does not reveal all of them, one version has
        a timestamp that no commit has.

        Raises:
            TableError: when the catalog does not answer.
        """
        ...

    def credentials(self) -> str:
        """Return the source of the client's credentials for display, never the credentials.

        Raises:
            TableError: permission-denied, when the catalog requires some, and there are none.
        """
        ...


def commits_of(
    client: CatalogClient, table: CatalogTable
) -> Callable[[], Mapping[int, int]] | None:
    """Return a function that queries a catalog-managed table's commits; None for other tables."""
    return partial(client.commits, table) if table.type == CATALOG_MANAGED_TYPE else None


def quoted_name(parts: Name) -> str:
    """Return a name for display and for statements."""
    return ".".join(map(quote_if_needed, parts))


def name_parts(location: Location, depth: int) -> Name:
    """Return the parts of the name in a catalog's address.

    Raises:
        TableError: not-found, when the name has an empty part or more than `depth` parts.
    """
    parts = tuple(parse_name(location.name))
    if (location.name and not parts) or len(parts) > depth:
        example = ".".join(("CATALOG", "SCHEMA", "TABLE")[-depth:])
        raise TableError(
            ErrorCode.NOT_FOUND,
            f"{location.text} is not the name of a table",
            f"write {location.uri.split('/')[0]}//…/{example}; backticks quote other characters",
        )
    return parts


def require_delta(name: Name, table: CatalogTable | None) -> CatalogTable:
    """Return the table.

    Raises:
        TableError: not-a-delta-table, for None; not-found, when its location is not shown.
    """
    if table is None:
        raise TableError(
            ErrorCode.NOT_A_DELTA_TABLE,
            f"{quoted_name(name)} is a view, or a table of another format",
            "pass a Delta table, as only they have a protocol; the catalog describes this one",
        )
    if not table.location:
        raise no_location_error(table.name)
    return table


def no_location_error(name: str) -> TableError:
    """Return the error of a table whose location the catalog does not show."""
    return TableError(
        ErrorCode.NOT_FOUND,
        f"the catalog does not show the location of {name}",
        "request permission to read the table, or read it by name through Spark",
    )
