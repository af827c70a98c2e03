"""CREATE TABLE and REPLACE TABLE for an existing table.

Source: Delta Spark 4.4's `CreateDeltaTableCommand` and
`OptimisticTransaction.updateMetadataForNewTableInReplace`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deltaproto.planning import arithmetic
from deltaproto.planning.ddl.checks import validate_columns
from deltaproto.planning.ddl.resolution import (
    UNRESOLVED,
    Resolution,
    resolve_default,
    resolve_generation,
)
from deltaproto.planning.ddl.types import ColumnDefinition
from deltaproto.planning.ddl.user_statement import refuse
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import consistency, iceberg, statistics
from deltaproto.planning.predict.auto_enable import upgrade_protocol
from deltaproto.planning.predict.collations import has_collation
from deltaproto.planning.predict.outcome import (
    Outcome,
    PredictedCommit,
    Refusal,
    Rewrite,
    refusal_on_databricks,
)
from deltaproto.planning.predict.pending import requested_protocol
from deltaproto.planning.predict.schema import (
    Atomic,
    Column,
    Struct,
    dotted_path,
    find_column,
    find_duplicate,
    resolve_path,
    walk_columns,
)
from deltaproto.planning.predict.set_properties import is_protocol_property
from deltaproto.planning.predict.table import MAPPING_MODE, ROW_ID_COLUMNS, Table
from deltaproto.planning.predict.validation import (
    validate_copy_location,
    validate_requested_features,
    validate_values,
)
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import split_name

# Kept from the replaced table unless the statement sets them.
_KEPT_PROPERTIES = (
    "delta.enableDeletionVectors",
    "delta.checkpointPolicy",
    "delta.enableRowTracking",
)
_FROM_QUERY = (
    "the columns come from the query: a VARIANT column adds variantType to the protocol, and "
    "a TIMESTAMP_NTZ column is refused unless the protocol has timestampNtz"
)
_COLUMNS_OF_QUERY = "the column types are unknown, because they come from the query"
_NO_COMMIT = "by path and without AS SELECT, Delta Spark 4.4 accepts the statement and does nothing"


class CreateTable(NamedTuple):
    """CREATE TABLE, CREATE OR REPLACE TABLE and REPLACE TABLE."""

    replace: bool
    or_create: bool
    if_not_exists: bool
    by_path: bool
    columns: tuple[ColumnDefinition, ...]
    properties: Mapping[str, str]
    partitioned: tuple[str, ...]
    clustered: tuple[str, ...]
    as_select: bool
    using: str = ""
    """the format; empty: the session default"""
    clone: bool = False
    constrained: bool = False
    """True if the column list has constraints"""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if not self.replace:
            return self._create(table)
        if self.clone:
            refusal = Refusal(
                "DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
                "a table with rows cannot become a clone; what the source's protocol adds to an "
                "empty table is unknown",
                "clone into a new table",
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
            return refuse(table, error, "the table already exists", "clone into a new table")
        if self.if_not_exists:
            return Outcome(table)
        remedy = "use CREATE TABLE IF NOT EXISTS, or CREATE OR REPLACE TABLE"
        error = "TABLE_OR_VIEW_ALREADY_EXISTS"
        return refuse(table, error, "the table already exists", remedy)

    def _ignored(self, table: Table, engine: Engine) -> Outcome:
        """Predict CREATE by path: Delta Spark only compares the definitions."""
        differs: Refusal | None = None
        unfit = _validate_partitioning(self, self._schema()) or self._refuse_partitions(table)
        if table.schema is None or engine.name is EngineName.DATABRICKS:
            differs = Refusal(
                "",
                "the effect of the statement by path is unknown",
                "use the table name, or REPLACE TABLE",
                sure=False,
            )
        elif unfit is not None:
            differs = unfit
        elif self._schema() != _without_type_changes(table.schema):
            differs = Refusal(
                "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
                "by path, the columns must match the existing ones",
                "use REPLACE TABLE",
            )
        elif self.partitioned != table.partition_columns:
            differs = Refusal(
                "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
                "by path, the partitions must match the existing ones",
                "use REPLACE TABLE",
            )
        elif self.clustered != table.clustering or self.properties:
            differs = Refusal(
                "",
                "by path, clustering and properties must match the existing ones",
                "use REPLACE TABLE",
                sure=False,
            )
        if differs is not None:
            return Outcome(table, refusal=differs)
        return Outcome(table, warnings=(_NO_COMMIT,))

    def _refuse_partitions(self, table: Table) -> Refusal | None:
        if not self.partitioned or "clustering" not in table.protocol.supported:
            return None
        return Refusal(
            "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
            "a table with clustering cannot get partitions",
            "remove PARTITIONED BY",
        )

    def _refused(self, table: Table, engine: Engine) -> Refusal | None:
        wrong = self._format(engine)
        if wrong is not None:
            return wrong
        wrong = validate_values(self.properties, engine) or validate_requested_features(
            self.properties, engine
        )
        wrong = wrong or validate_copy_location(self.properties, {})
        if wrong is not None:
            # Only ALTER TABLE has an error class for invalid values.
            return wrong._replace(error="") if wrong.error == engine.bad_value else wrong
        if not self.columns and not self.as_select:
            return Refusal(
                "DELTA_SCHEMA_NOT_PROVIDED",
                "the statement has neither columns nor a query",
                "add one of them",
            )
        wrong = _validate_definition(self, engine)
        if wrong is not None:
            return wrong
        wrong = self._refuse_partitions(table)
        if wrong is not None:
            return wrong
        if table.is_on("delta.appendOnly"):
            return Refusal(
                "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                "the table is append-only",
                "set delta.appendOnly = false first",
            )
        return None

    def _format(self, engine: Engine) -> Refusal | None:
        """Refuse other formats, and constraints in the column list."""
        known = engine.name is EngineName.DELTA_SPARK
        if self.using == "delta" and not self.constrained:
            return None
        if not self.using and not known and not self.constrained:
            return None
        why = "constraints" if self.constrained else f"the format {self.using or 'by default'}"
        refusal = Refusal(
            "UNSUPPORTED_FEATURE.TABLE_OPERATION",
            f"Spark's catalog cannot replace the table with {why}",
            "use ADD CONSTRAINT afterwards" if self.constrained else "USING DELTA",
            # The default may be delta (spark.sql.sources.default).
            sure=bool(self.using),
            on_databricks=False,
        )
        return refusal if known else refusal_on_databricks(refusal)

    def _replace_all(self, table: Table, engine: Engine) -> Outcome:
        schema = None if self.as_select and not self.columns else self._schema()
        after = table._replace(configuration=self._configuration(table))
        if iceberg.enabled_version(after) and MAPPING_MODE not in after.configuration:
            after = after.with_properties({MAPPING_MODE: "name"})
        after = iceberg.complete_row_tracking(iceberg.with_atomic_conversion(after, engine))
        named = after.with_schema(schema)._replace(partition_columns=self._partitions())
        refusal = validate_columns(table._replace(geospatial=()), named)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        protocol = requested_protocol(table, self.properties, engine)
        if self.clustered:
            protocol = arithmetic.enable_feature(protocol, "clustering", engine)
        defaults = any(
            column.default is not None for _, column in walk_columns(schema or Struct(()))
        )
        if defaults and "allowColumnDefaults" not in protocol.supported:
            return refuse(
                table,
                "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
                "allowColumnDefaults is not in the protocol",
                "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
            )
        enabled = upgrade_protocol(protocol, after.configuration, schema, engine)
        if isinstance(enabled, Refusal):
            return Outcome(table, refusal=enabled)
        columns = [tuple(split_name(column)) for column in self.clustered]
        # Delta first checks the new properties with the old columns.
        mixed = table._replace(configuration=after.configuration)
        # Without the mode: no files are rewritten to remove column mapping first.
        unmapped = table.without_properties(MAPPING_MODE)
        unfit = consistency.validate_hudi(mixed) or iceberg.validate_change(unmapped, mixed, engine)
        unfit = unfit or consistency.validate_new_columns(table, named)
        unfit = unfit or statistics.validate_clustering_statistics(named, columns)
        if unfit is not None:
            return Outcome(table, refusal=unfit)
        tracked = self.as_select and "rowTracking" in enabled.supported
        after = after._replace(
            protocol=enabled,
            vectors=False,
            row_ids=None if tracked else False,
            untracked=False,
            clustering=self.clustered,
            partition_columns=self._partitions(),
            domains=None if table.domains or self.clustered or tracked else table.domains,
            rewritten=True,
            bounds=None,
            bounds_changed=True,
            unpredicted=_COLUMNS_OF_QUERY if schema is None else "",
        ).with_schema(schema)
        operation = "CREATE OR REPLACE TABLE" if self.or_create else "REPLACE TABLE"
        unresolved = self.as_select or _has_unresolved(self, engine)
        name = operation + (" AS SELECT" if self.as_select else "")
        commit = PredictedCommit(name, enabled, sure=not unresolved)
        warnings = [_FROM_QUERY] * (schema is None) + [UNRESOLVED] * unresolved
        return Outcome(after, (commit,), Rewrite.ALL, warnings=tuple(warnings))

    def _partitions(self) -> tuple[str, ...]:
        """Return the partition columns, spelled like the column definitions."""
        schema = self._schema()
        return tuple(resolve_path(schema, (name,))[0] for name in self.partitioned)

    def _schema(self) -> Struct:
        return Struct(tuple(definition.column for definition in self.columns))

    def _configuration(self, table: Table) -> dict[str, str]:
        kept = {
            key: table.configuration[key] for key in _KEPT_PROPERTIES if key in table.configuration
        }
        stored = {k: v for k, v in self.properties.items() if not is_protocol_property(k)}
        ids = {
            key: table.configuration[key] for key in ROW_ID_COLUMNS if key in table.configuration
        }
        return {**ids, **kept, **stored}


def _validate_definition(made: CreateTable, engine: Engine) -> Refusal | None:
    """Refuse columns, partitions and clustering that Spark rejects for any table."""
    schema = Struct(tuple(definition.column for definition in made.columns))
    if made.as_select and not made.columns:
        return None
    return (
        _validate_partitioning(made, schema)
        or _validate_clustering(made, schema)
        or _validate_computed_columns(schema, engine)
    )


def _validate_partitioning(made: CreateTable, schema: Struct) -> Refusal | None:
    """Refuse repeated columns and partition columns, before Delta compares an existing table."""
    twice = find_duplicate(schema)
    if twice is not None:
        message = f"{dotted_path(twice)} is repeated"
        return Refusal("COLUMN_ALREADY_EXISTS", message, "choose another name")
    names = [name.casefold() for name in made.partitioned]
    for name in made.partitioned:
        column = find_column(schema, (name,))
        if column is None or names.count(name.casefold()) > 1:
            why = "is not a column" if column is None else "is listed twice"
            return Refusal("", f"the partition column {name} {why}", "correct PARTITIONED BY")
        kind = column.type
        if (
            not isinstance(kind, Atomic)
            or kind.name in ("variant", "void")
            or has_collation(kind.name)
        ):
            return Refusal(
                "INVALID_PARTITION_COLUMN_DATA_TYPE",
                f"{name} has a type that partition columns cannot have",
                "partition by columns with primitive types, without a collation",
            )
    if names and len(names) == len(schema.columns):
        error, message = "ALL_PARTITION_COLUMNS_NOT_ALLOWED", "no column remains for the data files"
        return Refusal(error, message, "remove a column from PARTITIONED BY")
    return None


def _validate_clustering(made: CreateTable, schema: Struct) -> Refusal | None:
    columns = [tuple(split_name(column)) for column in made.clustered]
    refusal = statistics.validate_clustering(Table(Protocol(1, 2)).with_schema(schema), columns)
    if refusal is None or not made.by_path or refusal.error.endswith("NUM_COLUMNS"):
        return refusal
    # In this case Spark looks for a table of this name in its own catalog.
    error = "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED"
    return refusal._replace(error=error)


def _validate_computed_columns(schema: Struct, engine: Engine) -> Refusal | None:
    for _, column in walk_columns(schema):
        if column.identity and column.type != Atomic("long"):
            error, message = (
                "IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
                f"{column.name} is not a BIGINT",
            )
            return Refusal(error, message, "use BIGINT")
        judged = _resolve_expression(schema, column, engine)
        if judged.refusal is not None:
            return judged.refusal
    return None


def _resolve_expression(schema: Struct, column: Column, engine: Engine) -> Resolution:
    if column.default is not None:
        return resolve_default(column.default, column.type, engine)
    if column.generated is not None:
        return resolve_generation(schema, column, engine)
    return Resolution()


def _has_unresolved(made: CreateTable, engine: Engine) -> bool:
    schema = Struct(tuple(definition.column for definition in made.columns))
    return any(
        _resolve_expression(schema, column, engine).unresolved for _, column in walk_columns(schema)
    )


def _without_type_changes(schema: Struct) -> Struct:
    return Struct(tuple(column._replace(type_changes=None) for column in schema.columns))
