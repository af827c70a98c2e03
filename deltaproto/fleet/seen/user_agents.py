"""Identifies clients by their user agents, and lists settings that make clients identify
themselves.

Most readers are unnamed: their user agent is that of a library that many clients use. The rules are
data, as in `protocol/writers.py`. A user agent that matches no rule stays unidentified; nothing is
guessed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from deltaproto.clients.catalog import shipped_client_ids
from deltaproto.protocol.stored_secrets import hide_in_name
from deltaproto.protocol.writers import Confidence

_LONGEST = 4096
"""characters; the rest of a user agent is ignored"""
_NUMBERS = r"\d+(?:\.\d+)+(?:(?:a|b|rc)\d+)?"
_OURS = re.compile(
    r"(?<![\w.-])deltaproto\.(?P<id>[a-z][a-z0-9-]*)(?:\.(?P<version>\d[\w.+-]*))?(?![\w.-])",
    re.ASCII,
)
"""the mark that `SETTINGS` advise"""


class AgentRule(NamedTuple):
    """How one client or library names itself."""

    client: str | None
    """id in the client catalog; None: a library of several clients"""
    name: str
    """how an unidentified program is shown; its version is added"""
    pattern: str
    """regular expression for the beginning of the user agent; its group `version` is the version"""
    source: str
    samples: tuple[str, ...]
    confidence: Confidence = Confidence.UNKNOWN
    could_be: tuple[str, ...] = ()
    setting: str | None = None
    """what makes these programs identify themselves"""


class Agent(NamedTuple):
    """The client of a request, or the library of an unidentified one."""

    client: str | None
    version: str | None
    mark: str | None
    """None for a client of the catalog"""
    confidence: Confidence
    could_be: tuple[str, ...] = ()
    setting: str | None = None


class Setting(NamedTuple):
    """The setting that makes an engine identify itself in its requests."""

    clients: tuple[str, ...]
    store: str
    setting: str
    source: str


_S3A = "spark.hadoop.fs.s3a.user.agent.prefix=deltaproto.delta-spark.VERSION"
_ABFS = "spark.hadoop.fs.azure.user.agent.prefix=deltaproto.delta-spark.VERSION"
_TRINO_S3 = "s3.application-id=deltaproto.trino.VERSION"
_RUST = 'storage_options={"user_agent": "deltaproto.deltalake.VERSION"}'
_DUCKDB = "SET custom_user_agent = 'deltaproto.duckdb.VERSION'"
_AWS = "AWS_SDK_UA_APP_ID=deltaproto.CLIENT.VERSION"
_TRINO_SOURCE = "trinodb/trino: docs, file-system-s3.md and PR #24361"
_HADOOP_SOURCE = "apache/hadoop: hadoop-aws, Constants.java; hadoop-azure, ConfigurationKeys.java"
_RUST_SOURCE = "apache/arrow-rs-object-store: src/client/mod.rs (ClientConfigKey)"
_SERVICE_SOURCE = "AWS CloudTrail: record contents, userAgent of AWS services"

SETTINGS = (
    Setting(("delta-spark",), "Amazon S3", _S3A, _HADOOP_SOURCE),
    Setting(("delta-spark",), "Azure", _ABFS, _HADOOP_SOURCE),
    Setting(("trino",), "Amazon S3", _TRINO_S3, _TRINO_SOURCE),
    Setting(("trino",), "Azure", "azure.application-id=deltaproto.trino.VERSION", _TRINO_SOURCE),
    Setting(
        ("trino",), "Google Cloud", "gcs.application-id=deltaproto.trino.VERSION", _TRINO_SOURCE
    ),
    Setting(("deltalake",), "any", _RUST, _RUST_SOURCE),
    Setting(("polars",), "any", _RUST.replace("deltalake", "polars"), _RUST_SOURCE),
    Setting(
        ("delta-rs",), "any", 'options "user_agent" = "deltaproto.delta-rs.VERSION"', _RUST_SOURCE
    ),
    Setting(("duckdb",), "any, for its data files", _DUCKDB, "DuckDB: configuration"),
    Setting(
        (), "Amazon S3, programs with an AWS SDK", _AWS, "AWS SDKs: Application ID (sdk_ua_app_id)"
    ),
)
"""the version is part of the mark, as user agents show it nowhere else"""

_RUST_CLIENTS = (
    *("deltalake", "delta-rs", "polars", "daft", "duckdb", "delta-kernel-rs"),
    *("kafka-delta-ingest", "sail", "datahub"),
)
_HADOOP_CLIENTS = (
    "delta-spark",
    "delta-flink",
    "delta-hive",
    "delta-standalone",
    "trino",
    "presto",
)

RULES = (
    AgentRule(
        *("delta-sharing-python", "Delta Sharing connector for Python"),
        rf"Delta-Sharing-Python/(?P<version>{_NUMBERS})(?= )",
        "delta-io/delta-sharing: python/delta_sharing/rest_client.py",
        ("Delta-Sharing-Python/0.6.4 pandas/1.5.3 PyArrow/11.0.0",),
        Confidence.CERTAIN,
    ),
    AgentRule(
        *("delta-sharing-spark", "Delta Sharing connector for Spark"),
        # DuckDB's extension for Delta Sharing uses the name in lower case.
        rf"Delta-Sharing-Spark/(?P<version>{_NUMBERS})(?= \S)",
        "delta-io/delta-sharing: DeltaSharingClient.scala, and issue #75",
        ("Delta-Sharing-Spark/0.3.0 Spark/3.1.1 Hadoop/3.2.0 Linux/5.4 java/1.8",),
        Confidence.CERTAIN,
    ),
    AgentRule(
        *("delta-spark", "Delta Spark, through Unity Catalog"),
        rf"UnityCatalog-Java-Client/\S+ Delta/(?P<version>{_NUMBERS}) Spark/\d",
        "unitycatalog/unitycatalog: clients/java",
        ("UnityCatalog-Java-Client/0.4.0 Delta/4.1.0 Spark/4.0.1",),
        Confidence.CERTAIN,
    ),
    AgentRule(
        *("delta-spark", "Delta Spark, planning at an Iceberg REST catalog"),
        rf"Delta/(?P<version>{_NUMBERS}) Spark/\d\S* Java/\S+ Scala/",
        "delta-io/delta: spark/.../serverSidePlanning",
        ("Delta/4.0.0 Spark/3.5.0 Java/17.0.10 Scala/2.13.16",),
        Confidence.CERTAIN,
    ),
    AgentRule(
        *("azure-data-factory", "Azure Data Factory"),
        r"(?:[^()]* )?AzureDataFactoryCopy\b",
        "logs of copy activities",
        ("AzureDataFactoryCopy FxVersion/4.8", "Azure-Storage/9.3 AzureDataFactoryCopy"),
        Confidence.LIKELY,
    ),
    AgentRule(
        *("duckdb", "DuckDB"),
        r"duckdb/v(?:(?P<version>\d+\.\d+\.\d+)|\d+\.\d+\.\d+-dev\d+)\(\w+\)(?: |$)",
        "duckdb/duckdb: DBConfig::UserAgent",
        ("duckdb/v1.4.1(linux_amd64) python", "duckdb/v1.1.3(osx_arm64) cli 19864453f7"),
        Confidence.CERTAIN,
    ),
    AgentRule(
        *("polars", "Polars"),
        # The version is that of its Rust crate.
        r"polars/\d+(?:\.\d+)+$",
        "requests of Polars 2.1.0 for data files",
        ("polars/0.55.1",),
        Confidence.CERTAIN,
    ),
    AgentRule(
        *("trino", "Trino"),
        # The default of its application id since 467.
        r"aws-sdk-java/2\.\S+ (?:.* )?app/Trino(?: |$)|Trino azsdk-java-|.*, Trino$",
        _TRINO_SOURCE,
        (
            "aws-sdk-java/2.29.24 md/io#sync md/http#Apache ua/2.1 os/Linux#5.10 lang/java#23 "
            "app/Trino",
            "Trino azsdk-java-azure-storage-blob/12.29.0 (23; Linux; 5.10)",
        ),
        Confidence.LIKELY,
        setting=_TRINO_S3,
    ),
    AgentRule(
        *("athena", "Athena"),
        r"athena\.amazonaws\.com$",
        _SERVICE_SOURCE,
        ("athena.amazonaws.com",),
        Confidence.LIKELY,
    ),
    AgentRule(
        *(None, "Amazon Redshift"),
        # COPY of a Redshift cluster is not Redshift Spectrum.
        r"redshift\.amazonaws\.com$",
        _SERVICE_SOURCE,
        ("redshift.amazonaws.com",),
        could_be=("redshift-spectrum",),
    ),
    AgentRule(
        *(None, "object_store"),
        rf"object_store/(?P<version>{_NUMBERS})$",
        "apache/arrow-rs-object-store: src/client/mod.rs (DEFAULT_USER_AGENT)",
        ("object_store/0.12.5",),
        could_be=_RUST_CLIENTS,
        setting=_RUST,
    ),
    AgentRule(
        *(None, "Hadoop S3A"),
        rf"Hadoop (?P<version>{_NUMBERS})\S*, aws-sdk-java/",
        "apache/hadoop: hadoop-aws, AWSClientConfig.initUserAgent",
        ("Hadoop 3.4.1, aws-sdk-java/2.24.6 md/io#async Linux/5.10",),
        could_be=(*_HADOOP_CLIENTS, "databricks-runtime"),
        setting=_S3A,
    ),
    AgentRule(
        *(None, "Azure Blob FS"),
        rf"APN/1\.0 Azure Blob FS/(?P<version>{_NUMBERS})",
        "apache/hadoop: hadoop-azure, AbfsClient.initializeUserAgent",
        ("APN/1.0 Azure Blob FS/3.4.0 (PrivateBuild JavaJRE 17.0.2; Linux 5.3; a/b) MSFT",),
        could_be=(*_HADOOP_CLIENTS, "databricks-runtime", "fabric-spark", "synapse-spark"),
        setting=_ABFS,
    ),
    AgentRule(
        *(None, "AWS SDK for Java"),
        rf"aws-sdk-java/(?P<version>{_NUMBERS})",
        "trinodb/trino: issue #24423",
        ("aws-sdk-java/2.29.24 md/io#sync ua/2.1 lang/java#23",),
        could_be=("trino", "presto", "databricks-runtime", "delta-flink", "delta-kernel-java"),
        setting=f"{_TRINO_S3} (Trino 467 or later), or {_AWS}",
    ),
    AgentRule(
        *(None, "Unity Catalog client for Rust"),
        rf"Unity-Catalog-Delta-Rest-Rust-Client/(?P<version>{_NUMBERS})",
        "delta-io/delta-kernel-rs: unity-catalog clients",
        ("Unity-Catalog-Delta-Rest-Rust-Client/0.1.0 Spark/3.5.0",),
        could_be=("delta-kernel-rs", "duckdb"),
    ),
    AgentRule(
        *(None, "Azure SDK for C++"),
        rf"azsdk-cpp-storage-\w+/(?P<version>{_NUMBERS})",
        "duckdb/duckdb_azure",
        ("azsdk-cpp-storage-blobs/12.8.0 (Linux 5.10 x86_64)",),
        could_be=("duckdb", "clickhouse"),
        setting=_DUCKDB,
    ),
    AgentRule(
        *(None, "AWS SDK for Rust"),
        rf"aws-sdk-rust/(?P<version>{_NUMBERS})",
        "requests of Daft 0.7.26 for data files",
        ("aws-sdk-rust/1.3.13 os/linux lang/rust/1.91.0-nightly",),
        # Daft ignores the setting of the AWS SDKs.
        could_be=("daft",),
    ),
    AgentRule(
        *(None, "AWS SDK for C++"),
        rf"aws-sdk-cpp/(?P<version>{_NUMBERS})",
        "aws/aws-sdk-cpp, which PyArrow uses for S3",
        ("aws-sdk-cpp/1.11.594 ua/2.1 api/S3 os/Linux lang/c++#C++17",),
        could_be=("deltalake", "clickhouse", "starrocks"),
        setting=_AWS,
    ),
    *(
        AgentRule(None, name, rf"{name}/(?P<version>{_NUMBERS})", "AWS SDKs", (f"{name}/1.34.0 x",))
        for name in ("aws-cli", "Boto3", "Botocore")
    ),
)
"""tried in this order; the first that matches decides"""
_PRODUCT = re.compile(r"[A-Za-z][\w.-]{0,60}(?:/[\w.+-]{1,40})?", re.ASCII)
NO_AGENT = "no user agent"
OTHER_AGENT = "another user agent"


def identify_agent(text: str | None) -> Agent:
    """Identify the client of a request by its user agent, without brackets around it.

    Returns:
        The client and its version if the agent has one; else how the program names itself.
    """
    if not text:
        return Agent(None, None, NO_AGENT, Confidence.UNKNOWN)
    return _identify(text[:_LONGEST])


@lru_cache(maxsize=4096)
def _identify(text: str) -> Agent:
    found = _OURS.search(text)
    if found is not None and found["id"] in shipped_client_ids():
        return Agent(found["id"], found["version"], None, Confidence.LIKELY)
    for rule in RULES:
        match = re.match(rule.pattern, text, re.ASCII)
        if match is None:
            continue
        version = match.groupdict().get("version")
        if rule.client is not None:
            return Agent(rule.client, version, None, rule.confidence, setting=rule.setting)
        mark = rule.name if version is None else f"{rule.name}/{version}"
        return Agent(None, None, mark, rule.confidence, rule.could_be, rule.setting)
    return Agent(None, None, product_of(text), Confidence.UNKNOWN)


def product_of(agent: str) -> str:
    """Return the first product in a user agent, unless it is a credential."""
    product = _PRODUCT.match(agent[:_LONGEST])
    return OTHER_AGENT if product is None else hide_in_name(product[0])
