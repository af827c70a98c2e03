"""CREATE TABLE and REPLACE TABLE on a table that is there.

Source: Delta Spark 4.4's `CreateDeltaTableCommand` and
`OptimisticTransaction.updateMetadataForNewTableInReplace`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deltaproto.planning import arithmetic, iceberg
from deltaproto.planning.change import about_protocol, requested
from deltaproto.planning.ddl.checks import forbidden
from deltaproto.planning.ddl.own import refused
from deltaproto.planning.ddl.types import Definition
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.outcome import Commit, Outcome, Refusal, Rewrite, elsewhere
from deltaproto.planning.pulled import upgraded
from deltaproto.planning.refused import asked_wrongly, nonsense, unlocated
from deltaproto.planning.schema import Struct, walk
from deltaproto.planning.table import MODE, ROW_ID_COLUMNS, Table

# Kept from the replaced table, unless the statement sets them.
_KEPT = ("delta.enableDeletionVectors", "delta.checkpointPolicy", "delta.enableRowTracking")
_FROM_QUERY = (
    "the columns come from the query: a VARIANT among them adds variantType to the protocol, and "
    "one of TIMESTAMP_NTZ is refused unless timestampNtz is in it"
)
_NO_COMMIT = "by path and without AS SELECT, Delta Spark 4.4 accepts the statement and does nothing"


class CreateTable(NamedTuple):
    """CREATE TABLE, CREATE OR REPLACE TABLE and REPLACE TABLE."""

    replace: bool
    or_create: bool
    if_not_exists: bool
    by_path: bool
    columns: tuple[Definition, ...]
    properties: Mapping[str, str]
    partitioned: tuple[str, ...]
    clustered: tuple[str, ...]
    as_select: bool
    using: str = ""
    """the format; empty: the session's default"""
    clone: bool = False
    constrained: bool = False
    """it has constraints among its columns"""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if not self.replace:
            return self._create(table)
        if self.clone:
            refusal = Refusal(
                "DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
                "a table that has rows cannot be made a clone; what the source's protocol adds to "
                "an empty one is not known",
                "clone to a new table",
                sure=False,
            )
            return Outcome(table, refusal=refusal)
        if self.by_path and self.or_create and not self.as_select:
            return self._ignored(table, engine)
        wrong = self._refused(table, engine)
        return self._replace_all(table, engine) if wrong is None else Outcome(table, refusal=wrong)

    def _create(self, table: Table) -> Outcome:
        if self.clone and self.by_path:
            error = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
            return refused(table, error, "there is a table already", "clone to a new table")
        if self.if_not_exists:
            return Outcome(table)
        remedy = "CREATE TABLE IF NOT EXISTS, or CREATE OR REPLACE TABLE"
        error = "TABLE_OR_VIEW_ALREADY_EXISTS"
        return refused(table, error, "there is such a table already", remedy)

    def _ignored(self, table: Table, engine: Engine) -> Outcome:
        """By path Delta Spark takes the table as not there, and only compares."""
        differs: Refusal | None = None
        if table.schema is None or engine.name is EngineName.DATABRICKS:
            differs = Refusal(
                "",
                "what becomes of the statement by path cannot be told here",
                "name the table, or use REPLACE TABLE",
                sure=False,
            )
        elif self._schema() != _bare(table.schema):
            differs = Refusal(
                "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
                "by path the columns must be those that are there",
                "REPLACE TABLE does replace it",
            )
        elif self.partitioned != table.partition_columns:
            differs = Refusal(
                "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
                "by path the partitions must be those that are there",
                "REPLACE TABLE does replace it",
            )
        elif self.clustered != table.clustering or self.properties:
            differs = Refusal(
                "",
                "by path clustering and properties must be those that are there",
                "REPLACE TABLE does replace it",
                sure=False,
            )
        if differs is not None:
            return Outcome(table, refusal=differs)
        return Outcome(table, warnings=(_NO_COMMIT,))

    def _refused(self, table: Table, engine: Engine) -> Refusal | None:
        wrong = self._format(engine)
        wrong = wrong or nonsense(self.properties, engine) or asked_wrongly(self.properties, engine)
        wrong = wrong or unlocated(self.properties, {})
        if wrong is not None:
            return wrong
        if not self.columns and not self.as_select:
            return Refusal(
                "DELTA_SCHEMA_NOT_PROVIDED",
                "neither columns nor a query are given",
                "give one of them",
            )
        if self.partitioned and "clustering" in table.protocol.supported:
            return Refusal(
                "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
                "a table that can be clustered never gets partitions",
                "leave PARTITIONED BY out",
            )
        if table.on("delta.appendOnly"):
            return Refusal(
                "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                "the table takes rows, and gives none back",
                "set delta.appendOnly = false first",
            )
        return None

    def _format(self, engine: Engine) -> Refusal | None:
        """Spark replaces no table of another format, and has no constraints for Delta's."""
        known = engine.name is EngineName.DELTA_SPARK
        if self.using == "delta" and not self.constrained:
            return None
        if not self.using and not known and not self.constrained:
            return None
        why = "constraints" if self.constrained else f"the format {self.using or 'by default'}"
        refusal = Refusal(
            "UNSUPPORTED_FEATURE.TABLE_OPERATION",
            f"Spark's catalog does not replace the table with {why}",
            "ADD CONSTRAINT afterwards" if self.constrained else "USING DELTA",
            # The default may be delta (spark.sql.sources.default).
            sure=bool(self.using),
        )
        return refusal if known else elsewhere(refusal)

    def _replace_all(self, table: Table, engine: Engine) -> Outcome:
        schema = None if self.as_select and not self.columns else self._schema()
        after = table._replace(configuration=self._configuration(table))
        if iceberg.enabled(after) and not after.mapped:
            after = after.with_properties({MODE: "name"})
        refusal = forbidden(after._replace(geospatial=()), schema or Struct(()))
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        protocol = requested(table, self.properties, engine)
        if self.clustered:
            protocol = arithmetic.enabled(protocol, "clustering", engine)
        defaults = any(column.default is not None for _, column in walk(schema or Struct(())))
        if defaults and "allowColumnDefaults" not in protocol.supported:
            return refused(
                table,
                "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
                "allowColumnDefaults is not in the protocol",
                "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
            )
        enabled = upgraded(protocol, after.configuration, schema, engine)
        if isinstance(enabled, Refusal):
            return Outcome(table, refusal=enabled)
        unfit = iceberg.unfit(after, schema or Struct(()))
        if unfit is not None:
            return Outcome(table, refusal=unfit)
        tracked = "rowTracking" in enabled.supported
        after = after._replace(
            protocol=enabled,
            vectors=False,
            row_ids=False if not (tracked and self.as_select) else None,
            clustering=self.clustered,
            partition_columns=self.partitioned,
            domains=None if table.domains or self.clustered else table.domains,
            rewritten=True,
        ).with_schema(schema)
        operation = "CREATE OR REPLACE TABLE" if self.or_create else "REPLACE TABLE"
        commit = Commit(operation + (" AS SELECT" if self.as_select else ""), enabled)
        warnings = (_FROM_QUERY,) if schema is None else ()
        return Outcome(after, (commit,), Rewrite.ALL, warnings=warnings)

    def _schema(self) -> Struct:
        return Struct(tuple(definition.column for definition in self.columns))

    def _configuration(self, table: Table) -> dict[str, str]:
        kept = {key: table.configuration[key] for key in _KEPT if key in table.configuration}
        stored = {k: v for k, v in self.properties.items() if not about_protocol(k)}
        ids = {
            key: table.configuration[key] for key in ROW_ID_COLUMNS if key in table.configuration
        }
        return {**ids, **kept, **stored}


def _bare(schema: Struct) -> Struct:
    return Struct(tuple(column._replace(type_changes=None) for column in schema.columns))
