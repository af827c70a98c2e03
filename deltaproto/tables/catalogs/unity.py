"""Unity Catalog, as the open-source server and Databricks have it.

Source: Unity Catalog's `api/all.yaml` and, for servers that restrict managed tables to the Delta
API, `api/delta.yaml`. GET with a body for commits: Delta's `UCTokenBasedRestClient`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deltaproto.errors import ErrorCode, TableError
from deltaproto.sql.quoting import parse_name
from deltaproto.tables.catalogs.described import declared_protocol, unity_columns
from deltaproto.tables.catalogs.interface import (
    CATALOG_MANAGED_TYPE,
    NO_TIMESTAMP,
    CatalogCounts,
    CatalogFailure,
    CatalogTable,
    CatalogUnavailable,
    Clock,
    Name,
    Tally,
    quoted_name,
    require_delta,
)
from deltaproto.tables.catalogs.unity_api import UnityApi

_NO_TABLES = "information_schema"
_NOT_REVEALED = 1 << 62
"""a version that does not exist in any table"""


class UnityCatalog:
    """A Unity Catalog server.

    Args:
        authority: host, and port if necessary. Servers on this machine are reached without TLS.
        vends: whether to request temporary credentials for tables.
    """

    depth = 3

    def __init__(self, authority: str, *, vends: bool = True, clock: Clock | None = None) -> None:
        self._authority, self._vends = authority, vends
        self.counts = CatalogCounts()
        self._api = UnityApi(authority, self.counts, clock or Clock())
        self._delta_api_only = False
        """whether managed tables were refused elsewhere, and the Delta API had them"""

    def schemas(self, above: Name) -> Iterator[Name | CatalogFailure]:
        if len(above) == 2:
            yield above
            return
        catalogs = iter([above[0]]) if above else self._names("catalogs", {})
        for catalog in catalogs:
            try:
                for schema in self._names("schemas", {"catalog_name": catalog}):
                    if schema.lower() != _NO_TABLES:
                        yield catalog, schema
            except CatalogUnavailable:
                raise
            except TableError as error:
                if above:
                    raise
                yield CatalogFailure(f"uc://{self._authority}/{quoted_name((catalog,))}", error)

    def pages(self, schema: Name) -> Iterator[list[CatalogTable]]:
        where = {"catalog_name": schema[0], "schema_name": schema[1], "omit_columns": "true"}
        for page in self._api.pages("tables", where):
            tables = map(self._delta_table, page)
            yield [table.without_columns() for table in tables if table is not None]

    def schema_location(self, schema: Name) -> str | None:
        """Return None: Databricks refuses external tables inside managed storage."""
        return None

    def table(self, name: Name) -> CatalogTable:
        from urllib.parse import quote

        found = self._api.request(f"tables/{quote('.'.join(name), safe='')}")
        return require_delta(name, self._delta_table(found))

    def storage_options(self, table: CatalogTable) -> Mapping[str, str]:
        """Return temporary credentials, or none if the catalog does not give any."""
        scheme, separator, _ = table.location.partition("://")
        if not self._vends or not table.id or not separator or scheme.lower() == "file":
            return {}
        try:
            options = self._temporary_credentials(table)
        except CatalogUnavailable:
            raise
        except (TableError, AttributeError, TypeError):
            options = {}
        if not options:
            self.counts.add(Tally.OWN_CREDENTIALS)
        return options

    def _temporary_credentials(self, table: CatalogTable) -> dict[str, str]:
        managed = table.type in ("managed", CATALOG_MANAGED_TYPE)
        if not (managed and self._delta_api_only):
            body = {"table_id": table.id, "operation": "READ"}
            try:
                return storage_credentials(self._api.request("temporary-table-credentials", body))
            except TableError as error:
                denied = error.code is ErrorCode.PERMISSION_DENIED
                if denied or not managed or isinstance(error, CatalogUnavailable):
                    raise
        found = self._api.request(f"{_delta_path(table)}/credentials?operation=READ")
        self._delta_api_only = True
        return delta_api_credentials(found, table.location)

    def commits(self, table: CatalogTable) -> Mapping[int, int]:
        """Return the commits that the server tracks: the unpublished ones, and the newest one.

        If the server does not have this API, the result has only the key `_NOT_REVEALED`.
        """
        found: dict[int, int] = {}
        start = 0
        while True:
            try:
                answer = self._commits_from(table, start)
            except CatalogUnavailable:
                raise
            except TableError:
                return {_NOT_REVEALED: NO_TIMESTAMP}
            listed = answer.get("commits") or []
            try:
                found |= {int(each["version"]): int(each["timestamp"]) for each in listed}
                # -1 before the first commit through the catalog: there is only the published one.
                newest = max(int(answer["latest_table_version"]), 0)
            except (TypeError, KeyError, ValueError):
                raise self._api.malformed("commits without versions and timestamps") from None
            if not listed or max(found) >= newest or max(found) < start:
                return {newest: NO_TIMESTAMP, **found}
            start = max(found) + 1

    def _commits_from(self, table: CatalogTable, start: int) -> Mapping[str, Any]:
        """Return the unpublished commits from a version on, or all of them.

        Raises:
            TableError: when the server does not reveal them.
        """
        if not self._delta_api_only:
            where = {"table_id": table.id or "", "table_uri": table.location}
            body = {**where, "start_version": start}
            try:
                return self._api.request("delta/preview/commits", body, method="GET")
            except CatalogUnavailable:
                raise
            except TableError:
                pass
        found = self._api.request(_delta_path(table))
        self._delta_api_only = True
        return {**found, "latest_table_version": found.get("latest-table-version")}

    def credentials(self) -> str:
        source = self._api.token_source
        return "no token" if source is None else f"token of {source}"

    def _names(self, kind: str, where: Mapping[str, str]) -> Iterator[str]:
        for page in self._api.pages(kind, where):
            for each in page:
                if not isinstance(name := each.get("name"), str) or not name:
                    raise self._api.malformed(f"an entry of {kind} without a name")
                yield name

    def _delta_table(self, found: Mapping[str, Any]) -> CatalogTable | None:
        try:
            return delta_table(found, self.counts)
        except (AttributeError, KeyError, TypeError):
            malformed = "an entry of a table with missing or invalid members"
            raise self._api.malformed(malformed) from None


_MANAGED_BY_CATALOG = ("delta.feature.catalogManaged", "delta.feature.catalogOwned-preview")


def delta_table(found: Mapping[str, Any], counts: CatalogCounts) -> CatalogTable | None:
    """Return a table's description, or None, counted, for a view or another format.

    Raises:
        AttributeError, KeyError, TypeError: when `found` is not the description of a table.
    """
    name = tuple(_text(found[key]) for key in ("catalog_name", "schema_name", "name"))
    type_ = str(found.get("table_type") or "").lower()
    format_ = str(found.get("data_source_format") or "").lower()
    if "view" in type_:
        counts.add(Tally.VIEWS)
        return None
    if format_ != "delta":
        counts.add_other_format(str(found.get("storage_location") or ""))
        return None
    properties = found.get("properties") or {}
    managed = any(properties.get(name) == "supported" for name in _MANAGED_BY_CATALOG)
    columns = unity_columns(found.get("columns") or ())
    return CatalogTable(
        quoted_name(name),
        _text_or_none(found.get("storage_location") or None) or "",
        CATALOG_MANAGED_TYPE if managed else type_,
        owner=_text_or_none(found.get("owner")),
        id=_text_or_none(found.get("table_id")),
        protocol=declared_protocol(properties),
        columns=columns and columns.digest,
        columns_in_full=columns,
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _delta_path(table: CatalogTable) -> str:
    """Return the path of a table in the Delta API."""
    from urllib.parse import quote

    catalog, schema, name = (quote(part, safe="") for part in parse_name(table.name))
    return f"delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{name}"


def storage_credentials(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the storage options of a response; Google's tokens cannot be used in options."""
    aws = given.get("aws_temp_credentials") or {}
    azure = given.get("azure_user_delegation_sas") or {}
    return _storage_options(
        *(aws.get(name) for name in ("access_key_id", "secret_access_key", "session_token")),
        azure.get("sas_token"),
    )


def delta_api_credentials(given: Mapping[str, Any], location: str) -> dict[str, str]:
    """Return the storage options of a response of the Delta API for a table's location.

    Of several credentials, those with the longest matching prefix are for it.
    """
    found = [
        each
        for each in given.get("storage-credentials") or ()
        if f"{location.rstrip('/')}/".startswith(f"{str(each.get('prefix')).rstrip('/')}/")
    ]
    config = max(found, key=lambda each: len(each["prefix"]))["config"] if found else {}
    keys = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token", "azure.sas-token")
    return _storage_options(*map(config.get, keys))


_OPTIONS = (
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "azure_storage_sas_token",
)


def _storage_options(*values: object) -> dict[str, str]:
    """Return `_OPTIONS` with these values, without missing ones."""
    return {name: str(value) for name, value in zip(_OPTIONS, values, strict=True) if value}
