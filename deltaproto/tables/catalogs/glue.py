"""AWS Glue's Data Catalog, through botocore, with the usual AWS credentials.

Source: "GetDatabases", "GetTables" and "GetTable" of the AWS Glue Web API Reference. A resource
link is an entry whose `TargetTable` or `TargetDatabase` is in another catalog.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from deltaproto.errors import EngineError, ErrorCode, TableError
from deltaproto.redaction import Redactor
from deltaproto.tables.catalogs.backoff import (
    UNREACHABLE,
    TransientError,
    parse_retry_after,
    with_backoff,
)
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

_THROTTLED = (
    "ThrottlingException",
    "Throttling",
    "TooManyRequestsException",
    "RequestLimitExceeded",
)
_TRANSIENT = ("InternalServiceException", "OperationTimeoutException", "ServiceUnavailable")
_REFUSED = (
    *("ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "InvalidSignatureException"),
    *("UnrecognizedClientException", "MissingAuthenticationToken", "RequestExpired"),
)
"""errors that reject the credentials themselves, so every other request would fail, too"""
_DENIED = ("AccessDeniedException", "AccessDenied", "NotAuthorized")
_HINT = "check AWS_PROFILE or the keys in the environment; `aws sts get-caller-identity` shows them"
_CONNECTIONS = 32
_OPTIONS = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
}


class GlueCatalog:
    """The Data Catalog of the account in one region.

    Args:
        options: the user's storage options; keys and profile in them are used for Glue, too.
    """

    depth = 2

    def __init__(
        self, region: str, options: Mapping[str, str], *, clock: Clock | None = None
    ) -> None:
        self._region, self._clock = region, clock or Clock()
        self._redact = Redactor(options)
        around = tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_")))
        self._client, self._source = _open(region, tuple(sorted(options.items())), around)
        self.counts = CatalogCounts()
        self._places: dict[str, str] = {}
        """locations of databases"""
        self._links: set[str] = set()
        """databases that are resource links"""

    def schemas(self, above: Name) -> Iterator[Name | CatalogFailure]:
        if above:
            yield above
            return
        for page in self._pages(self._client.get_databases, "DatabaseList", {}):
            for each in page:
                self._places[each["Name"]] = each.get("LocationUri") or ""
                if each.get("TargetDatabase"):
                    self._links.add(each["Name"])
                yield (each["Name"],)

    def pages(self, schema: Name) -> Iterator[list[CatalogTable]]:
        for page in self._pages(self._client.get_tables, "TableList", {"DatabaseName": schema[0]}):
            yield [
                table.without_columns()
                for each in page
                if (table := self._table((*schema, each["Name"]), each))
            ]

    def schema_location(self, schema: Name) -> str | None:
        if schema[0] not in self._places:
            found = self._call(self._client.get_database, {"Name": schema[0]})["Database"]
            self._places[schema[0]] = found.get("LocationUri") or ""
        return hadoop_path(self._places[schema[0]]) or None

    def table(self, name: Name) -> CatalogTable:
        return require_delta(name, self._table(name, self._get({}, name)))

    def storage_options(self, table: CatalogTable) -> Mapping[str, str]:
        """Return the catalog's region, if the environment names none."""
        named = any(os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION"))
        return {} if named or not table.location.startswith("s3") else {"aws_region": self._region}

    def commits(self, table: CatalogTable) -> Mapping[int, int]:
        """Return nothing: Glue manages no commits."""
        return {}

    def credentials(self) -> str:
        if self._source is None:
            cause = "no AWS credentials were found"
            raise CatalogUnavailable(ErrorCode.PERMISSION_DENIED, cause, _HINT)
        return f"AWS credentials ({self._source})"

    def _table(self, name: Name, found: Mapping[str, Any]) -> CatalogTable | None:
        link = name[0] in self._links
        if target := found.get("TargetTable"):
            link = True
            # A link has no storage of its own, and keeps its own name.
            catalog = {"CatalogId": target["CatalogId"]} if target.get("CatalogId") else {}
            try:
                found = self._get(catalog, (target["DatabaseName"], target["Name"]))
            except CatalogUnavailable:
                raise
            except TableError:
                # Listed without a location, which is reported for this table alone.
                return CatalogTable(quoted_name(name), "", "link")
        storage = found.get("StorageDescriptor") or {}
        table = delta_table(
            name,
            found.get("TableType"),
            found.get("Parameters") or {},
            storage.get("Location"),
            (storage.get("SerdeInfo") or {}).get("Parameters") or {},
            self.counts,
            owner=found.get("Owner"),
            columns=_columns(storage.get("Columns")),
            partitions=_columns(found.get("PartitionKeys")),
        )
        return table and table._replace(link=link)

    def _get(self, catalog: Mapping[str, str], name: Name) -> dict[str, Any]:
        where = {**catalog, "DatabaseName": name[0], "Name": name[1]}
        table: dict[str, Any] = self._call(self._client.get_table, where)["Table"]
        return table

    def _pages(
        self, operation: Callable[..., Any], key: str, where: Mapping[str, str]
    ) -> Iterator[list[dict[str, Any]]]:
        token = ""
        while True:
            found = self._call(operation, {**where, **({"NextToken": token} if token else {})})
            yield found.get(key) or []
            before, token = token, found.get("NextToken") or ""
            if not token:
                return
            if token == before:
                cause = f"Glue in {self._region} answers the same page twice"
                raise TableError(ErrorCode.STORAGE, cause, "run the command again later")

    def _call(self, operation: Callable[..., Any], where: Mapping[str, str]) -> dict[str, Any]:
        def once() -> dict[str, Any]:
            try:
                found: dict[str, Any] = operation(**where)
            except Exception as error:
                raise self._translated(error) from None
            return found

        return with_backoff(once, self.counts, self._clock)

    def _translated(self, error: Exception) -> Exception:
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            HTTPClientError,
        )
        from botocore.exceptions import ConnectionError as NotConnected

        text = self._redact(" ".join(str(error).split())[:300])
        if isinstance(error, HTTPClientError | NotConnected):
            hint = "check the region and the network"
            return TransientError(
                CatalogUnavailable(ErrorCode.STORAGE, f"Glue in {self._region}: {text}", hint),
                tries=UNREACHABLE,
            )
        if isinstance(error, BotoCoreError):
            return CatalogUnavailable(ErrorCode.PERMISSION_DENIED, text, _HINT)
        if not isinstance(error, ClientError):
            return error
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        message = self._redact(str(error.response.get("Error", {}).get("Message", ""))[:300])
        cause = f"Glue in {self._region}: {code}: {message}".rstrip(": ")
        if code in _THROTTLED or status == 429:
            failed = TableError(ErrorCode.STORAGE, cause, "run the command again later")
            headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
            pause = parse_retry_after(headers.get("retry-after"), self._clock.now())
            return TransientError(failed, throttled=True, pause=pause)
        if code in _REFUSED:
            return CatalogUnavailable(ErrorCode.PERMISSION_DENIED, cause, _HINT)
        if code in _DENIED or status == 403:
            hint = "request glue:GetDatabases, glue:GetTables and glue:GetTable"
            return TableError(ErrorCode.PERMISSION_DENIED, cause, hint)
        if code == "EntityNotFoundException":
            return TableError(ErrorCode.NOT_FOUND, cause, "check the name and the region")
        failed = TableError(ErrorCode.STORAGE, cause, "run the command again later")
        return TransientError(failed) if code in _TRANSIENT or status >= 500 else failed


