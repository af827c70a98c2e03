"""OPTIMIZE, VACUUM, conditional REORG … (PURGE), and RESTORE: the protocol does not change.

Source: Delta Spark 4.4's `OptimizeTableCommand`, `VacuumCommand` and `RestoreTableCommand`;
measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

import math
import re
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
_VERSION = re.compile(r"version as of ([0-9]{1,18})")
_TIME = re.compile(r"timestamp as of ('[^']*'|\"[^\"]*\")")
_DATED = re.compile(r"[+-]?[0-9]{4,}(-[0-9]{1,2}){0,2}([t ].*)?")
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


HISTORY_MAY_BE_MISSING = (
    "it is unknown whether the history reaches back that far: Delta may refuse the statement"
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
        refusal = consistency.validate_maintenance(table, "VACUUM") or self._too_short(
            table, engine
        )
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


_RESTORED = "it is unknown which columns, constraints and files RESTORE brings back"


class Restore(NamedTuple):
    """RESTORE to a version or a timestamp."""

    to: str
    """as written in the statement"""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        # The old version's protocol is merged into this one. The old files come back; partitioning
        # and column names rarely change.
        refusal, unresolved = self._missing(table, engine)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        if self._same(table):
            return Outcome(table)
        unstored = consistency.refuse_rewrite(table)
        if unstored is not None:
            message = f"{unstored.message}; {self.to} can only be restored if it lacks such columns"
            return Outcome(table, refusal=unstored._replace(message=message, sure=False))
        known = Table(
            table.protocol,
            table.configuration,
            unmappable=table.unmappable,
            geospatial=table.geospatial,
            domains=None,
            clustering=None,
            partition_columns=table.partition_columns,
            stray_columns=None,
            bounds_changed=True,
            unpredicted=_RESTORED,
        )
        warnings = (
            f"columns, properties and constraints are restored from {self.to}, and features "
            "dropped since then come back; later statements are predicted without them",
        )
        commit = PredictedCommit("RESTORE", table.protocol, sure=not unresolved)
        return Outcome(
            known, (commit,), warnings=(*warnings, *[HISTORY_MAY_BE_MISSING] * unresolved)
        )

    def _missing(self, table: Table, engine: Engine) -> tuple[Refusal | None, bool]:
        """Return why the version is unavailable, and whether that is unknown."""
        version, time = _VERSION.fullmatch(self.to), _TIME.fullmatch(self.to)
        if time is not None:
            if _DATED.fullmatch(time[1][1:-1].strip()):
                return None, True
            error, message = "DELTA_TIMESTAMP_INVALID", f"{time[1]} is not a timestamp"
            return Refusal(error, message, "write it as '2026-01-31 12:00:00'"), False
        if version is None:
            remedy = "use TO VERSION AS OF 3, or TO TIMESTAMP AS OF '2026-01-31 12:00:00'"
            message = f"{self.to or 'nothing'} is neither a version nor a timestamp"
            error = "" if self.to.startswith("version as of '") else "PARSE_SYNTAX_ERROR"
            refusal = Refusal(error, message, remedy)
            known = engine.name is EngineName.DELTA_SPARK
            return (refusal if known else refusal_on_databricks(refusal)), False
        if table.version is not None and int(version[1]) > table.version:
            error = "DELTA_CANNOT_RESTORE_TABLE_VERSION"
            message = f"the newest version is {table.version}"
            return Refusal(error, message, "run DESCRIBE HISTORY to see the versions"), False
        # Older versions may have been cleaned up.
        return None, table.version is None or int(version[1]) != table.version

    def _same(self, table: Table) -> bool:
        """Return True for the newest version, which causes no commit."""
        version = _VERSION.fullmatch(self.to)
        return version is not None and int(version[1]) == table.version


class Comment(NamedTuple):
    """COMMENT ON TABLE."""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if (refusal := consistency.refuse_rewrite(table)) is not None:
            return Outcome(table, refusal=refusal)
        return Outcome(table, (PredictedCommit("SET TBLPROPERTIES", table.protocol),))
