from __future__ import annotations

import pytest

from deltaproto.errors import ErrorCode
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.java import file_system_packages
from deltaproto.tables.storage.through_spark import (
    find_unreachable_cause,
    hadoop_conf,
    hadoop_conf_from_environment,
)

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


class TestSurroundings:
    @pytest.fixture(autouse=True)
    def clouds(self, monkeypatch: pytest.MonkeyPatch, no_cloud: None) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "a")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "k")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/key.json")

    def test_each_store_is_told_of_its_own(self) -> None:
        conf = hadoop_conf_from_environment({"s3"})
        assert conf["fs.s3a.secret.key"] == "secret"
        assert conf["fs.s3.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
        assert not any(key.startswith(("fs.azure", "fs.gs")) for key in conf)
        azure = hadoop_conf_from_environment({"abfss", "file"})
        assert azure["fs.azure.account.key.a.dfs.core.windows.net"] == "k"
        assert not any(key.startswith(("fs.s3", "fs.gs")) for key in azure)
        google = hadoop_conf_from_environment({"gs"})
        assert google["fs.gs.auth.service.account.json.keyfile"] == "/key.json"
        assert hadoop_conf_from_environment(set()) == {}

    def test_a_store_that_does_not_answer_is_given_up(self) -> None:
        conf = hadoop_conf_from_environment({"s3a"})
        assert (conf["fs.s3a.attempts.maximum"], conf["fs.s3a.retry.limit"]) == ("3", "3")


def test_a_new_spark_gets_the_file_systems_of_its_tables() -> None:
    settings = SparkSettings().reaching("./here", "s3://lake/t", "ABFSS://c@a/t", "a.b.c")
    assert settings.stores == {"s3", "abfss"}
    assert settings.reaching("s3://lake/a://b", "ABFSS://c@a/t") is settings
    assert settings.reaching("s3://lake/t") is settings
    names = [package.split(":")[1] for package in file_system_packages({}, settings.stores)]
    assert names == ["hadoop-aws", "hadoop-azure"]
    assert file_system_packages({}, frozenset()) == []
    (package,) = file_system_packages({"fs.s3a.access.key": "id"}, frozenset())
    assert package.startswith("org.apache.hadoop:hadoop-aws:")


# As Spark 4.2 with Hadoop 3.5.0 says them.
SAID = {
    'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "az"': (
        ErrorCode.STORAGE,
        "abfss://CONTAINER@ACCOUNT",
    ),
    "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class "
    "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem not found": (ErrorCode.STORAGE, "spark.jars"),
    'Failure to initialize configuration for a.dfs.core.windows.net key ="null": Invalid '
    "configuration value detected for fs.azure.account.key": (
        ErrorCode.PERMISSION_DENIED,
        "credentials",
    ),
    "java.nio.file.AccessDeniedException: s3://lake/t/_delta_log: getFileStatus on "
    "s3://lake/t/_delta_log: software.amazon.awssdk.services.s3.model.S3Exception: FORBIDDEN "
    "(Service: S3, Status Code: 403, Request ID: o1W):null": (
        ErrorCode.PERMISSION_DENIED,
        "credentials",
    ),
    "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3://lake/t/_delta_log': getFileStatus on "
    "s3://lake/t/_delta_log: software.amazon.awssdk.services.s3.model.NoSuchBucketException: The "
    "specified bucket does not exist (Service: S3, Status Code: 404, Request ID: i60) (SDK "
    "Attempt Count: 1):NoSuchBucket: The specified bucket does not exist": (
        ErrorCode.NOT_FOUND,
        "bucket",
    ),
    "java.net.ConnectException: getFileStatus on s3://lake/t/_delta_log: "
    "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: "
    "Connect to 127.0.0.1:9 failed: Connection refused": (ErrorCode.STORAGE, "endpoint"),
    "com.google.cloud.hadoop.repackaged.ossgcs.com.google.cloud.storage.StorageException: "
    "storage.googleapis.com": (ErrorCode.STORAGE, "endpoint"),
}


@pytest.mark.parametrize("text", SAID)
def test_what_sparks_file_systems_say(text: str) -> None:
    code, hint = SAID[text]
    refused = find_unreachable_cause(text)
    assert refused is not None
    assert refused.code is code
    assert hint in refused.hint


def test_what_is_no_refusal() -> None:
    assert (
        find_unreachable_cause(
            "java.lang.IllegalStateException: versions (0, 2) are not contiguous"
        )
        is None
    )
