"""A Hive metastore, by Thrift.

Source: `hive_metastore.thrift` of Hive 2.3 to 4.0 (`ThriftHiveMetastore`; field numbers of `Table`,
`StorageDescriptor` and `SerDeInfo`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.catalogs.backoff import UNREACHABLE, TransientError, with_backoff
from deltaproto.tables.catalogs.hive_tables import delta_table, hadoop_path
from deltaproto.tables.catalogs.interface import (
    CatalogCounts,
    CatalogFailure,
    CatalogTable,
    CatalogUnavailable,
    Clock,
    Name,
    quoted_name,
    require_delta,
)
from deltaproto.tables.catalogs.thrift import (
    DeclaredError,
    ThriftConnection,
    ThriftError,
    Wanted,
)

_PORT = 9083
_PAGE = 200
"""tables per request; a table with many columns has a description of 100 KB"""
_SECONDS = 60.0
_NAME, _OWNER, _STORAGE, _PARTITIONS, _PARAMETERS, _TYPE = 1, 3, 7, 8, 9, 12
_COLUMNS, _LOCATION, _SERDE, _SERDE_PARAMETERS = 1, 2, 7, 3
_COLUMN: Wanted = {1: {}, 2: {}}
"""name and type"""
_DATABASE_LOCATION = 3
_TABLE: Wanted = {
    _NAME: {},
    _OWNER: {},
    _STORAGE: {_COLUMNS: _COLUMN, _LOCATION: {}, _SERDE: {_SERDE_PARAMETERS: {}}},
    _PARTITIONS: _COLUMN,
    _PARAMETERS: {},
    _TYPE: {},
}
_MISSING = {"get_table": 2, "get_database": 1}
"""number of the exception for an object that does not exist"""
_SECURED = "if it requires Kerberos or TLS, read its tables through Spark, by name"


class HiveMetastore:
    """A Hive metastore without Kerberos or TLS.

    Args:
        authority: host, and port if it is not 9083.

    Raises:
        TableError: not-found, for an invalid port.
    """

    depth = 2

    def __init__(self, authority: str, *, clock: Clock | None = None) -> None:
        host, colon, port = authority.rpartition(":")
        if not colon or authority.endswith("]"):
            host, port = authority, str(_PORT)
        if not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise TableError(
                ErrorCode.NOT_FOUND, f"{port} is not a port", "write hms://HOST:PORT/DATABASE"
            )
        self._authority, self._at = authority, (host.strip("[]"), int(port))
        self._clock = clock or Clock()
        self._own = threading.local()
        self.counts = CatalogCounts()

    def schemas(self, above: Name) -> Iterator[Name | CatalogFailure]:
        if above:
            # The list of tables of a missing database is empty.
            self._call("get_database", above[0], wanted={_NAME: {}})
            yield above
            return
        yield from ((name,) for name in self._names("get_all_databases"))

    def pages(self, schema: Name) -> Iterator[list[CatalogTable]]:
        names = self._names("get_all_tables", schema[0])
        for begin in range(0, len(names), _PAGE):
            page = names[begin : begin + _PAGE]
            found = self._call("get_table_objects_by_name", schema[0], page, wanted=_TABLE)
            with self._of_hive():
                tables = [self._table((*schema, each[_NAME]), each) for each in found]
            yield [table.without_columns() for table in tables if table is not None]

    def schema_location(self, schema: Name) -> str | None:
        found = self._call("get_database", schema[0], wanted={_DATABASE_LOCATION: {}})
        with self._of_hive():
            return hadoop_path(found.get(_DATABASE_LOCATION) or "") or None

    def table(self, name: Name) -> CatalogTable:
        found = self._call("get_table", *name, wanted=_TABLE)
        with self._of_hive():
            # The metastore's own names are in lower case.
            table = self._table((name[0].lower(), found[_NAME]), found)
        return require_delta(name, table)

    def storage_options(self, table: CatalogTable) -> Mapping[str, str]:
        """Return no options: a metastore has no credentials."""
        return {}

    def commits(self, table: CatalogTable) -> Mapping[int, int]:
        """Return nothing: a metastore manages no commits."""
        return {}

    def credentials(self) -> str:
        return "none: metastores without Kerberos need none"

    def _table(self, name: Name, found: Mapping[int, Any]) -> CatalogTable | None:
        if not all(isinstance(part, str) for part in name):
            raise TypeError
        storage = found.get(_STORAGE) or {}
        return delta_table(
            name,
            found.get(_TYPE),
            found.get(_PARAMETERS) or {},
            storage.get(_LOCATION),
            (storage.get(_SERDE) or {}).get(_SERDE_PARAMETERS) or {},
            self.counts,
            owner=found.get(_OWNER),
            columns=_columns(storage.get(_COLUMNS)),
            partitions=_columns(found.get(_PARTITIONS)),
        )

    def _names(self, method: str, *arguments: str) -> list[str]:
        found = self._call(method, *arguments, wanted={})
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self._malformed("its response is not a list of names")
        return found

    @contextmanager
    def _of_hive(self) -> Iterator[None]:
        """Convert a response; members of other types show that it is not from a metastore."""
        try:
            yield
        except (AttributeError, KeyError, TypeError):
            raise self._malformed("its response has missing or invalid members") from None

    def _malformed(self, what: object) -> CatalogUnavailable:
        cause = f"{self._authority} does not respond like a Hive metastore: {what}"
        return CatalogUnavailable(ErrorCode.STORAGE, cause, _SECURED)

    def _call(self, method: str, *arguments: str | Sequence[str], wanted: Wanted) -> Any:
        def once() -> Any:
            try:
                return self._connection().call(method, *arguments, wanted=wanted)
            except DeclaredError as error:
                raise self._refused(method, arguments, error) from None
            except ThriftError as error:
                self._disconnect()
                raise self._malformed(error) from None
            except OSError as error:
                self._disconnect()
                cause = f"{self._authority} does not answer: {error.strerror or error}"
                raise TransientError(
                    CatalogUnavailable(
                        ErrorCode.STORAGE, cause, f"check the host and its port; {_SECURED}"
                    ),
                    tries=UNREACHABLE,
                ) from None

        return with_backoff(once, self.counts, self._clock)

    def _refused(
        self, method: str, arguments: Sequence[str | Sequence[str]], error: DeclaredError
    ) -> TableError:
        message = " ".join(error.message.split())[:300]
        cause = f"{self._authority}: {message}"
        if _MISSING.get(method) == error.field:
            name = quoted_name(tuple(each for each in arguments if isinstance(each, str)))
            what = "table" if method == "get_table" else "database"
            return TableError(
                ErrorCode.NOT_FOUND, f"{self._authority} has no {what} {name}", "check the name"
            )
        if any(sign in message.lower() for sign in ("permission", "denied", "authoriz")):
            hint = "request permission to read the database's metadata"
            return TableError(ErrorCode.PERMISSION_DENIED, cause, hint)
        return TableError(ErrorCode.STORAGE, cause, "see the metastore's log")

    def _connection(self) -> ThriftConnection:
        found: ThriftConnection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = ThriftConnection(*self._at, _SECONDS)
        return found

    def _disconnect(self) -> None:
        found: ThriftConnection | None = getattr(self._own, "connection", None)
        self._own.connection = None
        if found is not None:
            found.close()


def _columns(found: list[Mapping[int, str]] | None) -> list[tuple[str, str]]:
    return [(each.get(1, ""), each.get(2, "")) for each in found or ()]
