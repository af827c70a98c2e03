"""ALTER TABLE … ALTER COLUMN and CHANGE COLUMN.

Source: Delta Spark 4.4's `AlterTableChangeColumnDeltaCommand` and Spark's `CheckAnalysis`;
measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from deltaproto.planning.ddl.checks import (
    UNKNOWN_COLLATION_FEATURE,
    ColumnChange,
    find_dependent_refusal,
    predict_schema_change,
    unresolved_column,
)
from deltaproto.planning.ddl.resolution import UNRESOLVED, Resolution, resolve_default
from deltaproto.planning.ddl.user_statement import refuse
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.collations import COLLATION_FEATURES
from deltaproto.planning.predict.outcome import Outcome, PredictedCommit, Refusal
from deltaproto.planning.predict.schema import (
    Array,
    Atomic,
    Column,
    Map,
    Path,
    Struct,
    Type,
    change_column,
    dotted_path,
    enclosing_field,
    find_column,
    move_column,
)
from deltaproto.planning.predict.table import Table
from deltaproto.planning.predict.type_widening import (
    collection_word,
    is_accepted_change,
    is_collated,
    is_default_collation,
    is_string_type,
    keeps_collation,
    widens,
    widens_in_spark_3,
)

CHANGE_COLUMN_OPERATION = "CHANGE COLUMN"
_DEFAULTS = "allowColumnDefaults"
_ALL_WIDENINGS = "4.0"
_SCAN = "SET NOT NULL reads every row, and fails if the column is NULL in one of them"


class ChangeColumn(NamedTuple):
    """One change of one column."""

    path: Path
    type: Type | None = None
    nullable: bool | None = None
    default: str | None = None
    """the new default; empty: drop it"""
    sync_identity: bool = False
    comment: bool = False
    """True if there is a new comment"""
    moved: bool = False
    """True if the column moves"""
    after: str | None = None
    """the column before it; None: it becomes the first"""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if table.schema is None:
            return self._unknown(table)
        column = find_column(table.schema, self.path)
        if column is None:
            return Outcome(table, refusal=unresolved_column(self.path, table.schema))
        if keeps_collation(column.type, self.type):
            return self._replace(type=None).outcome(table, engine)
        if self.type in (None, column.type) and not self._more:
            return Outcome(table)
        refusal = self._refused(table, column, engine)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        schema = change_column(table.schema, self.path, self._apply)
        if self.type not in (None, column.type) and widens(column.type, self.type):
            # For a part of a collection, the field that contains the collection has the record.
            holder = enclosing_field(table.schema, self.path)
            schema = change_column(schema, holder, self._recorded(column.type))
        if self.moved:
            schema = move_column(schema, self.path, self.after)
        if column.generated is not None and self.type not in (None, column.type):
            return refuse(
                table,
                "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
                f"{dotted_path(self.path)} has the type of the expression that it "
                "is generated from",
                "do not change its type",
            )
        outcome = predict_schema_change(
            table, ColumnChange(CHANGE_COLUMN_OPERATION, schema), engine
        )
        if self.nullable is False and column.nullable:
            outcome = outcome._replace(warnings=(*outcome.warnings, _SCAN))
        if not self.default or outcome.refusal is not None:
            return outcome
        if not resolve_default(self.default, column.type, engine).unresolved:
            return outcome
        commits = tuple(commit._replace(sure=False) for commit in outcome.commits)
        return outcome._replace(commits=commits, warnings=(*outcome.warnings, UNRESOLVED))

    @property
    def _more(self) -> bool:
        other = self.nullable is not None or self.default is not None
        return other or self.sync_identity or self.comment or self.moved

    def _unknown(self, table: Table) -> Outcome:
        """Predict without the schema: only a missing feature can be detected."""
        refusal = self._no_default(table)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        after = table.with_schema(None)
        return Outcome(
            after, (PredictedCommit(CHANGE_COLUMN_OPERATION, table.protocol, sure=False),)
        )

    def _recorded(self, before: Type) -> Callable[[Column], Column]:
        assert isinstance(before, Atomic)
        assert isinstance(self.type, Atomic)
        change = (before, self.type)
        return lambda field: field._replace(type_changes=(*(field.type_changes or ()), change))

    def _apply(self, column: Column) -> Column:
        if self.type is not None and self.type != column.type:
            column = column._replace(type=self.type)
        if self.nullable is not None:
            column = column._replace(nullable=self.nullable)
        if self.default is not None:
            column = column._replace(default=self.default or None)
        return column

    def _refused(self, table: Table, column: Column, engine: Engine) -> Refusal | None:
        if self.sync_identity and not column.identity:
            return Refusal(
                "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
                f"{dotted_path(self.path)} is not an identity column",
                "remove the statement",
            )
        spark = engine.name is EngineName.DELTA_SPARK
        if self.nullable is False and column.nullable and spark:
            return Refusal(
                "",
                f"{dotted_path(self.path)} is nullable, and existing columns "
                "cannot become NOT NULL",
                "use ADD CONSTRAINT … CHECK (… IS NOT NULL)",
            )
        refusal = self._refuse_part(table, column)
        if refusal is not None:
            return refusal
        sibling = (*self.path[:-1], self.after or self.path[-1])
        if find_column(table.schema or Struct(()), sibling) is None:
            return unresolved_column(sibling, table.schema)
        by_type = self._mistyped(column.type)
        if by_type is not None:
            return by_type
        identity = column.identity and (
            self.type not in (None, column.type)
            or self.nullable is not None
            or self.default is not None
        )
        if identity:
            return Refusal(
                "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
                f"{dotted_path(self.path)} is an identity column",
                "only its comment, name and position can change",
            )
        judged = (
            resolve_default(self.default, column.type, engine) if self.default else Resolution()
        )
        return judged.refusal or self._no_default(table) or self._narrow(table, column, engine)

    def _refuse_part(self, table: Table, column: Column) -> Refusal | None:
        """Refuse changes of a part of a collection; only its type can change."""
        parent = find_column(table.schema or Struct(()), self.path[:-1])
        if parent is None or not isinstance(parent.type, Array | Map):
            return None
        what = f"{dotted_path(self.path)} is a part of a collection, which cannot"
        if self.comment:
            error = "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY"
            return Refusal(error, f"{what} have a comment", "comment on the column")
        if self.nullable and not column.nullable:
            error = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
            return Refusal(error, f"{what} become nullable", "add a new column and copy the values")
        return None

    def _mistyped(self, before: Type) -> Refusal | None:
        """Refuse type changes that Spark rejects before Delta."""
        if self.type is None or self.type == before:
            return None
        compound = collection_word(self.type)
        if compound == "INTERVAL":
            error = "CANNOT_UPDATE_FIELD.INTERVAL_TYPE"
            return Refusal(error, "columns cannot become intervals", "choose another type")
        if compound:
            return Refusal(
                f"CANNOT_UPDATE_FIELD.{compound}_TYPE",
                f"{dotted_path(self.path)} cannot be changed to another "
                f"{compound.lower()} as a whole",
                "change its fields individually",
            )
        if not is_accepted_change(before, self.type):
            return Refusal(
                "NOT_SUPPORTED_CHANGE_COLUMN",
                f"not every value of {dotted_path(self.path)} fits the new type",
                "add a new column and copy the values",
            )
        return None

    def _no_default(self, table: Table) -> Refusal | None:
        if not self.default or _DEFAULTS in table.protocol.supported:
            return None
        return Refusal(
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            f"{_DEFAULTS} is not in the protocol",
            f"first: SET TBLPROPERTIES ('delta.feature.{_DEFAULTS}' = 'supported')",
        )

    def _narrow(self, table: Table, column: Column, engine: Engine) -> Refusal | None:
        """Refuse type changes that Delta rejects."""
        new = self.type
        if new is None or new == column.type:
            return None
        assert isinstance(new, Atomic)
        if (
            isinstance(column.type, Atomic)
            and is_string_type(column.type.name)
            and is_string_type(new.name)
            and (not is_collated(new) or is_default_collation(column.type, new))
        ):
            return None
        if is_collated(new) and engine.name is EngineName.DATABRICKS:
            collated = not table.protocol.supported.isdisjoint(COLLATION_FEATURES)
            return None if collated else UNKNOWN_COLLATION_FEATURE
        on = table.is_on("delta.enableTypeWidening")
        old = engine.name is EngineName.DELTA_SPARK and not engine.at_least(_ALL_WIDENINGS)
        if on and old and widens(column.type, new) and not widens_in_spark_3(column.type, new):
            return Refusal(
                "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
                f"{engine} only widens byte to short, and short to int",
                f"delta-spark@{_ALL_WIDENINGS} or later can",
            )
        if not (on and widens(column.type, new)) and column.type != Atomic("void"):
            remedy = "" if on else "set delta.enableTypeWidening = true first, if it is a widening"
            return Refusal(
                "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
                f"{dotted_path(self.path)} cannot become {new.name}"
                + ("" if on else " without type widening"),
                remedy or "add a new column and copy the values",
            )
        return find_dependent_refusal(table, self.path)
