"""Statements of a plan: each provides its SQL and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import NamedTuple
from typing import Protocol as Interface

from deltaproto.planning import arithmetic
from deltaproto.planning.engine import CLUSTERS_EXISTING_SINCE, Engine, EngineName
from deltaproto.planning.predict.before_drop import may_skip_files, purge_rewrites, purged
from deltaproto.planning.predict.consistency import (
    refuse_constraint_change,
    refuse_rewrite,
)
from deltaproto.planning.predict.drop_feature import drop_feature
from deltaproto.planning.predict.outcome import Outcome, PredictedCommit, Refusal, Rewrite
from deltaproto.planning.predict.pending import with_pending
from deltaproto.planning.predict.set_properties import set_properties, unset_properties
from deltaproto.planning.predict.statistics import (
    validate_clustering,
    validate_clustering_statistics,
)
from deltaproto.planning.predict.table import Table
from deltaproto.planning.predict.unreadable import refuse_file_rewrite
from deltaproto.protocol.feature import CLUSTERING_DOMAIN
from deltaproto.protocol.feature_catalog import FEATURE_PREFIX
from deltaproto.sql.quoting import column_name, quote_identifier, quote_literal, split_name


class Action(StrEnum):
    """The kinds of steps."""

    SET = "set-properties"
    UNSET = "unset-properties"
    ADD = "add-feature"
    RAISE = "raise-versions"
    DROP = "drop-feature"
    DROP_CONSTRAINT = "drop-constraint"
    CLUSTER_BY = "cluster-by"
    REORG = "reorg"
    WAIT = "wait"
    REWRITE = "rewrite-table"
    """copy into a new table"""
    SWAP = "swap"
    """replace the table with the copy"""
    SQL = "sql"
    """the user's own SQL statement"""


class Statement(Interface):
    """One statement, or a wait between two statements."""

    @property
    def action(self) -> Action: ...

    @property
    def feature(self) -> str | None:
        """The affected feature, or None."""
        ...

    def sql(self, table: str) -> str | None:
        """Return the SQL for `table` (already quoted); None for a wait."""
        ...

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        """Predict the effect on the table."""
        ...


class SetProperties(NamedTuple):
    """ALTER TABLE … SET TBLPROPERTIES."""

    properties: Mapping[str, str]
    feature: str | None = None

    @property
    def action(self) -> Action:
        keys = {key.lower() for key in self.properties}
        if all(key.startswith(FEATURE_PREFIX) for key in keys):
            return Action.ADD
        if keys <= {"delta.minreaderversion", "delta.minwriterversion"}:
            return Action.RAISE
        return Action.SET

    def sql(self, table: str) -> str:
        return f"ALTER TABLE {table} SET TBLPROPERTIES ({format_properties(self.properties)})"

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return with_pending(
            table, engine, partial(set_properties, properties=self.properties, engine=engine)
        )


class UnsetProperties(NamedTuple):
    """ALTER TABLE … UNSET TBLPROPERTIES."""

    keys: tuple[str, ...]
    feature: str | None = None

    @property
    def action(self) -> Action:
        return Action.UNSET

    def sql(self, table: str) -> str:
        keys = ", ".join(quote_literal(key) for key in self.keys)
        return f"ALTER TABLE {table} UNSET TBLPROPERTIES ({keys})"

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        predict = partial(unset_properties, keys=self.keys, engine=engine)
        return with_pending(table, engine, predict)


class DropFeature(NamedTuple):
    """ALTER TABLE … DROP FEATURE, fast or with TRUNCATE HISTORY."""

    feature: str
    truncate: bool = False

    @property
    def action(self) -> Action:
        return Action.DROP

    def sql(self, table: str) -> str:
        history = " TRUNCATE HISTORY" if self.truncate else ""
        return f"ALTER TABLE {table} DROP FEATURE {quote_identifier(self.feature)}{history}"

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return drop_feature(table, self.feature, engine, truncate=self.truncate)


class DropConstraint(NamedTuple):
    """ALTER TABLE … DROP CONSTRAINT, or UNSET TBLPROPERTIES for one that it does not find."""

    name: str
    unset: str | None = None
    """the property to unset; None: DROP CONSTRAINT finds the constraint"""
    feature: str | None = "checkConstraints"

    @property
    def action(self) -> Action:
        return Action.DROP_CONSTRAINT

    def sql(self, table: str) -> str:
        if self.unset is not None:
            return f"ALTER TABLE {table} UNSET TBLPROPERTIES ({quote_literal(self.unset)})"
        return f"ALTER TABLE {table} DROP CONSTRAINT {quote_identifier(self.name)}"

    def key(self, table: Table) -> str | None:
        """Return the property that the statement removes from the table, or None."""
        if self.unset is not None:
            return self.unset if self.unset in table.configuration else None
        return table.constraint_key(self.name)

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return with_pending(table, engine, partial(self._outcome, engine=engine))

    def _outcome(self, table: Table, engine: Engine) -> Outcome:
        if self.unset is not None:
            return unset_properties(table, (self.unset,), engine)
        key = table.constraint_key(self.name)
        if key is None:
            return Outcome(table, refusal=self._refuse_unknown(table))
        unstored = refuse_constraint_change(table)
        if unstored is not None:
            return Outcome(table, refusal=unstored)
        commit = PredictedCommit("DROP CONSTRAINT", table.protocol)
        return Outcome(table.without_properties(key), (commit,))

    def _refuse_unknown(self, table: Table) -> Refusal:
        error = "DELTA_CONSTRAINT_DOES_NOT_EXIST"
        for name, key in table.constraints.items():
            if name.lower() == self.name.lower():
                message = f"DROP CONSTRAINT does not find {key}, which is not in lower case"
                return Refusal(error, message, f"UNSET TBLPROPERTIES ({quote_literal(key)})")
        hint = "DROP CONSTRAINT IF EXISTS ignores it"
        return Refusal(error, f"unknown constraint {self.name}", hint)


