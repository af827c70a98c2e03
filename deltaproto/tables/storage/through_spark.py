"""Stores that are read through Spark, and Hadoop settings for storage options.

Gives Spark the same access as the log reader. Sources: Hadoop's documentation of S3A, ABFS and the
GCS connector; the options are object_store's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

from deltaproto.errors import ErrorCode, TableError
from deltaproto.redaction import Redactor
from deltaproto.tables.storage.errors import DENIED, StorageRefusal, classify_refusal
from deltaproto.tables.storage.interface import (
    STAGED_COMMITS,
    FolderEntry,
    check_size,
    file_gone_error,
)
from deltaproto.tables.storage.opening import profile_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# deltalake uses s3://; open-source Hadoop supports only s3a://.
_IMPLEMENTATION = {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
# Timeouts for an unresponsive store: Hadoop's defaults add up to more than five minutes.
_PATIENCE = {"fs.s3a.attempts.maximum": "3", "fs.s3a.retry.limit": "3"}
_AZURE_PATIENCE = {"fs.azure.io.retry.max.retries": "3"}
_GOOGLE = {"fs.gs.impl": "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"}
_S3A = "fs.s3a."
_TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
_AZURE_HINT = "in Spark, write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"
_JAR_HINT = "pass the jars of its file system and of Delta: --spark-conf spark.jars=PATH,PATH"
_ONLY_DELTA_RS = ("az", "adl", "azure")
_TOKENS = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
_TRUE = ("true", "1", "t", "yes", "y", "on")
# Other names of the same option.
_ALIASES = {
    "aws_endpoint": "aws_endpoint_url",
    "endpoint": "aws_endpoint_url",
    "endpoint_url": "aws_endpoint_url",
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "token": "aws_session_token",
    "aws_token": "aws_session_token",
    "aws_default_region": "aws_region",
    "default_region": "aws_region",
    "region": "aws_region",
    "skip_signature": "aws_skip_signature",
    "virtual_hosted_style_request": "aws_virtual_hosted_style_request",
    "allow_http": "aws_allow_http",
    "account_name": "azure_storage_account_name",
    "account_key": "azure_storage_account_key",
    "access_key": "azure_storage_account_key",
    "azure_storage_access_key": "azure_storage_account_key",
    "client_id": "azure_client_id",
    "azure_storage_client_id": "azure_client_id",
    "client_secret": "azure_client_secret",
    "azure_storage_client_secret": "azure_client_secret",
    "tenant_id": "azure_tenant_id",
    "azure_storage_tenant_id": "azure_tenant_id",
    "authority_id": "azure_tenant_id",
    "sas_token": "azure_storage_sas_token",
    "sas_key": "azure_storage_sas_token",
    "azure_storage_sas_key": "azure_storage_sas_token",
    "google_application_credentials": "google_service_account",
    "service_account": "google_service_account",
    "google_service_account_path": "google_service_account",
    "service_account_path": "google_service_account",
}


def hadoop_conf(options: Mapping[str, str]) -> dict[str, str]:
    """Return the equivalent Hadoop settings; options without an equivalent are skipped."""
    lowered = {key.lower(): value for key, value in options.items()}
    known = {_ALIASES.get(key, key): value for key, value in lowered.items()}
    return {**dict(_s3(known)), **dict(_azure(known)), **dict(_google(known))}


def hadoop_conf_from_environment(schemes: Set[str]) -> dict[str, str]:
    """Return Hadoop settings from environment and profile for stores with these schemes.

    Raises:
        TableError: when the requested AWS profile has no keys.
    """
    conf: dict[str, str] = {}
    if schemes & {"s3", "s3a"}:
        amazon = hadoop_conf({**profile_options({}), **_variables("AWS_")})
        conf |= {**_IMPLEMENTATION, **_PATIENCE, **amazon}
    if schemes & {"abfs", "abfss"}:
        conf |= {**_AZURE_PATIENCE, **hadoop_conf(_variables("AZURE_"))}
    if "gs" in schemes:
        conf |= {**_GOOGLE, **hadoop_conf(_variables("GOOGLE_"))}
    return conf


def find_unreachable_cause(text: str) -> StorageRefusal | None:
    """Recognize an access error of Spark's file systems by its message, or return None.

    The cause is empty if the message itself is clear.
    """
    if scheme := re.search(r'No FileSystem for scheme "?([\w+.-]+)', text):
        hint = _AZURE_HINT if scheme[1] in _ONLY_DELTA_RS else _JAR_HINT
        message = f"Spark does not support {scheme[1]}:// tables"
        return StorageRefusal(ErrorCode.STORAGE, message, hint)
    if missing := re.search(r"ClassNotFoundException: Class (\S+fs\S+) not found", text):
        return StorageRefusal(ErrorCode.STORAGE, f"Spark has no {missing[1]}", _JAR_HINT)
    if "Invalid configuration value detected for fs.azure.account.key" in text:
        return DENIED._replace(cause="no credentials are configured for the storage account")
    if refused := classify_refusal(text):
        return refused
    if re.search(r"AccessDeniedException|AccessControlException", text):
        return DENIED
    if re.search(
        r"(?:Connect|UnknownHost|SocketTimeout|NoRouteToHost|\.storage\.Storage)Exception", text
    ):
        return StorageRefusal(ErrorCode.STORAGE, "", "check the endpoint and the region")
    return None


def _variables(prefix: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(prefix)}


def _s3(known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not any(key.startswith("aws_") for key in known):
        return
    yield from _IMPLEMENTATION.items()
    if _is_true(known, "aws_skip_signature"):
        yield f"{_S3A}aws.credentials.provider", _ANONYMOUS
    elif "aws_access_key_id" in known and "aws_secret_access_key" in known:
        token = known.get("aws_session_token")
        yield f"{_S3A}access.key", known["aws_access_key_id"]
        yield f"{_S3A}secret.key", known["aws_secret_access_key"]
        yield f"{_S3A}aws.credentials.provider", _TEMPORARY if token else _SIMPLE
        if token:
            yield f"{_S3A}session.token", token
    if "aws_region" in known:
        yield f"{_S3A}endpoint.region", known["aws_region"]
    endpoint = known.get("aws_endpoint_url")
    if endpoint:
        virtual = _is_true(known, "aws_virtual_hosted_style_request")
        yield f"{_S3A}endpoint", endpoint
        yield f"{_S3A}path.style.access", str(not virtual).lower()
        yield f"{_S3A}connection.ssl.enabled", str(not endpoint.startswith("http://")).lower()


def _azure(known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    account = known.get("azure_storage_account_name")
    if not account:
        return
    host = f"{account}.dfs.core.windows.net"
    if "azure_storage_account_key" in known:
        yield f"fs.azure.account.key.{host}", known["azure_storage_account_key"]
    elif "azure_storage_sas_token" in known:
        yield f"fs.azure.account.auth.type.{host}", "SAS"
        yield f"fs.azure.sas.fixed.token.{host}", known["azure_storage_sas_token"].lstrip("?")
    elif {"azure_client_id", "azure_client_secret", "azure_tenant_id"} <= known.keys():
        tenant = known["azure_tenant_id"]
        yield f"fs.azure.account.auth.type.{host}", "OAuth"
        yield f"fs.azure.account.oauth.provider.type.{host}", _TOKENS
        yield f"fs.azure.account.oauth2.client.id.{host}", known["azure_client_id"]
        yield f"fs.azure.account.oauth2.client.secret.{host}", known["azure_client_secret"]
        yield (
            f"fs.azure.account.oauth2.client.endpoint.{host}",
            f"https://login.microsoftonline.com/{tenant}/oauth2/token",
        )


def _google(known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    path = known.get("google_service_account")
    if path:
        yield "fs.gs.auth.type", "SERVICE_ACCOUNT_JSON_KEYFILE"
        yield "fs.gs.auth.service.account.json.keyfile", path


def _is_true(known: Mapping[str, str], key: str) -> bool:
    return known.get(key, "").lower() in _TRUE


_RUN_FILES = 64
_RUN_BYTES = 16 << 20


class SparkLogStore:
    """The `_delta_log` folder of the table at `uri`, read through the session."""

    def __init__(self, session: SparkSession, uri: str) -> None:
        self._session = session
        self._uri = uri
        self._folder = f"{uri.rstrip('/')}/_delta_log"
        self._paths: dict[str, tuple[str, int]] = {}
        self._fetched: dict[str, bytes] = {}

    def list(self) -> list[FolderEntry]:
        return list(self.list_dated())

    def list_dated(self) -> tuple[FolderEntry, ...]:
        rows = self._read([self._folder], "path", "length", "unix_millis(modificationTime)")
        if not rows:
            raise TableError(ErrorCode.NOT_A_DELTA_TABLE, f"Spark finds no files in {self._folder}")
        self._paths = {_name(row[0]): (row[0], row[1]) for row in rows}
        return tuple(FolderEntry(_name(path), size, ms) for path, size, ms in rows)

    def list_staged(self) -> tuple[FolderEntry, ...]:
        try:
            rows = self._read(
                [f"{self._folder}/{STAGED_COMMITS}"],
                *("path", "length", "unix_millis(modificationTime)"),
            )
        except TableError:
            return ()
        self._paths |= {_name(row[0]): (row[0], row[1]) for row in rows}
        return tuple(FolderEntry(_name(path), size, ms) for path, size, ms in rows)

    def open(self, name: str) -> IO[bytes]:
        if name not in self._fetched:
            self._fetch(name)
        return BytesIO(self._fetched.pop(name))

    def _fetch(self, name: str) -> None:
        check_size(name, self._paths.get(name, ("", 0))[1])
        run = self._run(name)
        wanted = [
            self._paths[each][0] if each in self._paths else f"{self._folder}/{each}"
            for each in run
        ]
        found = self._read(wanted, "path", "content")
        self._fetched = {_name(row[0]): bytes(row[1]) for row in found}
        if name not in self._fetched:
            raise file_gone_error(name)

    def _run(self, name: str) -> Sequence[str]:
        """Return the commits up to this one to read in one job; other files are read separately."""
        if not name.endswith(".json") or name not in self._paths:
            return [name]
        older = sorted((n for n in self._paths if n.endswith(".json") and n <= name), reverse=True)
        taken = size = 0
        while taken < min(len(older), _RUN_FILES) and (not taken or size < _RUN_BYTES):
            size += self._paths[older[taken]][1]
            taken += 1
        return older[:taken]

    def _read(self, paths: Sequence[str], *columns: str) -> Sequence[Any]:
        from deltaproto.tables.engine_errors import (
            first_line,
            is_connection_lost,
            lost_engine_error,
            spark_message,
        )

        source = self._session.read.format("binaryFile").option("recursiveFileLookup", "true")
        try:
            return tuple(source.load([*paths]).selectExpr(*columns).collect())
        except Exception as error:
            if is_connection_lost(spark_message(error)):
                raise lost_engine_error(error) from None
            raise TableError(
                ErrorCode.STORAGE, f"Spark cannot read {self._uri}: {Redactor()(first_line(error))}"
            ) from None


def _name(path: str) -> str:
    """Return a file's path within the log's folder; sidecars are in a subfolder."""
    return path.rpartition("/_delta_log/")[2]
