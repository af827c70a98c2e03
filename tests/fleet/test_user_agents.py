"""Which client a user agent shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients.catalog import shipped_client_ids
from deltaproto.clients.version_scheme import parse_version
from deltaproto.fleet.seen.user_agents import (
    NO_AGENT,
    OTHER_AGENT,
    RULES,
    SETTINGS,
    Agent,
    identify_agent,
)
from deltaproto.policy.local_catalog import load_local_catalog
from deltaproto.protocol.writers import Confidence


def label(agent: Agent) -> str:
    if agent.client is None:
        return f"? {agent.mark}"
    return agent.client if agent.version is None else f"{agent.client}@{agent.version}"


def test_every_rule_identifies_its_samples_by_the_catalog() -> None:
    catalog = load_local_catalog(())
    wrong = []
    for rule in RULES:
        assert rule.source
        assert rule.samples
        assert set(rule.could_be) <= set(shipped_client_ids())
        for sample in rule.samples:
            found = identify_agent(sample)
            if (found.client, found.confidence) != (rule.client, rule.confidence):
                wrong.append((sample, found))
            if found.client is not None and found.version is not None:
                scheme = catalog.get(found.client).versions
                assert parse_version(scheme, found.version) is not None, sample
    assert wrong == []


# Forms of the sources in releases that the samples do not have, and agents of real requests.
HELD_OUT = {
    "Delta-Sharing-Python/1.0.5 pandas/2.1.4 PyArrow/14.0.1 Python/3.11.4 System/Linux": (
        "delta-sharing-python@1.0.5"
    ),
    "Delta-Sharing-Spark/3.2.0 Databricks-Runtime/15.4 Hadoop/3.3.6 Linux/5.15 java/17": (
        "delta-sharing-spark@3.2.0"
    ),
    # DuckDB's extension for Delta Sharing names itself like that.
    "delta-sharing-spark/3.1.0": "? delta-sharing-spark/3.1.0",
    "Delta-Sharing-Spark/<unknown>": "? Delta-Sharing-Spark",
    "UnityCatalog-Java-Client/0.3.1 Delta/4.0.1 Spark/4.0.1": "delta-spark@4.0.1",
    "UnityCatalog-Java-Client/0.3.1 Iceberg/1.9 Spark/4.0.1": "? UnityCatalog-Java-Client/0.3.1",
    "Delta/4.2.0 Spark/4.1.0 Java/21.0.1 Scala/2.13.17": "delta-spark@4.2.0",
    "Delta/4.2.0": "? Delta/4.2.0",
    "Azure-Storage/12.1 (.NET Core) AzureDataFactoryCopy FxVersion/8.0": "? Azure-Storage/12.1",
    "AzureDataFactoryCopy": "azure-data-factory",
    "duckdb/v1.5.5(osx_arm64) python/3.13": "duckdb@1.5.5",
    "duckdb/v1.2.0-dev4321(linux_arm64) nodejs": "duckdb",
    "duckdb/v1.0.0(wasm_eh) duckdb-wasm 1f98600c2c": "duckdb@1.0.0",
    "duckdb-reader/v1.0.0": "? duckdb-reader/v1.0.0",
    "aws-sdk-java/2.31.1 md/io#async ua/2.1 os/Linux lang/java#24 app/Trino m/D": "trino",
    "aws-sdk-java/2.31.1 md/io#async ua/2.1 os/Linux lang/java#24 app/Trinoish": (
        "? AWS SDK for Java/2.31.1"
    ),
    "Trino azsdk-java-azure-storage-blob/12.31.1 (24; Linux; 6.1)": "trino",
    "aws-sdk-java/1.12.797 Linux/5.10 OpenJDK_64-Bit_Server_VM/23 java/23.0.2, Trino": "trino",
    "object_store/0.13.2": "? object_store/0.13.2",
    "object_store/0.14.2": "? object_store/0.14.2",
    "Hadoop 3.3.4, aws-sdk-java/1.12.262 Linux/5.10": "? Hadoop S3A/3.3.4",
    "APN/1.0 Azure Blob FS/3.3.4 (JavaJRE 11.0.20; Linux; openssl-1.1; nightly/job) MSFT": (
        "? Azure Blob FS/3.3.4"
    ),
    "aws-sdk-java/2.20.18 Linux/5.10 OpenJDK": "? AWS SDK for Java/2.20.18",
    "Unity-Catalog-Delta-Rest-Rust-Client/0.4.1 Spark/3.5.0": (
        "? Unity Catalog client for Rust/0.4.1"
    ),
    "azsdk-cpp-storage-blobs/12.13.0 (Darwin)": "? Azure SDK for C++/12.13.0",
    "aws-sdk-cpp/1.11.900 ua/2.1 api/S3 os/Linux#6.1 lang/c++#C++11 m/Z,b,P": (
        "? AWS SDK for C++/1.11.900"
    ),
    "Boto3/1.44.5 md/Botocore#1.44.5 ua/2.1 os/linux": "? Boto3/1.44.5",
    "aws-cli/2.18.5 md/awscrt#0.22.0": "? aws-cli/2.18.5",
    # With the settings that we advise.
    "deltaproto.delta-spark.4.0.1, Hadoop 3.4.1, aws-sdk-java/2.24.6 md/io#async": (
        "delta-spark@4.0.1"
    ),
    "aws-sdk-java/2.29.24 ua/2.1 lang/java#23 app/deltaproto.trino.476": "trino@476",
    "deltaproto.deltalake.1.6.6": "deltalake@1.6.6",
    "duckdb/v1.4.1(linux_amd64) python deltaproto.duckdb.1.4.1": "duckdb@1.4.1",
    "Boto3/1.44.5 app/deltaproto.datahub Botocore/1.44.5": "datahub",
    "deltaproto.nobody.1.0": "? deltaproto.nobody.1.0",
    "xdeltaproto.trino.476": "? xdeltaproto.trino.476",
    "Mozilla/5.0 (X11; Linux x86_64)": "? Mozilla/5.0",
    "S3Console/0.4, aws-internal/3": "? S3Console/0.4",
    "'; DROP TABLE t; --": f"? {OTHER_AGENT}",
    "\x00\x1b[2J": f"? {OTHER_AGENT}",
}


def test_no_reader_is_misidentified() -> None:
    wrong = {
        agent: found
        for agent, wanted in HELD_OUT.items()
        if (found := label(identify_agent(agent))) != wanted
    }
    assert wrong == {}
    assert label(identify_agent(None)) == label(identify_agent("")) == f"? {NO_AGENT}"


@given(st.text(max_size=300))
def test_any_agent_is_identified_or_shown_by_its_first_product(text: str) -> None:
    found = identify_agent(text)
    assert (found.client is None) is (found.mark is not None)
    assert (found.client is None) <= (found.confidence is Confidence.UNKNOWN)
    assert found.mark is None or len(found.mark) <= 120


def test_a_long_agent_costs_nothing() -> None:
    for text in ("a " * 5_000_000, "Delta/" + "1." * 100_000, "deltaproto." * 100_000):
        assert identify_agent(text).client is None


def test_a_client_with_its_setting_is_identified_by_it() -> None:
    for each in SETTINGS:
        for client in each.clients:
            assert f"deltaproto.{client}.VERSION" in each.setting, each
            found = identify_agent(each.setting.replace("VERSION", "1.2.3"))
            assert (found.client, found.version) == (client, "1.2.3"), each
