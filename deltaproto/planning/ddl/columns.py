"""ALTER TABLE … ADD, DROP and RENAME COLUMN.

Source: Delta Spark 4.4's `alterDeltaTableCommands` and Spark's `CheckAnalysis`; measured with
Delta Spark 4.4.0.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.clients import requirements
from deltaproto.planning.ddl.checks import (
    ColumnChange,
    find_dependent_refusal,
    predict_schema_change,
    unresolved_column,
)
from deltaproto.planning.ddl.types import ColumnDefinition
from deltaproto.planning.ddl.user_statement import refuse
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import iceberg, statistics
from deltaproto.planning.predict.outcome import Outcome, Refusal, refusal_on_databricks
from deltaproto.planning.predict.schema import (
    Array,
    Column,
    Map,
    Path,
    Struct,
    add_column,
    change_column,
    dotted_path,
    find_column,
    find_duplicate,
    is_same_name,
    move_column,
    quoted_path,
    resolve_path,
    walk_columns,
)
from deltaproto.planning.predict.table import MAPPING_MODE, Table
from deltaproto.planning.predict.unity_contract import refuse_rename
from deltaproto.sql.quoting import split_name

_MAP_FIRST = f"set {MAPPING_MODE} = name first"
_CONTAINS_CLUSTERING = (
    "{} contains a clustering column: Delta Spark accepts the statement, but OPTIMIZE and CLUSTER "
    "BY fail afterwards; first CLUSTER BY other columns"
)


class AddColumns(NamedTuple):
    """ADD COLUMN and ADD COLUMNS."""

    columns: tuple[ColumnDefinition, ...]

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        refusal = self._refused(table)
        if refusal is not None:
            named = "DEFAULT" in refusal.error and engine.name is EngineName.DATABRICKS
            return Outcome(table, refusal=refusal_on_databricks(refusal) if named else refusal)
        new = [definition.column for definition in self.columns]
        twice = (
            find_duplicate(Struct(tuple(new)))
            if all(len(d.path) == 1 for d in self.columns)
            else None
        )
        twice = twice or next(
            filter(None, (find_duplicate(Struct((column,))) for column in new)), None
        )
        error = "DELTA_DUPLICATE_COLUMNS_FOUND.ADDING_COLUMNS"
        if twice is not None:
            return refuse(table, error, f"{dotted_path(twice)} is repeated", "choose another name")
        if table.schema is None:
            return predict_schema_change(
                table, ColumnChange("ADD COLUMNS", Struct(tuple(new)), known=False), engine
            )
        schema = table.schema
        for definition in self.columns:
            schema = add_column(schema, definition.path[:-1], definition.column)
            if definition.position:
                schema = move_column(schema, definition.path, definition.after)
        if (twice := find_duplicate(schema)) is not None:
            return refuse(table, error, f"{dotted_path(twice)} is repeated", "rename one of them")
        return predict_schema_change(table, ColumnChange("ADD COLUMNS", schema), engine)

    def _refused(self, table: Table) -> Refusal | None:
        seen: list[Path] = []
        for definition in self.columns:
            if table.schema is not None:
                refusal = _validate_position(table.schema, definition)
                if refusal is not None:
                    return refusal
            folded = tuple(name.casefold() for name in definition.path)
            if folded in seen:
                return Refusal(
                    "COLUMN_ALREADY_EXISTS",
                    f"{dotted_path(definition.path)} is added twice",
                    "add it once",
                )
            seen.append(folded)
        for definition in self.columns:
            if definition.column.default is not None:
                return Refusal(
                    "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
                    "a new column of an existing table cannot have a default immediately",
                    "add it without the default, then ALTER COLUMN … SET DEFAULT",
                )
            if not _nullable(definition.column):
                return Refusal(
                    "DELTA_OPERATION_NOT_ALLOWED",
                    "a new column of an existing table cannot be NOT NULL",
                    "add it without NOT NULL",
                )
        return None


def _validate_position(schema: Struct, definition: ColumnDefinition) -> Refusal | None:
    parent, path = definition.path[:-1], definition.path
    if parent:
        found = find_column(schema, parent)
        if found is None:
            return unresolved_column(parent, schema)
        if not isinstance(found.type, Struct):
            return Refusal(
                "INVALID_FIELD_NAME",
                f"{dotted_path(parent)} is not a struct",
                "use the path of a struct",
            )
    if find_column(schema, path) is not None:
        return Refusal(
            "FIELD_ALREADY_EXISTS",
            f"the column {dotted_path(path)} already exists",
            "remove the statement",
        )
    if definition.after is not None and find_column(schema, (*parent, definition.after)) is None:
        return Refusal(
            "FIELD_NOT_FOUND",
            f"the column {definition.after} after AFTER does not exist",
            "use an existing column",
        )
    return None


def _nullable(column: Column) -> bool:
    fields = (field for path, field in walk_columns(Struct((column,))) if path[-1] != "key")
    return all(field.nullable for field in fields)


class DropColumns(NamedTuple):
    """DROP COLUMN and DROP COLUMNS."""

    paths: tuple[Path, ...]
    if_exists: bool = False

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        schema, paths = table.schema, self.paths
        if schema is not None:
            missing = [path for path in paths if find_column(schema, path) is None]
            if missing and not self.if_exists:
                return Outcome(table, refusal=unresolved_column(missing[0], schema))
            paths = tuple(resolve_path(schema, path) for path in paths if path not in missing)
            if not paths:
                return Outcome(table)
        if not table.mapped:
            return refuse(
                table,
                "DELTA_UNSUPPORTED_DROP_COLUMN",
                "dropping columns requires column mapping",
                _MAP_FIRST,
            )
        for path in paths if schema is not None else ():
            assert schema is not None
            if _is_part(schema, path):
                message = f"{dotted_path(path)} is a part of a collection"
                error = "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE"
                return refuse(table, error, message, "drop the column")
            parent = find_column(schema, path[:-1])
            container = schema if parent is None else parent.type
            if isinstance(container, Struct) and len(container.columns) == 1:
                return refuse(
                    table,
                    "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
                    f"{dotted_path(path)} is the only remaining column of its struct",
                    "drop the struct, or add another column first",
                )
            schema = change_column(schema, path, lambda _: None)
        refusal = _validate_not_needed(table, paths)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        change = ColumnChange("DROP COLUMNS", schema or Struct(()), known=schema is not None)
        broken = [p for p in paths if any(_is_within(c, p) for c in table.clustering or ())]
        warnings = tuple(_CONTAINS_CLUSTERING.format(dotted_path(path)) for path in broken)
        outcome = predict_schema_change(statistics.remove_columns(table, paths), change, engine)
        if outcome.refusal is not None:
            return Outcome(table, refusal=outcome.refusal)
        after = _without_columns(outcome.table)
        if broken:
            # The columns keep their physical names there.
            after = after._replace(clustering=None)
        return outcome._replace(table=after, warnings=warnings)


def _without_columns(after: Table) -> Table:
    """Return a table whose existing files still contain columns that were dropped."""
    added = after.added_hazards | {requirements.DROPPED_COLUMNS}
    return after._replace(stray_columns=None, added_hazards=added)


def _is_part(schema: Struct, path: Path) -> bool:
    """Return True for the element, key or value of a collection."""
    parent = find_column(schema, path[:-1])
    return parent is not None and isinstance(parent.type, Array | Map)


def _validate_not_needed(table: Table, paths: tuple[Path, ...]) -> Refusal | None:
    """Refuse dropping partition, clustering and referenced columns.

    Delta compares the texts of names, which Spark quotes by two different rules: it does not find
    all of these columns among those that are dropped.
    """
    clustered = [quoted_path(tuple(split_name(column))) for column in table.clustering or ()]
    for path in paths:
        name = _attribute_name(path)
        if len(path) == 1 and path[0] in table.partition_columns:
            error = "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"
            if name not in table.partition_columns:
                # The new schema then lacks it.
                error = "INVALID_ATTRIBUTE_NAME_SYNTAX" if "`" in path[0] else "FIELD_NOT_FOUND"
            return Refusal(error, f"the table is partitioned by {path[0]}", "keep it")
        if name in clustered:
            error = "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
            message = f"the table is clustered by {dotted_path(path)}"
            return Refusal(error, message, "CLUSTER BY other columns first")
    return next(filter(None, (find_dependent_refusal(table, path) for path in paths)), None)


def _attribute_name(path: Path) -> str:
    """Format a path like Spark's `UnresolvedAttribute.name`."""
    return ".".join(f"`{part}`" if "." in part else part for part in path)