def _columns(found: list[dict[str, str]] | None) -> list[tuple[str, str]]:
    return [(each.get("Name", ""), each.get("Type", "")) for each in found or ()]


@lru_cache(maxsize=8)
def _open(
    region: str, options: tuple[tuple[str, str], ...], around: tuple[tuple[str, str], ...]
) -> tuple[Any, str | None]:
    """Return a client and the source of its credentials; None without credentials.

    `around` is the environment, which the library reads by itself.
    """
    try:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session
    except ImportError:
        raise EngineError(
            "glue:// needs botocore, which is not installed", "pip install botocore"
        ) from None
    given = {key.lower().removeprefix("aws_"): value for key, value in options}
    # Retries are counted, and paced by our clock.
    config = Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=10,
        read_timeout=60,
        max_pool_connections=_CONNECTIONS,
    )
    try:
        session = Session(profile=given.get("profile"))
        keys = {own: given[name] for name, own in _OPTIONS.items() if name in given}
        client = session.create_client("glue", region_name=region, config=config, **keys)
        found = None if keys else session.get_credentials()
        return client, "--storage-option" if keys else found and found.method
    except (BotoCoreError, ValueError) as error:
        text = Redactor(dict(options))(" ".join(str(error).split())[:300])
        raise CatalogUnavailable(ErrorCode.PERMISSION_DENIED, text, _HINT) from None
