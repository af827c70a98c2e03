from __future__ import annotations

import pytest

from deltaproto.tables.storage.hadoop import hadoop_conf

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}


def test_keys_and_an_endpoint_of_ones_own() -> None:
    conf = hadoop_conf({**KEYS, "AWS_ENDPOINT_URL": "http://here:9000", "AWS_REGION": "eu-west-1"})
    assert conf["fs.s3a.access.key"] == "id"
    assert conf["fs.s3a.secret.key"] == "secret"
    assert conf["fs.s3a.endpoint"] == "http://here:9000"
    assert conf["fs.s3a.endpoint.region"] == "eu-west-1"
    assert conf["fs.s3a.path.style.access"] == "true"
    assert conf["fs.s3a.connection.ssl.enabled"] == "false"
    assert conf["fs.s3a.aws.credentials.provider"].endswith("SimpleAWSCredentialsProvider")
    assert conf["fs.s3.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"


def test_a_token_needs_another_provider() -> None:
    conf = hadoop_conf({**KEYS, "aws_session_token": "t"})
    assert conf["fs.s3a.session.token"] == "t"
    assert conf["fs.s3a.aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")


def test_no_keys_no_provider() -> None:
    # Spark's own chain finds roles and profiles.
    assert "fs.s3a.aws.credentials.provider" not in hadoop_conf({"AWS_REGION": "eu-west-1"})
    public = hadoop_conf({**KEYS, "AWS_SKIP_SIGNATURE": "true"})
    assert public["fs.s3a.aws.credentials.provider"].endswith("AnonymousAWSCredentialsProvider")
    assert "fs.s3a.secret.key" not in public


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ({"AZURE_STORAGE_ACCOUNT_KEY": "k"}, "fs.azure.account.key.a.dfs.core.windows.net", "k"),
        ({"sas_token": "?sv=1"}, "fs.azure.sas.fixed.token.a.dfs.core.windows.net", "sv=1"),
        (
            {"client_id": "c", "client_secret": "s", "tenant_id": "t"},
            "fs.azure.account.oauth2.client.endpoint.a.dfs.core.windows.net",
            "https://login.microsoftonline.com/t/oauth2/token",
        ),
    ],
)
def test_azure(options: dict[str, str], key: str, value: str) -> None:
    assert hadoop_conf({"azure_storage_account_name": "a", **options})[key] == value
    assert not hadoop_conf(options)


def test_google_and_what_has_no_counterpart() -> None:
    conf = hadoop_conf({"GOOGLE_SERVICE_ACCOUNT": "/key.json"})
    assert conf["fs.gs.auth.service.account.json.keyfile"] == "/key.json"
    assert hadoop_conf({"timeout": "5s", "max_retries": "3"}) == {}
    assert hadoop_conf({}) == {}
