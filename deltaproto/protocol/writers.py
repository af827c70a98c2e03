"""Identifies the client that wrote a commit, and its user, by the marks in `commitInfo`.

Writers identify themselves in different members, or not at all. The rules are data (`MARKS`): each
names the source where the mark was found, and samples. A writer that matches no rule is unknown;
nothing is guessed.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

_LONGEST_MARK = 500
"""characters; a longer value is not the name of an engine"""


class Confidence(StrEnum):
    """How sure it is which client wrote a commit."""

    CERTAIN = "certain"
    """the writer's own mark, with the client's name"""
    LIKELY = "likely"
    """a library's mark, or a mark that its caller can change"""
    UNKNOWN = "unknown"


class Mark(NamedTuple):
    """How one writer identifies itself."""

    client: str | None
    """id in the client catalog; None: a writer that the catalog does not have"""
    name: str
    field: str
    """member of `commitInfo`"""
    pattern: str
    """regular expression for the whole value; its group `version` is the client's version"""
    confidence: Confidence
    source: str
    samples: tuple[str, ...]
    could_be: tuple[str, ...] = ()
    """ids of all clients that leave this mark, if there are several"""


class Principal(NamedTuple):
    """The user, job, notebook, cluster or query that a commit names."""

    user: str | None = None
    job: str | None = None
    notebook: str | None = None
    cluster: str | None = None
    query: str | None = None
    """id of a query, which differs for each commit"""
    stream: str | None = None
    """id of a streaming query, which keeps it when it restarts"""


class WriterIdentity(NamedTuple):
    """The writer of one commit."""

    client: str | None
    """id in the client catalog"""
    version: str | None
    build: str | None
    """the mark as recorded; None if the commit has none"""
    principal: Principal
    confidence: Confidence
    evidence: tuple[tuple[str, str], ...]
    """member and value of each mark that the answer is based on"""
    could_be: tuple[str, ...] = ()
    """ids of all clients that leave these marks, if there are several; `client` is one of them"""

    @property
    def label(self) -> str | None:
        """`ID@VERSION`, or `ID` without a version; None for an unknown client."""
        if self.client is None or self.version is None:
            return self.client
        return f"{self.client}@{self.version}"


_NUMBERS = r"\d+(?:\.\d+)+"
_VERSION = (
    rf"(?P<version>{_NUMBERS}(?:[-.]?(?:a|b|rc|alpha|beta|preview|dev|SNAPSHOT)\.?\d*(?![\w.]))?)"
)
_BUILD = r"(?:[-+][\w.+-]+)?"
_SPARK = rf"Apache-Spark/\d+\.\d+\.\d+{_BUILD}"
_DELTA_SPARK = "delta-io/delta: spark/.../actions/actions.scala (CommitInfo.getEngineInfo)"
_DELTA_RS = "delta-io/delta-rs: crates/core/src/kernel/transaction/mod.rs"
_KERNEL = "delta-io/delta: kernel/kernel-api/.../internal/TransactionImpl.java"


def _mark(
    client: str | None,
    name: str,
    field: str,
    pattern: str,
    source: str,
    *samples: str,
    confidence: Confidence = Confidence.CERTAIN,
    could_be: tuple[str, ...] = (),
) -> Mark:
    sure = Confidence.UNKNOWN if client is None else confidence
    return Mark(client, name, field, pattern, sure, source, samples, could_be)


