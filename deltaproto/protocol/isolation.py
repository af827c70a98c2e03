"""Isolation levels, what each engine makes of `delta.isolationLevel`, and row-level concurrency."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from deltaproto.protocol.layers import FeatureState

PROPERTY = "delta.isolationLevel"


class IsolationLevel(StrEnum):
    """The levels Delta knows; a table may declare the first two."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT_ISOLATION = "SnapshotIsolation"


class WriterEngine(StrEnum):
    """Engines that write Delta tables under their own reading of the property."""

    DELTA_SPARK = "delta-spark"
    DATABRICKS = "databricks"
    DELTA_RS = "delta-rs"


DECLARABLE = (IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE)


class Isolation(NamedTuple):
    """Declared and effective isolation. An effective level of None: the engine refuses to write."""

    declared: str | None
    effective: Mapping[WriterEngine, IsolationLevel | None]

    @property
    def valid(self) -> bool:
        """True when nothing or a level that a table may declare is declared."""
        return self.declared is None or _named(self.declared) in DECLARABLE


def isolation(declared: str | None) -> Isolation:
    """What each engine does with the declared value (None: the property is not set)."""
    return Isolation(declared, {engine: _effective(engine, declared) for engine in WriterEngine})


class Levels(NamedTuple):
    """The isolation levels of a table as they were seen: the declared one, and each engine's."""

    declared: str | None
    effective: Mapping[str, str | None]

    def differ(self, other: Levels) -> tuple[str, str] | None:
        """Return both in words, with the engines on which they differ; None if they are equal.

        An engine that only one of them knows is not compared.
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


def _effective(engine: WriterEngine, declared: str | None) -> IsolationLevel | None:
    match engine:
        case WriterEngine.DATABRICKS:
            return IsolationLevel.WRITE_SERIALIZABLE if declared is None else _declarable(declared)
        case WriterEngine.DELTA_SPARK:
            # Setting WriteSerializable is refused, a stored one is honoured all the same.
            return IsolationLevel.SERIALIZABLE if declared is None else _declarable(declared)
        case WriterEngine.DELTA_RS:
            return _KERNEL_RS_SPELLING.get(declared or "", IsolationLevel.SERIALIZABLE)


# The kernel compares with the camel-case spelling and drops everything else, so that the value
# Databricks stores, `WriteSerializable`, falls back to its default (run with deltalake 1.6.6).
_KERNEL_RS_SPELLING = {
    "serializable": IsolationLevel.SERIALIZABLE,
    "writeSerializable": IsolationLevel.WRITE_SERIALIZABLE,
    "snapshotIsolation": IsolationLevel.SNAPSHOT_ISOLATION,
}


def _declarable(text: str) -> IsolationLevel | None:
    """The level if a table may declare it: SnapshotIsolation is for rewrites alone."""
    level = _named(text)
    return level if level in DECLARABLE else None


def _named(text: str) -> IsolationLevel | None:
    folded = text.strip().lower()
    return next((level for level in IsolationLevel if level.lower() == folded), None)


class RowLevelSupport(StrEnum):
    """The answer for a runtime that is not known: yes means from 14.2 on."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class RowLevelConcurrency(NamedTuple):
    """Whether Databricks resolves conflicts by row on the table, and why."""

    databricks: RowLevelSupport
    reason: str
    liquid: bool | None = False
    """liquid-clustered, which has it in earlier runtimes; None: the reader does not show it"""


def row_level_concurrency(
    features: tuple[FeatureState, ...],
    partition_columns: tuple[str, ...],
    clustering_columns: tuple[str, ...] | None,
) -> RowLevelConcurrency:
    """The answer for one table from its layout and features."""
    by_name = {state.name: state for state in features}
    identity = by_name.get("identityColumns")
    if identity is not None and identity.enabled:
        return RowLevelConcurrency(
            RowLevelSupport.NO, "tables with identity columns support no concurrent transactions"
        )
    if partition_columns:
        return RowLevelConcurrency(RowLevelSupport.NO, "partitioned tables have none")
    vectors = by_name.get("deletionVectors")
    if vectors is None or vectors.enabled is False:
        return RowLevelConcurrency(
            RowLevelSupport.NO, "it needs deletion vectors, which are not enabled"
        )
    if vectors.enabled is None or (identity is not None and identity.enabled is None):
        return RowLevelConcurrency(
            RowLevelSupport.UNKNOWN, "this reader does not show all that decides it"
        )
    clustering = by_name.get("clustering")
    if clustering_columns is None and clustering is not None:
        return RowLevelConcurrency(
            RowLevelSupport.YES,
            "deletion vectors and no partitions: since Databricks Runtime 13.3 LTS if the table is "
            "liquid-clustered, which this reader does not show, else since 14.2",
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