def _is_within(column: str, path: Path) -> bool:
    """Return True for the column of a path, or a field below it."""
    parts = split_name(column)
    return len(parts) >= len(path) and all(map(is_same_name, parts, path))


class RenameColumn(NamedTuple):
    """RENAME COLUMN."""

    path: Path
    name: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        schema = table.schema
        if schema is not None:
            if find_column(schema, self.path) is None:
                return Outcome(table, refusal=unresolved_column(self.path, schema))
            if _is_part(schema, self.path):
                message = f"{dotted_path(self.path)} is a part of a collection"
                return refuse(table, "INVALID_FIELD_NAME", message, "rename the column")
            if find_column(schema, (*self.path[:-1], self.name)) is not None:
                return refuse(
                    table,
                    "FIELD_ALREADY_EXISTS",
                    f"the column {self.name} already exists",
                    "choose another name",
                )
        refusal = find_dependent_refusal(table, self.path) or refuse_rename(table, engine)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        if not table.mapped:
            return refuse(
                table,
                "DELTA_UNSUPPORTED_RENAME_COLUMN",
                "renaming columns requires column mapping",
                _MAP_FIRST,
            )
        if table.unmapped:
            # Delta Spark finds the new column by its physical name.
            refusal = Refusal(
                "",
                "a column has no physical name: Delta Spark may commit and yet keep its name",
                "first change any property: SET TBLPROPERTIES assigns it",
                sure=False,
            )
            return Outcome(table, refusal=refusal)
        if schema is not None:
            schema = change_column(
                schema, self.path, lambda column: column._replace(name=self.name)
            )
        change = ColumnChange("RENAME COLUMN", schema or Struct(()), known=schema is not None)
        clustering = table.clustering and tuple(
            quoted_path(self._renamed(tuple(split_name(column)))) for column in table.clustering
        )
        partitions = tuple(self._renamed((column,))[0] for column in table.partition_columns)
        old = self.path if table.schema is None else resolve_path(table.schema, self.path)
        new = (*old[:-1], self.name)
        outcome = predict_schema_change(statistics.rename_column(table, old, new), change, engine)
        if outcome.refusal is not None:
            return Outcome(table, refusal=outcome.refusal)
        after = outcome.table._replace(clustering=clustering, partition_columns=partitions)
        refusal = iceberg.validate_partition_names(table, after)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        if partitions != table.partition_columns:
            added = after.added_hazards | {requirements.MAPPED_PARTITIONS}
            after = after._replace(added_hazards=added)
        if table.bounds is not None and len(old) == 1:
            names = {old[0]: self.name}
            unsure = frozenset(names.get(name, name) for name in table.unsure_bounds)
            after = after._replace(bounds=table.bounds.renamed(names), unsure_bounds=unsure)
        return outcome._replace(table=after)

    def _renamed(self, column: Path) -> Path:
        depth = len(self.path)
        if len(column) < depth or not all(map(is_same_name, column, self.path)):
            return column
        return (*column[: depth - 1], self.name, *column[depth:])


