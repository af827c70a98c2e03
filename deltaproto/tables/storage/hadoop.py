"""Storage options, as deltalake takes them, in the words of Hadoop's file systems.

So that Spark reaches what the log reader reaches. Sources: Hadoop's pages on S3A, ABFS and the GCS
connector; the options are object_store's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_S3A = "fs.s3a."
_TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
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


def _s3(known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not any(key.startswith("aws_") for key in known):
        return
    # deltalake says s3://; open-source Hadoop knows s3a:// only.
    yield "fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem"
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
