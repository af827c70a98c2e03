"""Storage options, as deltalake takes them, in the words of Hadoop's file systems.

So that Spark reaches what the log reader reaches. Sources: Hadoop's pages on S3A, ABFS and the GCS
connector; the options are object_store's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Set

from deltaproto.errors import ErrorCode
from deltaproto.tables.storage.profile import profile_options
from deltaproto.tables.storage.refusals import DENIED, Refusal, refusal

# deltalake says s3://; open-source Hadoop knows s3a:// only.
_IMPLEMENTATION = {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
# For a store that does not answer: Hadoop's own values make that five minutes and more.
_PATIENCE = {"fs.s3a.attempts.maximum": "3", "fs.s3a.retry.limit": "3"}
_AZURE_PATIENCE = {"fs.azure.io.retry.max.retries": "3"}
_GOOGLE = {"fs.gs.impl": "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"}
_S3A = "fs.s3a."
_TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
_AZURE_HINT = "for Spark it is abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"
_JAR_HINT = "give the jar of its file system, and Delta's: --spark-conf spark.jars=PATH,PATH"
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
    """The Hadoop settings that say the same; options without a counterpart are passed over."""
    given = {key.lower(): value for key, value in options.items()}
    known = {_ALIASES.get(key, key): value for key, value in given.items()}
    return {**dict(_s3(known)), **dict(_azure(known)), **dict(_google(known))}


def surrounding_conf(schemes: Set[str]) -> dict[str, str]:
    """What environment and profile say of the stores with these schemes, for Hadoop.

    Raises:
        TableError: when an AWS profile is asked for that gives no keys.
    """
    conf: dict[str, str] = {}
    if schemes & {"s3", "s3a"}:
        said = hadoop_conf({**profile_options({}), **_variables("AWS_")})
        conf |= {**_IMPLEMENTATION, **_PATIENCE, **said}
    if schemes & {"abfs", "abfss"}:
        conf |= {**_AZURE_PATIENCE, **hadoop_conf(_variables("AZURE_"))}
    if "gs" in schemes:
        conf |= {**_GOOGLE, **hadoop_conf(_variables("GOOGLE_"))}
    return conf


def unreachable(text: str) -> Refusal | None:
    """Why Spark's file systems gave nothing, from an error's text; None when it is another error.

    The cause is empty where the text itself says it best.
    """
    if scheme := re.search(r'No FileSystem for scheme "?([\w+.-]+)', text):
        hint = _AZURE_HINT if scheme[1] in _ONLY_DELTA_RS else _JAR_HINT
        return Refusal(ErrorCode.STORAGE, f"Spark knows no {scheme[1]}:// tables", hint)
    if missing := re.search(r"ClassNotFoundException: Class (\S+fs\S+) not found", text):
        return Refusal(ErrorCode.STORAGE, f"Spark has no {missing[1]}", _JAR_HINT)
    if "Invalid configuration value detected for fs.azure.account.key" in text:
        return DENIED._replace(cause="there are no credentials for the storage account")
    if refused := refusal(text):
        return refused
    if re.search(r"AccessDeniedException|AccessControlException", text):
        return DENIED
    if re.search(
        r"(?:Connect|UnknownHost|SocketTimeout|NoRouteToHost|\.storage\.Storage)Exception", text
    ):
        return Refusal(ErrorCode.STORAGE, "", "check the endpoint and the region")
    return None


def _variables(prefix: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(prefix)}


def _s3(known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not any(key.startswith("aws_") for key in known):
        return
    yield from _IMPLEMENTATION.items()
    if _true(known, "aws_skip_signature"):
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
        virtual = _true(known, "aws_virtual_hosted_style_request")
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


def _true(known: Mapping[str, str], key: str) -> bool:
    return known.get(key, "").lower() in _TRUE