class ReplaceColumns(NamedTuple):
    """REPLACE COLUMNS, which never renames and drops columns only with column mapping."""

    columns: tuple[Column, ...]

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if any(column.default is not None for column in self.columns):
            error = "UNSUPPORTED_DEFAULT_VALUE.WITHOUT_SUGGESTION"
            message = "REPLACE COLUMNS does not accept default values"
            return refuse(table, error, message, "set them with ALTER COLUMN")
        new = Struct(self.columns)
        twice = find_duplicate(new)
        if twice is not None:
            error = "COLUMN_ALREADY_EXISTS"
            return refuse(table, error, f"{dotted_path(twice)} is repeated", "choose another name")
        old = table.schema
        if old is None:
            return predict_schema_change(
                table, ColumnChange("REPLACE COLUMNS", new, known=False), engine
            )
        if any(column.identity for column in old.columns):
            return refuse(
                table,
                "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
                "the table has identity columns",
                "add or drop columns individually",
            )
        kept = [find_column(old, (column.name,)) for column in new.columns]
        removed = [c.name for c in old.columns if find_column(new, (c.name,)) is None]
        retyped = [c.name for c, o in zip(new.columns, kept, strict=True) if o and o.type != c.type]
        why = ""
        if removed and None in kept:
            why = "it drops and adds columns in one statement, which could be intended as a rename"
        elif removed and not table.mapped:
            why = f"without column mapping {', '.join(removed)} cannot be dropped"
        elif retyped:
            why = f"the type of {', '.join(retyped)} would change"
        if why:
            error = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
            return refuse(table, error, why, "change columns individually")
        partitions = [name for name in table.partition_columns if find_column(new, (name,)) is None]
        if partitions:
            why = f"the table is partitioned by {', '.join(partitions)}, which would be dropped"
            return refuse(table, "FIELD_NOT_FOUND", why, "keep the partition columns")
        merged = tuple(
            column if o is None else o._replace(nullable=True, default=None)
            for column, o in zip(new.columns, kept, strict=True)
        )
        # Spark turns the statement into deletions and additions.
        operation = "REPLACE COLUMNS" if old.columns else "ADD COLUMNS"
        change = ColumnChange(operation, Struct(merged))
        outcome = predict_schema_change(table, change, engine)
        if not removed or outcome.refusal is not None:
            return outcome
        return outcome._replace(table=_without_columns(outcome.table))
