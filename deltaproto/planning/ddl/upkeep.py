"""OPTIMIZE, VACUUM, REORG … (PURGE) with a condition, and RESTORE: the protocol stays.

Source: Delta Spark 4.4's `OptimizeTableCommand`, `VacuumCommand` and `RestoreTableCommand`;
measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning import managed
from deltaproto.planning.ddl.checks import references
from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import Commit, Outcome, Refusal, Rewrite
from deltaproto.planning.schema import Path, dotted, find, same
from deltaproto.planning.statement import Purge
from deltaproto.planning.table import Table

_WEEK = 168
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


class Optimize(NamedTuple):
    """OPTIMIZE, whole or in part."""

    where: str = ""
    zorder: tuple[Path, ...] = ()
    full: bool = False

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        refusal = self._refused(table) or managed.upkeep(table, "OPTIMIZE")
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        # Files that are large enough already, or clustered, make no commit.
        commit = Commit("OPTIMIZE", table.protocol, sure=False)
        return Outcome(_some_left(table), (commit,), Rewrite.SOME)

    def _refused(self, table: Table) -> Refusal | None:
        clustered = "clustering" in table.protocol.supported
        if clustered and self.zorder:
            return Refusal(
                "DELTA_CLUSTERING_WITH_ZORDER_BY",
                "a clustered table takes no ZORDER BY",
                "OPTIMIZE without it",
            )
        if clustered and self.where:
            return Refusal(
                "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
                "a clustered table takes no WHERE",
                "OPTIMIZE without it",
            )
        if self.full and (not clustered or table.clustering == ()):
            return Refusal(
                "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
                "FULL is for clustered tables",
                "OPTIMIZE without it",
            )
        for path in self.zorder:
            if dotted(path) in table.partition_columns:
                return Refusal(
                    "DELTA_ZORDERING_ON_PARTITION_COLUMN",
                    f"{dotted(path)} is a partition column",
                    "order by data columns",
                )
            if table.schema is not None and find(table.schema, path) is None:
                return Refusal(
                    "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
                    f"the table has no column {dotted(path)}",
                    "DESCRIBE the table for its columns",
                )
        return beyond_partitions(table, self.where)


def beyond_partitions(table: Table, where: str) -> Refusal | None:
    """The refusal of a condition that names a data column."""
    for path in references(where):
        partition = any(same(dotted(path), column) for column in table.partition_columns)
        if not partition and path[0].upper() not in _WORDS:
            return Refusal(
                "DELTA_NON_PARTITION_COLUMN_REFERENCE",
                f"{dotted(path)} is no partition column",
                "name partition columns only",
            )
    return None


class PurgeWhere(NamedTuple):
    """REORG … WHERE … APPLY (PURGE)."""

    where: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        refusal = beyond_partitions(table, self.where)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        outcome = Purge().outcome(table, engine)
        if outcome.refusal is not None:
            return outcome
        maybe = tuple(commit._replace(sure=False) for commit in outcome.commits)
        return outcome._replace(table=_some_left(table), commits=maybe)


def _some_left(table: Table) -> Table:
    """With some of its deletion vectors gone, or all."""
    return table._replace(vectors=None if table.vectors else table.vectors)


class Vacuum(NamedTuple):
    """VACUUM."""

    dry: bool = False
    hours: int | None = None

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if (refusal := managed.upkeep(table, "VACUUM")) is not None:
            return Outcome(table, refusal=refusal)
        if self.dry:
            return Outcome(table)
        # Not every store gets these commits (spark.databricks.delta.vacuum.logging.enabled).
        commits = tuple(
            Commit(f"VACUUM {what}", table.protocol, sure=False) for what in ("START", "END")
        )
        short = self.hours is not None and self.hours < _WEEK
        warning = (
            "the retention is below the default of a week: Delta refuses it unless its check is "
            "off, and readers and writers in flight may lose their files"
        )
        return Outcome(table, commits, warnings=(warning,) if short else ())


class Restore(NamedTuple):
    """RESTORE to a version or a time."""

    to: str
    """as the statement says it"""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        # The old version's protocol is merged into this one. The files are old ones; how they are
        # partitioned, and what columns are called, seldom ever changes.
        known = Table(
            table.protocol,
            table.configuration,
            unmappable=table.unmappable,
            geospatial=table.geospatial,
            domains=None,
            clustering=None,
            partition_columns=table.partition_columns,
            strays=None,
        )
        warnings = (
            f"columns, properties and constraints become those of {self.to}, and a feature that "
            "was dropped since then comes back; what follows is predicted without them",
        )
        commit = Commit("RESTORE", table.protocol)
        return Outcome(known, (commit,), warnings=warnings)


class Comment(NamedTuple):
    """COMMENT ON TABLE."""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return Outcome(table, (Commit("SET TBLPROPERTIES", table.protocol),))
