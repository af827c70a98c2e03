"""OPTIMIZE, VACUUM, conditional REORG … (PURGE), and COMMENT: the protocol does not change.

Source: Delta Spark 4.4's `OptimizeTableCommand` and `VacuumCommand`; measured with Delta Spark
4.4.0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from deltaproto.planning.ddl.checks import find_column_references
from deltaproto.planning.ddl.resolution import resolve_condition
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import consistency, statistics
from deltaproto.planning.predict.outcome import (
    Outcome,
    PredictedCommit,
    Refusal,
    Rewrite,
    refusal_on_databricks,
)
from deltaproto.planning.predict.properties import FILE_RETENTION
from deltaproto.planning.predict.schema import Path, dotted_path, is_same_name
from deltaproto.planning.predict.table import Table
from deltaproto.planning.predict.unreadable import refuse_file_rewrite
from deltaproto.planning.statement import Purge
from deltaproto.protocol.intervals import parse_interval

_IGNORES_HOURS = "4.1"
_WORDS = frozenset(
    {
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "NULL",
        "LIKE",
        "BETWEEN",
        "TRUE",
        "FALSE",
        "INTERVAL",
        "DISTINCT",
    }
)


_WHERE_CLUSTERED = Refusal(
    "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
    "WHERE is not allowed on a clustered table",
    "remove it",
)


class Optimize(NamedTuple):
    """OPTIMIZE of the whole table or a part."""

    where: str = ""
    zorder: tuple[Path, ...] = ()
    full: bool = False

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        refusal = self._refused(table, engine) or refuse_file_rewrite(table, "OPTIMIZE", engine)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        # Files that are large enough or already clustered cause no commit.
        commit = PredictedCommit("OPTIMIZE", table.protocol, sure=False)
        return Outcome(_purge_some_vectors(table), (commit,), Rewrite.SOME)

    def _refused(self, table: Table, engine: Engine) -> Refusal | None:
        clustered = "clustering" in table.protocol.supported
        if clustered and self.zorder:
            return Refusal(
                "DELTA_CLUSTERING_WITH_ZORDER_BY",
                "ZORDER BY is not allowed on a clustered table",
                "remove it",
            )
        if clustered and self.where:
            return _WHERE_CLUSTERED
        if self.full and (not clustered or table.clustering == ()):
            return Refusal(
                "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
                "FULL requires a clustered table",
                "remove it",
            )
        unordered = statistics.validate_zorder(table, self.zorder)
        if unordered is not None:
            return unordered
        return validate_partition_condition(table, self.where) or _validate_condition(
            table, self.where, engine
        )


def _validate_condition(table: Table, where: str, engine: Engine) -> Refusal | None:
    """Refuse an invalid condition."""
    return resolve_condition(table, where, (), engine).refusal if where and table.schema else None


def validate_partition_condition(table: Table, where: str) -> Refusal | None:
    """Refuse a condition that refers to a data column."""
    for path in find_column_references(where):
        partition = any(
            is_same_name(dotted_path(path), column) for column in table.partition_columns
        )
        if not partition and path[0].upper() not in _WORDS:
            return Refusal(
                "DELTA_NON_PARTITION_COLUMN_REFERENCE",
                f"{dotted_path(path)} is not a partition column",
                "use only partition columns",
            )
    return None


class PurgeWhere(NamedTuple):
    """REORG … WHERE … APPLY (PURGE)."""

    where: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        clustered = "clustering" in table.protocol.supported
        refusal = _WHERE_CLUSTERED if clustered else validate_partition_condition(table, self.where)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        outcome = Purge().outcome(table, engine)
        if outcome.refusal is not None:
            return outcome
        maybe = tuple(commit._replace(sure=False) for commit in outcome.commits)
        return outcome._replace(table=_purge_some_vectors(table), commits=maybe)


def _purge_some_vectors(table: Table) -> Table:
    """Return the table with some or all deletion vectors removed."""
    return table._replace(vectors=None if table.vectors else table.vectors)


class Vacuum(NamedTuple):
    """VACUUM."""

    dry: bool = False
    hours: float | None = None

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        managed = consistency.validate_maintenance(table, "VACUUM", engine)
        refusal = managed or self._too_short(table, engine)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        if self.dry:
            return Outcome(table)
        # Some stores do not get these commits (spark.databricks.delta.vacuum.logging.enabled).
        commits = tuple(
            PredictedCommit(f"VACUUM {what}", table.protocol, sure=False)
            for what in ("START", "END")
        )
        ignored = self.hours is not None and round_half_up(self.hours) != 0
        warning = (
            f"{engine} ignores the hours: it deletes what is older than {FILE_RETENTION}, "
            f"{_file_retention(table)} here"
        )
        newest = engine.name is EngineName.DELTA_SPARK and engine.at_least(_IGNORES_HOURS)
        return Outcome(table, commits, warnings=(warning,) if ignored and newest else ())

    def _too_short(self, table: Table, engine: Engine) -> Refusal | None:
        """Refuse RETAIN hours. Newer releases accept only 0, and only if nothing is retained."""
        kept = parse_interval(_file_retention(table))
        if self.hours is None or kept is None:
            return None
        hours = round_half_up(self.hours)
        newest = engine.name is EngineName.DELTA_SPARK and engine.at_least(_IGNORES_HOURS)
        if hours >= kept.hours or (newest and hours):
            return None
        refusal = Refusal(
            "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            f"RETAIN {hours} HOURS is shorter than {FILE_RETENTION}, which is "
            f"{_file_retention(table)} here",
            f"change {FILE_RETENTION}; "
            "spark.databricks.delta.retentionDurationCheck.enabled = false "
            "disables the check, but running readers and writers may then lose their files",
        )
        return refusal if engine.name is EngineName.DELTA_SPARK else refusal_on_databricks(refusal)


def _file_retention(table: Table) -> str:
    return table.configuration.get(FILE_RETENTION) or "interval 1 week"


def round_half_up(hours: float) -> int:
    """Round hours as Delta does."""
    return math.floor(hours + 0.5)


class Comment(NamedTuple):
    """COMMENT ON TABLE."""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if (refusal := consistency.refuse_rewrite(table)) is not None:
            return Outcome(table, refusal=refusal)
        return Outcome(table, (PredictedCommit("SET TBLPROPERTIES", table.protocol),))
