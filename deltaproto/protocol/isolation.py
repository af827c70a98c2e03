"""Isolation levels, and what each engine makes of `delta.isolationLevel`.

Sources: Delta Spark's `DeltaConfigs.ISOLATION_LEVEL` and `TransactionHelper`; delta-kernel-rs'
`table_properties` (which delta-rs uses); the Databricks page on isolation levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

PROPERTY = "delta.isolationLevel"


class IsolationLevel(StrEnum):
    """The levels Delta knows; a table may declare the first two."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT_ISOLATION = "SnapshotIsolation"


class Engine(StrEnum):
    """Engines that write Delta tables under their own reading of the property."""

    DELTA_SPARK = "delta-spark"
    DATABRICKS = "databricks"
    DELTA_RS = "delta-rs"


DECLARABLE = (IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE)


class Isolation(NamedTuple):
    """Declared and effective isolation. An effective level of None: the engine refuses to write."""

    declared: str | None
    effective: Mapping[Engine, IsolationLevel | None]

    @property
    def valid(self) -> bool:
        """True when nothing or a level that a table may declare is declared."""
        return self.declared is None or _named(self.declared) in DECLARABLE


def isolation(declared: str | None) -> Isolation:
    """What each engine does with the declared value (None: the property is not set)."""
    return Isolation(declared, {engine: _effective(engine, declared) for engine in Engine})


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


def _effective(engine: Engine, declared: str | None) -> IsolationLevel | None:
    match engine:
        case Engine.DATABRICKS:
            return IsolationLevel.WRITE_SERIALIZABLE if declared is None else _declarable(declared)
        case Engine.DELTA_SPARK:
            # Setting WriteSerializable is refused, a stored one is honoured all the same.
            return IsolationLevel.SERIALIZABLE if declared is None else _declarable(declared)
        case Engine.DELTA_RS:
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