def drop_constraints(table: Table) -> list[DropConstraint]:
    """Return the statements that drop each CHECK constraint of the table."""
    return [
        DropConstraint(name, None if table.constraint_key(name) == key else key)
        for name, key in table.constraints.items()
    ]


# Source: Delta Lake documentation, "Use liquid clustering for Delta tables"; Databricks
# documentation, "OPTIMIZE".
KEEPS_FILES = (
    "CLUSTER BY rewrites no existing files: it applies to files written later. Only "
    "OPTIMIZE … FULL (Delta Lake 3.3 or later, Databricks Runtime 16.0 or later) rewrites existing "
    "files to the new clustering columns."
)
UNCLUSTERS = (
    "CLUSTER BY NONE rewrites no existing files: they keep their layout. After a later CLUSTER BY, "
    "only OPTIMIZE … FULL rewrites them."
)


class ClusterBy(NamedTuple):
    """ALTER TABLE … CLUSTER BY; without columns, CLUSTER BY NONE."""

    columns: tuple[str, ...]
    feature: str | None = "clustering"

    @property
    def action(self) -> Action:
        return Action.CLUSTER_BY

    def sql(self, table: str) -> str:
        if not self.columns:
            return f"ALTER TABLE {table} CLUSTER BY NONE"
        return f"ALTER TABLE {table} CLUSTER BY ({', '.join(map(column_name, self.columns))})"

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return with_pending(table, engine, partial(self._outcome, engine=engine))

    def _outcome(self, table: Table, engine: Engine) -> Outcome:
        columns = [tuple(split_name(column)) for column in self.columns]
        refusal = validate_clustering(table, columns)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        if table.partition_columns:
            refusal = Refusal(
                "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
                f"the table is partitioned by {', '.join(table.partition_columns)}",
                "ALTER TABLE … REPLACE PARTITIONED BY WITH CLUSTER BY (columns)"
                if engine.replaces_partitions
                else "create a new table without partitions",
            )
            return Outcome(table, refusal=refusal)
        protocol = table.protocol
        if "clustering" not in protocol.supported and not engine.clusters_existing:
            refusal = Refusal(
                "DELTA_ALTER_TABLE_CLUSTER_BY_NOT_ALLOWED",
                f"{engine} can only change the columns of tables created with clustering",
                f"--engine {EngineName.DELTA_SPARK}@{CLUSTERS_EXISTING_SINCE} or later",
            )
            return Outcome(table, refusal=refusal)
        if not self.columns and "clustering" not in protocol.supported:
            return Outcome(table)
        # On a table with the feature, only the domain changes.
        stored = "clustering" in protocol.supported
        refusal = validate_clustering_statistics(table, columns)
        refusal = refusal or (None if stored else refuse_rewrite(table))
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        if self.columns and not stored:
            protocol = arithmetic.enable_feature(protocol, "clustering", engine)
        after = table._replace(protocol=protocol, clustering=self.columns)
        if table.domains is not None:
            after = after._replace(domains=tuple(sorted({*table.domains, CLUSTERING_DOMAIN})))
        warning = KEEPS_FILES if self.columns else UNCLUSTERS
        return Outcome(after, (PredictedCommit("CLUSTER BY", protocol),), warnings=(warning,))


class Purge(NamedTuple):
    """REORG TABLE … APPLY (PURGE): rewrites the files with deletion vectors."""

    feature: str | None = "deletionVectors"

    @property
    def action(self) -> Action:
        return Action.REORG

    def sql(self, table: str) -> str:
        return f"REORG TABLE {table} APPLY (PURGE)"

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if (refusal := refuse_file_rewrite(table, "REORG", engine)) is not None:
            return Outcome(table, refusal=refusal)
        rewrites = purge_rewrites(table)
        if rewrites is Rewrite.NONE:
            return Outcome(table)
        there = bool(table.vectors or table.stray_columns)
        commit = PredictedCommit(
            "REORG", table.protocol, sure=there and not may_skip_files(table, engine)
        )
        return Outcome(purged(table, engine), (commit,), rewrites)


class Wait(NamedTuple):
    """Wait until the history that shows dropped features may be deleted."""

    hours: float
    setting: str
    """the table property that sets the wait, with its value"""
    feature: str | None = None

    @property
    def action(self) -> Action:
        return Action.WAIT

    def sql(self, table: str) -> None:
        return None

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return Outcome(table.waited(self.hours))


def format_properties(properties: Mapping[str, str]) -> str:
    """Format properties for TBLPROPERTIES."""
    return ", ".join(
        f"{quote_literal(key)} = {quote_literal(value)}" for key, value in properties.items()
    )
