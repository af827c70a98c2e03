"""Unity Catalog's REST API, as the open-source server and Databricks have it.

Source: Unity Catalog's `api/all.yaml`, and "Unity Catalog tables" of the Databricks REST API: a
page may be empty although another one follows. GET with a body for commits: Delta's
`UCTokenBasedRestClient`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deltaproto.errors import ErrorCode, TableError
from deltaproto.redaction import Redactor
from deltaproto.tables.catalogs.backoff import (
    UNREACHABLE,
    TransientError,
    parse_retry_after,
    with_backoff,
)
from deltaproto.tables.catalogs.described import columns_digest, declared_protocol
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
from deltaproto.tables.catalogs.unity_http import Answer, send
from deltaproto.tables.catalogs.unity_token import HINT, base_url, find_token

_API = "/api/2.1/unity-catalog"
_NO_TABLES = "information_schema"
_NOT_REVEALED = 1 << 62
"""a version that no table has"""
_TRANSIENT = (429, 500, 502, 503, 504)
_MANAGED_BY_CATALOG = ("delta.feature.catalogManaged", "delta.feature.catalogOwned-preview")


class UnityCatalog:
    """A Unity Catalog server.

    Args:
        authority: host, and port if necessary. Servers on this machine are reached without TLS.
        vends: whether to request temporary credentials for tables.
    """

    depth = 3

    def __init__(self, authority: str, *, vends: bool = True, clock: Clock | None = None) -> None:
        self._authority, self._url = authority, base_url(authority)
        self._vends, self._clock = vends, clock or Clock()
        self._token = find_token(authority)
        self.counts = CatalogCounts()

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
        for page in self._pages("tables", where):
            yield [table for each in page if (table := self._table(each)) is not None]

    def schema_location(self, schema: Name) -> str | None:
        """Return None: Databricks refuses external tables inside managed storage."""
        return None

    def table(self, name: Name) -> CatalogTable:
        from urllib.parse import quote

        found = self._get(f"{_API}/tables/{quote('.'.join(name), safe='')}")
        return require_delta(name, self._table(found))

    def storage_options(self, table: CatalogTable) -> Mapping[str, str]:
        """Return temporary credentials, or none if the catalog does not give any."""
        scheme, separator, _ = table.location.partition("://")
        if not self._vends or not table.id or not separator or scheme.lower() == "file":
            return {}
        body = {"table_id": table.id, "operation": "READ"}
        try:
            given = self._request(f"{_API}/temporary-table-credentials", body)
        except CatalogUnavailable:
            raise
        except TableError:
            given = {}
        options = _credentials(given)
        if not options:
            self.counts.add(Tally.OWN_CREDENTIALS)
        return options

    def commits(self, table: CatalogTable) -> Mapping[int, int]:
        """Return the commits that the server tracks, which are not published yet, and its newest.

        A server without this API reveals nothing.
        """
        found: dict[int, int] = {}
        start = 0
        where = {"table_id": table.id or "", "table_uri": table.location}
        while True:
            body = {**where, "start_version": start}
            try:
                answer = self._request(f"{_API}/delta/preview/commits", body, method="GET")
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
                raise self._malformed("commits without versions and timestamps") from None
            if not listed or max(found) >= newest or max(found) < start:
                return {newest: NO_TIMESTAMP, **found}
            start = max(found) + 1

    def credentials(self) -> str:
        return "no token" if self._token is None else f"token of {self._token.source}"

    def _names(self, kind: str, where: Mapping[str, str]) -> Iterator[str]:
        for page in self._pages(kind, where):
            yield from (str(each["name"]) for each in page if each.get("name"))

    def _pages(self, kind: str, where: Mapping[str, str]) -> Iterator[list[dict[str, Any]]]:
        from urllib.parse import urlencode

        token = ""
        while True:
            query = {**where, "max_results": "0", **({"page_token": token} if token else {})}
            found = self._get(f"{_API}/{kind}?{urlencode(query)}")
            page = found.get(kind) or []
            if not isinstance(page, list) or not all(isinstance(each, dict) for each in page):
                raise self._malformed(f"{kind} is not a list of objects")
            yield page
            before, token = token, str(found.get("next_page_token") or "")
            if not token:
                return
            if token == before:
                raise self._malformed("the same page token twice")

    def _table(self, found: Mapping[str, Any]) -> CatalogTable | None:
        type_ = str(found.get("table_type") or "").lower()
        format_ = str(found.get("data_source_format") or "").lower()
        if "view" in type_:
            self.counts.add(Tally.VIEWS)
            return None
        if format_ != "delta":
            self.counts.add_other_format(str(found.get("storage_location") or ""))
            return None
        properties = found.get("properties") or {}
        managed = any(properties.get(name) == "supported" for name in _MANAGED_BY_CATALOG)
        name = tuple(str(found.get(key)) for key in ("catalog_name", "schema_name", "name"))
        return CatalogTable(
            quoted_name(name),
            str(found.get("storage_location") or ""),
            CATALOG_MANAGED_TYPE if managed else type_,
            owner=found.get("owner"),
            id=found.get("table_id"),
            protocol=declared_protocol(properties),
            columns=columns_digest(each.get("name") for each in found.get("columns") or ()),
        )

    def _get(self, path: str) -> dict[str, Any]:
        return self._request(path, None)

    def _request(
        self, path: str, body: Mapping[str, Any] | None, *, method: str | None = None
    ) -> dict[str, Any]:
        def once() -> dict[str, Any]:
            token = self._token and self._token.text
            return self._parse(send(self._url + path, token, body, method))

        return with_backoff(self._with_new_token(once), self.counts, self._clock)

    def _with_new_token(self, once: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        """Return `once`, repeated if the token was replaced in its file since it was read."""

        def twice() -> dict[str, Any]:
            try:
                return once()
            except CatalogUnavailable as error:
                if error.code is not ErrorCode.PERMISSION_DENIED:
                    raise
                used, self._token = self._token, find_token(self._authority)
                if self._token == used:
                    raise
            return once()

        return twice

    def _parse(self, answer: Answer) -> dict[str, Any]:
        if answer.status is None:
            cause = f"{self._authority} does not answer: {answer.text}"
            hint = "check the host, its port and the network"
            unreachable = CatalogUnavailable(ErrorCode.STORAGE, cause, hint)
            raise TransientError(unreachable, tries=UNREACHABLE)
        if answer.status != 200:
            raise self._error(answer)
        try:
            found = json.loads(answer.text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self._malformed("no JSON object")
        return found

    def _error(self, answer: Answer) -> Exception:
        message = self._message(answer.text)
        text = f"{self._authority}: {message}" if message else self._authority
        match answer.status:
            case 401:
                cause = "refuses the token" if self._token else "requires a token"
                return CatalogUnavailable(
                    ErrorCode.PERMISSION_DENIED,
                    f"{self._authority} {cause}: it is missing, wrong or expired",
                    HINT,
                )
            case 403:
                hint = "request USE CATALOG, USE SCHEMA and BROWSE or SELECT"
                return TableError(ErrorCode.PERMISSION_DENIED, text, hint)
            case 404:
                return TableError(ErrorCode.NOT_FOUND, text, "check the name, and your permissions")
            case status if status in _TRANSIENT:
                pause = parse_retry_after(answer.retry_after, self._clock.now())
                failed = TableError(
                    ErrorCode.STORAGE, f"{text} (HTTP {status})", "run the command again later"
                )
                throttled = status == 429 or pause is not None
                return TransientError(failed, throttled=throttled, pause=pause)
            case status:
                hint = "check that Unity Catalog's API is at this host"
                return TableError(ErrorCode.STORAGE, f"{text} (HTTP {status})", hint)

    def _message(self, text: str) -> str:
        try:
            message = str(json.loads(text)["message"])
        except (ValueError, KeyError, TypeError):
            return ""
        line = " ".join(message.split())[:300]
        return Redactor({"token": self._token.text if self._token else ""})(line)

    def _malformed(self, what: str) -> TableError:
        cause = f"{self._authority} answers unlike Unity Catalog: {what}"
        return TableError(ErrorCode.STORAGE, cause, "check that its API is at this host")


def _credentials(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the storage options of a response; Google's tokens cannot be used in options."""
    aws = given.get("aws_temp_credentials") or {}
    azure = given.get("azure_user_delegation_sas") or {}
    options = {
        "aws_access_key_id": aws.get("access_key_id"),
        "aws_secret_access_key": aws.get("secret_access_key"),
        "aws_session_token": aws.get("session_token"),
        "azure_storage_sas_token": azure.get("sas_token"),
    }
    return {name: str(value) for name, value in options.items() if value}
