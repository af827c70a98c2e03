"""Isolation levels, the effect of `delta.isolationLevel` per engine, and row-level concurrency."""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from deltaproto.protocol.layers import FeatureState

ISOLATION_PROPERTY = "delta.isolationLevel"


class IsolationLevel(StrEnum):
    """Delta's isolation levels; a table may declare the first two."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT_ISOLATION = "SnapshotIsolation"


class WriterEngine(StrEnum):
    """Engines that write Delta tables and interpret the property differently."""

    DELTA_SPARK = "delta-spark"
    DATABRICKS = "databricks"
    DELTA_RS = "delta-rs"


DECLARABLE_LEVELS = (IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE)


class Isolation(NamedTuple):
    """Declared and effective isolation. An effective level of None: the engine refuses to write."""

    declared: str | None
    effective: Mapping[WriterEngine, IsolationLevel | None]

    @property
    def valid(self) -> bool:
        """True if no level or an allowed level is declared."""
        return self.declared is None or _parse_level(self.declared) in DECLARABLE_LEVELS


@lru_cache(maxsize=256)
def evaluate_isolation(declared: str | None) -> Isolation:
    """Return each engine's level for the declared value (None: not set)."""
    return Isolation(
        declared, {engine: _effective_level(engine, declared) for engine in WriterEngine}
    )


class IsolationLevels(NamedTuple):
    """Observed isolation levels of a table: the declared one, and each engine's."""

    declared: str | None
    effective: Mapping[str, str | None]

    def differ(self, other: "IsolationLevels") -> tuple[str, str] | None:
        """Describe both levels and the engines on which they differ; None if they are equal.

        Engines in only one of them are not compared.
        """
        engines = [
            engine
            for engine, level in self.effective.items()
            if engine in other.effective and other.effective[engine] != level
        ]
        if self.declared == other.declared and not engines:
            return None
        return self._on(engines), other._on(engines)

    def _on(self, engines: list[str]) -> str:
        effective = ", ".join(f"{self.effective[each] or 'refused'} on {each}" for each in engines)
        declared = self.declared or "not set"
        return f"{declared} ({effective})" if effective else declared


def _effective_level(engine: WriterEngine, declared: str | None) -> IsolationLevel | None:
    match engine:
        case WriterEngine.DATABRICKS:
            return (
                IsolationLevel.WRITE_SERIALIZABLE
                if declared is None
                else _parse_declarable(declared)
            )
        case WriterEngine.DELTA_SPARK:
            # Delta refuses to set a level other than Serializable, but respects any stored level,
            # including SnapshotIsolation (commits of 4.4.0 record it). A stored value that is not a
            # level makes commits fail.
            return IsolationLevel.SERIALIZABLE if declared is None else _parse_level(declared)
        case WriterEngine.DELTA_RS:
            return _KERNEL_RS_SPELLING.get(declared or "", IsolationLevel.SERIALIZABLE)


# The kernel compares with the camel-case spelling and ignores everything else, so the value that
# Databricks stores, `WriteSerializable`, falls back to its default (measured with deltalake 1.6.6).
_KERNEL_RS_SPELLING = {
    "serializable": IsolationLevel.SERIALIZABLE,
    "writeSerializable": IsolationLevel.WRITE_SERIALIZABLE,
    "snapshotIsolation": IsolationLevel.SNAPSHOT_ISOLATION,
}


def _parse_declarable(text: str) -> IsolationLevel | None:
    """Return the level if a table can declare it; SnapshotIsolation is only for rewrites."""
    level = _parse_level(text)
    return level if level in DECLARABLE_LEVELS else None


def _parse_level(text: str) -> IsolationLevel | None:
    folded = text.strip().lower()
    return next((level for level in IsolationLevel if level.lower() == folded), None)


class RowLevelSupport(StrEnum):
    """Whether the table supports row-level concurrency.

    For an unknown runtime, yes means 14.2 or later.
    """

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class RowLevelConcurrency(NamedTuple):
    """Whether Databricks resolves conflicts by row on the table, with the reason."""

    databricks: RowLevelSupport
    reason: str
    liquid: bool | None = False
    """whether the table uses liquid clustering, which supports it in earlier runtimes; None: not
    visible to the reader
    """


def row_level_concurrency(
    features: tuple[FeatureState, ...],
    partition_columns: tuple[str, ...],
    clustering_columns: tuple[str, ...] | None,
) -> RowLevelConcurrency:
    """Evaluate one table's layout and features."""
    by_name = {state.name: state for state in features}
    identity = by_name.get("identityColumns")
    if identity is not None and identity.enabled:
        return RowLevelConcurrency(
            RowLevelSupport.NO, "tables with identity columns support no concurrent transactions"
        )
    if partition_columns:
        return RowLevelConcurrency(RowLevelSupport.NO, "partitioned tables do not support it")
    vectors = by_name.get("deletionVectors")
    if vectors is None or vectors.enabled is False:
        return RowLevelConcurrency(
            RowLevelSupport.NO, "it requires deletion vectors, which are not enabled"
        )
    if vectors.enabled is None or (identity is not None and identity.enabled is None):
        return RowLevelConcurrency(
            RowLevelSupport.UNKNOWN, "this reader does not show everything that decides it"
        )
    clustering = by_name.get("clustering")
    if clustering_columns is None and clustering is not None:
        return RowLevelConcurrency(
            RowLevelSupport.YES,
            "deletion vectors and no partitions: since Databricks Runtime 13.3 LTS if the table is "
            "liquid-clustered, which this reader does not show, otherwise since 14.2",
            liquid=None,
        )
    if clustering_columns:
        return RowLevelConcurrency(
            RowLevelSupport.YES,
            "liquid clustering with deletion vectors: since Databricks Runtime 13.3 LTS",
            liquid=True,
        )
    return RowLevelConcurrency(
        RowLevelSupport.YES,
        "deletion vectors and no partitions: since Databricks Runtime 14.2",
    )