MARKS = (
    _mark(
        *("delta-spark", "Delta Spark", "engineInfo"),
        # Versions of Microsoft's builds have four or more numbers.
        rf"(?:Kernel-[\w.+-]+/)?{_SPARK} Delta-Lake/"
        rf"(?:(?!(?:\d+\.){{3}}\d){_VERSION}{_BUILD}|<unknown>)",
        _DELTA_SPARK,
        *("Apache-Spark/3.5.1 Delta-Lake/3.2.0", "Apache-Spark/4.0.0 Delta-Lake/4.0.0rc1"),
        "Apache-Spark/3.4.1-amzn-2 Delta-Lake/2.4.0",
        "Kernel-4.4.0/Apache-Spark/4.2.0 Delta-Lake/4.4.0",
    ),
    _mark(
        *("delta-spark", "Delta Spark, DDL through Delta Kernel", "engineInfo"),
        rf"Kernel-[\w.+-]+/Delta-Spark-DSv2/{_VERSION}{_BUILD}",
        "delta-io/delta: spark/v2/.../DDLUtils.java",
        "Kernel-4.4.0/Delta-Spark-DSv2/4.4.0",
    ),
    _mark(
        *(None, "Spark of Microsoft Fabric or Azure Synapse", "engineInfo"),
        rf"Apache-Spark/{_NUMBERS}{_BUILD} Delta-Lake/(?:\d+\.){{3,}}\d+{_BUILD}",
        "sample logs of Fabric and Synapse, which look alike",
        "Apache-Spark/3.4.3.5.3.20250511.1 Delta-Lake/2.4.0.24",
    ),
    _mark(
        *("databricks-runtime", "Databricks Runtime", "engineInfo"),
        # SQL warehouses and serverless compute count differently, by the year for example.
        r"Databricks-Runtime/(?:dlt:)?"
        r"(?:(?P<version>\d{1,2}\.\d+)(?:\.x)?|\d{1,2}\.x|\d{4}\.[\w.]+|<unknown>)(?:-[\w.+-]+)?",
        "golden logs of delta-io/delta and delta-io/delta-rs",
        *("Databricks-Runtime/13.3.x-photon-scala2.12", "Databricks-Runtime/<unknown>"),
        "Databricks-Runtime/18.0.x-aarch64-photon-scala2.13",
        "Databricks-Runtime/dlt:11.3-delta-pipelines-photon-5e0e2c4",
    ),
    _mark(
        *("deltalake", "delta-rs for Python", "engineInfo"),
        rf"delta-rs:py-{_VERSION}{_BUILD}",
        *(_DELTA_RS, "delta-rs:py-1.6.6"),
    ),
    _mark(
        *("delta-rs", "delta-rs", "engineInfo"),
        rf"delta-rs:{_VERSION}{_BUILD}",
        *(_DELTA_RS, "delta-rs:0.32.1"),
        confidence=Confidence.LIKELY,
    ),
    _mark(
        *("deltalake", "delta-rs for Python", "clientVersion"),
        rf"delta-rs\.py-{_VERSION}{_BUILD}",
        *(_DELTA_RS, "delta-rs.py-0.25.5"),
        confidence=Confidence.LIKELY,
    ),
    _mark(
        *("delta-rs", "delta-rs, also deltalake for Python before 0.25.2", "clientVersion"),
        rf"delta-rs\.(?=0\.(?:1?\d|2[0-4])\.){_VERSION}{_BUILD}",
        "commits of deltalake 0.10.1 to 0.25.1: they have the version of its Rust crate",
        "delta-rs.0.21.0",
        confidence=Confidence.LIKELY,
        could_be=("deltalake", "delta-rs"),
    ),
    _mark(
        *("delta-rs", "delta-rs", "clientVersion"),
        rf"delta-rs\.{_VERSION}{_BUILD}",
        *(_DELTA_RS, "delta-rs.0.32.1"),
        confidence=Confidence.LIKELY,
    ),
    _mark(
        *("delta-flink", "Delta connector for Apache Flink", "engineInfo"),
        rf"Kernel-{_VERSION}{_BUILD}/DeltaSink",
        "delta-io/delta: flink/.../AbstractKernelTable.java, of the same release as its kernel",
        "Kernel-4.3.0/DeltaSink",
        confidence=Confidence.LIKELY,
    ),
    _mark(
        *("delta-flink", "Delta connector for Apache Flink, before 4.2", "engineInfo"),
        rf"(?:flink-engine/[\w.]+[ -])?flink-delta-connector/{_VERSION}{_BUILD}",
        "delta-io/delta: connectors/flink/.../ConnectorUtils.java",
        *("flink-engine/1.16.1 flink-delta-connector/3.0.0",),
        "flink-engine/1.14.0-flink-delta-connector/0.3.0",
    ),
    _mark(
        *("xtable", "Apache XTable", "engineInfo"),
        r"Kernel-[\w.+-]+/XTable Delta Sync",
        *("sample logs of Apache XTable", "Kernel-4.0.0/XTable Delta Sync"),
    ),
    _mark(
        *(None, "conversion from Apache Iceberg", "engineInfo"),
        r"Kernel-[\w.+-]+/iceberg",
        *("sample logs", "Kernel-3.3.0/iceberg"),
    ),
    _mark(
        *("delta-kernel-java", "Delta Kernel (Java)", "engineInfo"),
        rf"Kernel-{_VERSION}{_BUILD}/.+",
        *(_KERNEL, "Kernel-4.0.0/acme-loader"),
        confidence=Confidence.LIKELY,
    ),
    _mark(
        *("delta-standalone", "Delta Standalone", "engineInfo"),
        rf"(?:[^\s/]\S* )?Delta-Standalone/(?:{_VERSION}{_BUILD}|<unknown>)",
        "delta-io/connectors: standalone/.../OptimisticTransactionImpl.scala",
        *("acme/2.0 Delta-Standalone/0.6.0", "Delta-Standalone/<unknown>"),
    ),
    _mark(
        *("duckdb", "DuckDB", "engineInfo", r"DuckDB(?:/.*)?"),
        *("duckdb/duckdb-delta: src/storage/delta_transaction.cpp", "DuckDB"),
    ),
    _mark(
        *("clickhouse", "ClickHouse", "engineInfo", r"ClickHouse(?:/.*)?"),
        *("sample logs of ClickHouse", "ClickHouse"),
    ),
    _mark(
        *(None, "delta-go", "clientVersion"),
        r"delta-go\.[\w.+-]+",
        *("rivian/delta-go: action.go", "delta-go.alpha-0.0.0"),
    ),
    _mark(
        *("delta-kernel-rs", "delta-kernel-rs", "kernelVersion"),
        rf"v?{_VERSION}{_BUILD}",
        *("delta-io/delta-kernel-rs: kernel/src/actions/mod.rs", "v0.27.1"),
        confidence=Confidence.LIKELY,
    ),
    _mark(
        *("trino", "Trino", "clusterId"),
        # Starburst's versions continue with -e or -galaxy.
        r"trino-(?P<version>\d+)-(?!e\b|galaxy)[\w.:-]+",
        "trinodb/trino: plugin/trino-delta-lake/.../DeltaLakeMetadata.java (getCommitInfoEntry)",
        "trino-455-trino-worker-0",
    ),
)
"""tried in this order; the first that matches decides"""


