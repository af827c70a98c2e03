"""Which client wrote a commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients.version_scheme import parse_version
from deltaproto.policy.local_catalog import load_local_catalog
from deltaproto.protocol.writers import (
    MARKS,
    Confidence,
    Principal,
    identify_name,
    identify_writer,
    name_writer,
)


def test_every_mark_identifies_its_samples() -> None:
    wrong = []
    for mark in MARKS:
        assert mark.samples, mark.name
        assert mark.source, mark.name
        for sample in mark.samples:
            found = identify_writer({mark.field: sample})
            if (found.client, found.confidence) != (mark.client, mark.confidence):
                wrong.append((sample, found))
            assert found.evidence == ((mark.field, sample),)
    assert wrong == []


def test_every_client_and_version_is_one_of_the_catalog() -> None:
    catalog = load_local_catalog(())
    for mark in MARKS:
        for sample in mark.samples:
            found = identify_writer({mark.field: sample})
            if found.client is None:
                continue
            client = catalog.get(found.client)
            if found.version is not None:
                assert parse_version(client.versions, found.version) is not None, sample


# Marks of releases that the rules' samples do not have.
OTHERS = {
    "Apache-Spark/3.2.1 Delta-Lake/2.0.0": "delta-spark@2.0.0",
    "Apache-Spark/4.1.0-preview3 Delta-Lake/4.1.0": "delta-spark@4.1.0",
    "Apache-Spark/3.5.3 Delta-Lake/3.3.0-SNAPSHOT": "delta-spark@3.3.0-SNAPSHOT",
    "Apache-Spark/3.5.2-amzn-1 Delta-Lake/3.2.1-amzn-0": "delta-spark@3.2.1",
    "Apache-Spark/4.0.0 Delta-Lake/<unknown>": "delta-spark",
    "Apache-Spark/3.3.1.5.2-90111858 Delta-Lake/2.2.0.1": None,
    "Databricks-Runtime/7.3.x-scala2.12": "databricks-runtime@7.3",
    "Databricks-Runtime/16.4.x-aarch64-scala2.12": "databricks-runtime@16.4",
    "Databricks-Runtime/dlt:15.4-delta-pipelines-dlt-release-2024.45": "databricks-runtime@15.4",
    "delta-rs:py-1.0.0b2": "deltalake@1.0.0b2",
    "delta-rs:0.30.0": "delta-rs@0.30.0",
    "flink-engine/1.17.0 flink-delta-connector/3.3.2": "delta-flink@3.3.2",
    "Kernel-3.3.2/my loader": "delta-kernel-java@3.3.2",
    "Delta-Standalone/3.2.0": "delta-standalone@3.2.0",
    "Runtime/<unknown>": None,
    "Spark": None,
    "maya_delta-pure": None,
    "Delta-Lake/3.2.0": None,
    "delta-rs:py-": None,
    "DuckDBish": None,
    "Databricks-Runtime/": None,
}


# Commits of logs that other people published, and forms of the writers' sources in releases that
# the rules' samples do not have.
HELD_OUT: list[tuple[dict[str, Any], str | None]] = [
    ({"engineInfo": "Apache-Spark/3.2.1 Delta-Lake/2.0.0"}, "delta-spark@2.0.0"),
    ({"engineInfo": "Apache-Spark/3.3.2 Delta-Lake/2.3.0"}, "delta-spark@2.3.0"),
    ({"engineInfo": "Apache-Spark/3.5.3 Delta-Lake/3.2.0"}, "delta-spark@3.2.0"),
    ({"engineInfo": "Apache-Spark/4.0.1 Delta-Lake/4.0.1"}, "delta-spark@4.0.1"),
    ({"engineInfo": "Apache-Spark/3.3.0-amzn-1 Delta-Lake/2.1.0"}, "delta-spark@2.1.0"),
    ({"engineInfo": "Kernel-4.5.0/Apache-Spark/4.2.1 Delta-Lake/4.5.0"}, "delta-spark@4.5.0"),
    ({"engineInfo": "Kernel-4.5.1/Delta-Spark-DSv2/4.5.1"}, "delta-spark@4.5.1"),
    # A Spark without Delta, as a test of another project has it.
    ({"engineInfo": "Apache-Spark/3.0.0"}, None),
    ({"engineInfo": "Databricks-Runtime/14.3.x-scala2.12"}, "databricks-runtime@14.3"),
    ({"engineInfo": "Databricks-Runtime/17.2.x-photon-scala2.13"}, "databricks-runtime@17.2"),
    (
        {"engineInfo": "Databricks-Runtime/16.3.x-aarch64-photon-scala2.12"},
        "databricks-runtime@16.3",
    ),
    ({"engineInfo": "Databricks-Runtime/12.x-snapshot-scala2.12"}, "databricks-runtime"),
    ({"engineInfo": "Databricks-Runtime/<unknown>"}, "databricks-runtime"),
    ({"engineInfo": "Databricks-Runtime/dlt:14.1-delta-pipelines-a1b2"}, "databricks-runtime@14.1"),
    # The year of a SQL warehouse's release is no runtime's version.
    ({"engineInfo": "Databricks-Runtime/2025.30-photon"}, "databricks-runtime"),
    ({"engineInfo": "Apache-Spark/3.5.5.5.4.20250912.1 Delta-Lake/3.2.0.19"}, None),
    (
        {"engineInfo": "delta-rs:py-1.5.1", "clientVersion": "delta-rs.py-1.5.1"},
        "deltalake@1.5.1",
    ),
    ({"clientVersion": "delta-rs.py-0.15.3"}, "deltalake@0.15.3"),
    ({"clientVersion": "delta-rs.0.13.0"}, "delta-rs@0.13.0"),
    ({"engineInfo": "delta-rs:0.29.4"}, "delta-rs@0.29.4"),
    ({"engineInfo": "Kernel-4.2.1/DeltaSink"}, "delta-flink@4.2.1"),
    ({"engineInfo": "flink-engine/1.20.0 flink-delta-connector/3.3.0"}, "delta-flink@3.3.0"),
    ({"engineInfo": "flink-engine/1.13.0-flink-delta-connector/0.2.1"}, "delta-flink@0.2.1"),
    ({"engineInfo": "flink-delta-connector/0.2.1-SNAPSHOT"}, "delta-flink@0.2.1-SNAPSHOT"),
    ({"engineInfo": "Kernel-3.3.1/my-connector/2"}, "delta-kernel-java@3.3.1"),
    ({"engineInfo": "kernel-test"}, None),
    (
        {"engineInfo": "pulsar-sink-connector-version-2.9.1 Delta-Standalone/0.3.0"},
        "delta-standalone@0.3.0",
    ),
    ({"engineInfo": "kdi-adls Delta-Standalone/0.4.0"}, "delta-standalone@0.4.0"),
    ({"engineInfo": "Kernel-4.1.0/XTable Delta Sync"}, "xtable"),
    ({"engineInfo": "Kernel-4.1.0/iceberg"}, None),
    ({"engineInfo": "DuckDB", "kernelVersion": "v0.18.1"}, "duckdb"),
    ({"engineInfo": "ClickHouse", "kernelVersion": "v0.16.0"}, "clickhouse"),
    ({"engineInfo": "ingest 3", "kernelVersion": "v0.21.0"}, "delta-kernel-rs@0.21.0"),
    (
        {"clusterId": "trino-468-datapains-trino-cluster-trino-coordinator-6d5864c74f-kdsrf"},
        "trino@468",
    ),
    ({"clusterId": "0108-110130-7h1qxtew"}, None),
    ({"clientVersion": "delta-go.v0.0.3", "operation": "delta-go.Write"}, None),
    ({"engineInfo": "riverbench-synthetic"}, None),
    ({"engineInfo": "kernel 5.15 Delta-Lake/3.2.0"}, None),
]


def test_no_published_commit_is_misidentified() -> None:
    wrong = [
        (info, expected, found.label)
        for info, expected in HELD_OUT
        if (found := identify_writer(info)).label != expected
    ]
    assert wrong == []


def test_other_releases_and_other_writers() -> None:
    wrong = {
        mark: found.label
        for mark, expected in OTHERS.items()
        if (found := identify_writer({"engineInfo": mark})).label != expected
    }
    assert wrong == {}


# What releases of deltalake for Python recorded in their commits.
OF_DELTALAKE = {
    "0.10.1": {"clientVersion": "delta-rs.0.13.1"},
    "0.15.3": {"clientVersion": "delta-rs.0.17.0"},
    "0.17.4": {"clientVersion": "delta-rs.0.17.3"},
    "0.18.2": {"clientVersion": "delta-rs.0.18.1"},
    "0.19.2": {"clientVersion": "delta-rs.0.19.1"},
    "0.20.2": {"clientVersion": "delta-rs.0.20.1"},
    "0.22.3": {"clientVersion": "delta-rs.0.22.3"},
    "0.23.2": {"clientVersion": "delta-rs.0.23.0"},
    "0.24.0": {"clientVersion": "delta-rs.0.23.1"},
    "0.25.1": {"clientVersion": "delta-rs.0.24.0"},
    "0.25.2": {"clientVersion": "delta-rs.py-0.25.2"},
    "0.25.5": {"clientVersion": "delta-rs.py-0.25.5"},
    "1.1.4": {"engineInfo": "delta-rs:py-1.1.4", "clientVersion": "delta-rs.py-1.1.4"},
}


def test_no_release_of_deltalake_is_another_client() -> None:
    for release, info in OF_DELTALAKE.items():
        found = identify_writer(info)
        if found.could_be:
            assert found.could_be == ("deltalake", "delta-rs"), release
        else:
            assert found.label == f"deltalake@{release}"
    assert identify_writer({"clientVersion": "delta-rs.0.25.0"}).could_be == ()
    assert identify_writer({"clientVersion": "delta-rs.0.30.0"}).could_be == ()


@pytest.mark.parametrize(
    ("info", "label", "confidence"),
    [
        ({"clientVersion": "delta-rs.py-0.17.4"}, "deltalake@0.17.4", Confidence.LIKELY),
        (
            {"engineInfo": "loader 2", "clientVersion": "delta-rs.0.22.3"},
            "delta-rs@0.22.3",
            Confidence.LIKELY,
        ),
        ({"engineInfo": "DuckDB", "kernelVersion": "v0.20.0"}, "duckdb", Confidence.CERTAIN),
        (
            {"engineInfo": "loader 2", "kernelVersion": "v0.20.0"},
            "delta-kernel-rs@0.20.0",
            Confidence.LIKELY,
        ),
        ({"clusterId": "trino-480-ffffffff-1"}, "trino@480", Confidence.CERTAIN),
        # Starburst's versions are not Trino's.
        ({"clusterId": "trino-435-e.4-node"}, None, Confidence.UNKNOWN),
        ({"clusterId": "trino-435-galaxy-1-node"}, None, Confidence.UNKNOWN),
        # The name of a cluster proves nothing beside an engine that names itself.
        (
            {"engineInfo": "Apache-Spark/3.5.0 Delta-Lake/3.1.0", "clusterId": "trino-480-a"},
            "delta-spark@3.1.0",
            Confidence.CERTAIN,
        ),
        ({"engineInfo": "loader 2", "clusterId": "trino-480-a"}, None, Confidence.UNKNOWN),
        ({"operation": "delta-go.Write", "clientVersion": "delta-go.alpha-0.0.0"}, None, "unknown"),
        ({}, None, Confidence.UNKNOWN),
    ],
)
def test_marks_beside_each_other(info: dict[str, Any], label: str | None, confidence: str) -> None:
    found = identify_writer(info)
    assert (found.label, found.confidence) == (label, confidence)


def test_kafka_delta_ingest_is_told_from_other_programs_that_stream_with_delta_rs() -> None:
    info = {
        "clientVersion": "delta-rs.0.17.0",
        "operation": "STREAMING UPDATE",
        "operationParameters": {"queryId": "orders", "epochId": "7"},
    }
    found = identify_writer(info, [("orders-3", 7)])
    assert found.label == "kafka-delta-ingest"
    assert (found.principal.stream, found.principal.query) == ("orders", None)
    assert found.evidence == (("clientVersion", "delta-rs.0.17.0"), ("txn", "orders-3"))
    assert (found.confidence, found.build) == (Confidence.LIKELY, "delta-rs.0.17.0")
    assert identify_writer(info, [("x", 1), ("orders-3", 7)]).label == "kafka-delta-ingest"
    # Another client that streams has another mark.
    spark = {**info, "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}
    assert identify_writer(spark, [("orders-3", 7)]).label == "delta-spark@4.4.0"
    for transactions in ([], [("orders", 7)], [("other-3", 7)], [("orders-x", 7)]):
        assert identify_writer(info, transactions).label == "delta-rs@0.17.0"


def test_the_principal_is_what_the_commit_says() -> None:
    databricks = {
        "engineInfo": "Databricks-Runtime/15.4.x-scala2.12",
        "userId": "17",
        "userName": "ada@example.com",
        "job": {"jobId": "3", "jobName": "nightly", "runId": "9"},
        "notebook": {"notebookId": "44"},
        "clusterId": "0108-110130-7h1qxtew",
        "operationParameters": {"predicate": "[]"},
    }
    assert identify_writer(databricks).principal == Principal(
        "ada@example.com", "nightly", "44", "0108-110130-7h1qxtew"
    )
    unnamed = {**databricks, "job": {"jobId": "3"}, "userName": ""}
    assert identify_writer(unnamed).principal[:2] == ("17", "3")
    trino = {
        "userId": "etl",
        "clusterId": "trino-455-node",
        "operationParameters": {"queryId": "20240911_100656_00086_2dq6g"},
    }
    assert identify_writer(trino).principal == Principal(
        "etl", cluster="trino-455-node", query="20240911_100656_00086_2dq6g"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
MEMBERS = (
    *("engineInfo", "clientVersion", "kernelVersion", "clusterId", "operation", "job"),
    *("operationParameters", "userName", "notebook"),
)


@given(st.dictionaries(st.sampled_from(MEMBERS), JSON))
def test_any_commit_is_identified_or_unknown(info: dict[str, Any]) -> None:
    found = identify_writer(info)
    assert (found.client is None) <= (found.confidence is Confidence.UNKNOWN)


def test_a_recorded_name_is_identified_again() -> None:
    for name, found in {
        "Apache-Spark/4.2.0 Delta-Lake/4.4.0": ("delta-spark", "4.4.0"),
        "delta-rs.0.17.0": ("delta-rs", "0.17.0"),
        "trino@455": ("trino", "455"),
        "trino": ("trino", None),
        "nobody": (None, None),
        "nobody@1": (None, None),
        "delta-kernel-rs@0.27.1-rc.1": ("delta-kernel-rs", "0.27.1-rc.1"),
        "trino@455 or later": (None, None),
        "Trino@455": (None, None),
    }.items():
        assert identify_name(name) == found, name


def test_marks_of_usual_lengths_are_kept_and_read_as_ascii() -> None:
    for length, kept in ((0, False), (1, True), (500, True), (501, False)):
        for field in ("engineInfo", "clientVersion"):
            found = identify_writer({field: "x" * length})
            assert found.build == ("x" * length if kept else None), (field, length)
    assert identify_writer({"engineInfo": "delta-rs:py-1.\u0661.0"}).client is None
    assert identify_writer({"engineInfo": "a", "clientVersion": "b"}).build == "a"


def test_the_name_of_a_writer_is_what_it_recorded() -> None:
    spark = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
    for info, name in (
        ({"engineInfo": spark, "clientVersion": "delta-rs.0.30.0"}, spark),
        ({"engineInfo": "", "clientVersion": "delta-rs.0.30.0"}, "delta-rs.0.30.0"),
        ({"engineInfo": 7}, "7"),
        ({"kernelVersion": "v0.27.1"}, "delta-kernel-rs@0.27.1"),
        ({"clusterId": "trino-455-node"}, "trino@455"),
        ({}, None),
    ):
        assert name_writer(info) == name


def test_a_long_mark_is_no_mark() -> None:
    found = identify_writer({"engineInfo": "Kernel-1.0.0/" + "x" * 10_000_000})
    assert found == (None, None, None, Principal(), Confidence.UNKNOWN, (), ())


def test_deltalake_is_identified_by_its_own_commits(tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import __version__

    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    (info,) = DeltaTable(str(tmp_path)).history()
    found = identify_writer(info)
    assert found.label == f"deltalake@{__version__}"
    assert name_writer(info) == f"delta-rs:py-{__version__}"