def identify_writer(
    info: Mapping[str, Any], transactions: Iterable[tuple[str, int]] = ()
) -> WriterIdentity:
    """Identify the writer of a commit.

    Args:
        info: the commit's `commitInfo`; members of unexpected types are ignored.
        transactions: application id and version of its `txn` actions.

    Returns:
        The client, its version if the mark has one, and the principal. An unknown writer has no
        client, and its mark as `build`.
    """
    principal = _find_principal(info)
    texts = {field: _text(info.get(field)) for field in _FIELDS}
    mark, version = _match(*texts.values())
    if mark is None:
        build = texts["engineInfo"] or texts["clientVersion"]
        return WriterIdentity(None, None, build, principal, Confidence.UNKNOWN, ())
    text = str(texts[mark.field])
    evidence = ((mark.field, text),)
    if mark.client == "delta-rs" and (found := _ingested_from_kafka(info, principal, transactions)):
        likely = Confidence.LIKELY
        return WriterIdentity(_INGEST, None, text, principal, likely, (*evidence, ("txn", found)))
    return WriterIdentity(
        mark.client, version, text, principal, mark.confidence, evidence, mark.could_be
    )


def name_writer(info: Mapping[str, Any]) -> str | None:
    """Return the engine's name as it recorded it, else `ID@VERSION` of the writer."""
    recorded = info.get("engineInfo") or info.get("clientVersion")
    return str(recorded) if recorded else identify_writer(info).label


def identify_name(name: str) -> tuple[str | None, str | None]:
    """Return the client and version of a name that `name_writer` returned; None if unknown."""
    for field in ("engineInfo", "clientVersion"):
        found = identify_writer({field: name})
        if found.client is not None:
            return found.client, found.version
    labeled = re.fullmatch(r"([a-z][\w-]*)@([\w.+-]+)", name, re.ASCII)
    known = {mark.client for mark in MARKS}
    if labeled is not None and labeled[1] in known:
        return labeled[1], labeled[2]
    return (name, None) if name in known else (None, None)


_INGEST = "kafka-delta-ingest"
_FIELDS = ("engineInfo", "clientVersion", "kernelVersion", "clusterId")


def _ingested_from_kafka(
    info: Mapping[str, Any], principal: Principal, transactions: Iterable[tuple[str, int]]
) -> str | None:
    """Return the transaction id that shows kafka-delta-ingest: its query, and a partition.

    Source: delta-io/kafka-delta-ingest, src/delta_helpers.rs and src/lib.rs.
    """
    if principal.stream is None:
        return None
    for app_id, _ in transactions:
        query, _, partition = app_id.rpartition("-")
        if query == principal.stream and partition.isdecimal():
            return app_id
    return None


# A fleet's commits have few different marks.
@lru_cache(maxsize=4096)
def _match(
    engine: str | None, client: str | None, kernel: str | None, cluster: str | None
) -> tuple[Mark | None, str | None]:
    texts = dict(zip(_FIELDS, (engine, client, kernel, cluster), strict=True))
    for mark in MARKS:
        text = texts[mark.field]
        # A cluster can have any name, and Trino records that name but no engine.
        if text is None or (mark.field == "clusterId" and (engine or client)):
            continue
        found = re.fullmatch(mark.pattern, text, re.ASCII)
        if found is not None:
            return mark, found.groupdict().get("version")
    return None, None


def _find_principal(info: Mapping[str, Any]) -> Principal:
    job, notebook = _mapping_or_empty(info.get("job")), _mapping_or_empty(info.get("notebook"))
    query = _text(_mapping_or_empty(info.get("operationParameters")).get("queryId"))
    streams = info.get("operation") == "STREAMING UPDATE"
    return Principal(
        _text(info.get("userName")) or _text(info.get("userId")),
        _text(job.get("jobName")) or _text(job.get("jobId")),
        _text(notebook.get("notebookId")),
        _text(info.get("clusterId")),
        None if streams else query,
        query if streams else None,
    )


def _mapping_or_empty(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return value if 0 < len(value) <= _LONGEST_MARK else None
