"""Delta's checks for every change of a table's columns.

Source: Delta Spark 4.4's `alterDeltaTableCommands`, `SchemaUtils`, `IcebergCompat`; measured with
Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import consistency
from deltaproto.planning.predict.auto_enable import upgrade_protocol
from deltaproto.planning.predict.collations import COLLATION_FEATURES
from deltaproto.planning.predict.contents import hazards_of_columns
from deltaproto.planning.predict.nested_not_null import validate_nested_not_null
from deltaproto.planning.predict.outcome import Outcome, PredictedCommit, Refusal
from deltaproto.planning.predict.schema import (
    FORBIDDEN,
    Atomic,
    Path,
    Struct,
    dotted_path,
    find_column,
    is_same_name,
    walk_columns,
)
from deltaproto.planning.predict.table import MAPPING_MODE, Table, is_constraint
from deltaproto.protocol.properties import CONSTRAINT_PREFIX
from deltaproto.sql.tokens import scan_tokens


class ColumnChange(NamedTuple):
    """New columns, and the operation that adds them."""

    operation: str
    schema: Struct
    """the whole schema afterwards, or only new columns if the rest is unknown"""
    known: bool = True
    """True if `schema` is the whole schema"""


def predict_schema_change(table: Table, change: ColumnChange, engine: Engine) -> Outcome:
    """Predict a schema change of a valid statement."""
    # CHANGE COLUMN does not check names itself; the check of every metadata change does.
    kept = table.partition_columns if change.operation == "CHANGE COLUMN" else ()
    if table.ambiguous and _has_fewer(change, table):
        table = table._replace(ambiguous=None)
    refusal = _find_undocumented(table, table.with_schema(change.schema), engine)
    refusal = refusal or validate_columns(
        table, table.with_schema(change.schema), rewritten=True, partitions=kept
    )
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    protocol = upgrade_protocol(table.protocol, table.configuration, change.schema, engine)
    if isinstance(protocol, Refusal):
        return Outcome(table, refusal=protocol)
    after = table.with_schema(change.schema)
    unfit = consistency.validate_new_columns(table, after, whole=change.known)
    if unfit is not None:
        return Outcome(table, refusal=unfit)
    if not change.known:
        added = table.added_hazards | hazards_of_columns(table, change.schema)
        after = table.with_schema(None)._replace(added_hazards=added)
    commit = PredictedCommit(change.operation, protocol, sure=change.known)
    return Outcome(after._replace(protocol=protocol), (commit,))


UNKNOWN_COLLATION_FEATURE = Refusal(
    "",
    "Databricks adds collations to the protocol with the first collation, or collations-preview in "
    "older runtimes; which one is not documented, so it is not planned",
    "run the statement separately, and plan the others afterwards",
    sure=False,
)
_UNKNOWN_GEOSPATIAL_FEATURE = Refusal(
    "",
    "geospatial columns require Databricks Runtime 17.1 or later; which feature they add to the "
    "protocol is not documented, so they are not planned",
    "run the statement separately, and plan the others afterwards",
    sure=False,
)


def _find_undocumented(before: Table, after: Table, engine: Engine) -> Refusal | None:
    """Return why a change of columns on Databricks is not planned, or None.

    Its documentation does not name the features that some types add. Delta Spark refuses them.
    """
    if engine.name is not EngineName.DATABRICKS:
        return None
    if {*after.geospatial} - {*before.geospatial}:
        return _UNKNOWN_GEOSPATIAL_FEATURE
    new = {*after.collated} - {*before.collated}
    listed = not before.protocol.supported.isdisjoint(COLLATION_FEATURES)
    return UNKNOWN_COLLATION_FEATURE if new and not listed else None


def _has_fewer(change: ColumnChange, table: Table) -> bool:
    """Return True if a change drops columns, which may be those that share an id."""
    before = table.schema or Struct(())
    return len([*walk_columns(change.schema)]) < len([*walk_columns(before)])


def validate_columns(
    before: Table, table: Table, *, rewritten: bool = False, partitions: Collection[str] = ()
) -> Refusal | None:
    """Refuse column names or types that are invalid for this table.

    Args:
        rewritten: the text of the schema changes even if the columns are equal.
        partitions: partition columns whose names are not checked with the others.
    """
    columns = [*walk_columns(table.schema or Struct(()))]
    for path, _ in columns:
        if not table.mapped and path[0] not in partitions and FORBIDDEN & set(path[-1]):
            return Refusal(
                "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
                f"without column mapping, no column can have the name {dotted_path(path)}",
                f"set {MAPPING_MODE} = name first, or choose another name",
            )
    refusal = validate_nested_not_null(before, table, rewritten=rewritten)
    if refusal is not None:
        return refusal
    for path, column in columns:
        name = column.type.name if isinstance(column.type, Atomic) else ""
        new = dotted_path(path) not in before.geospatial
        if new and name.startswith(("geometry", "geography")):
            return Refusal(
                "DELTA_GEOSPATIAL_NOT_SUPPORTED",
                f"{dotted_path(path)} has a geospatial type, which Delta Spark disables",
                "set spark.databricks.delta.geo.preview.enabled to enable it",
                on_databricks=False,
            )
    return consistency.unstorable(table)


def unresolved_column(path: Path, schema: Struct | None) -> Refusal:
    """Return the refusal for a missing column, or for a field of a column that is not a struct."""
    parent = None if schema is None else find_column(schema, path[:-1])
    below = parent is not None and not isinstance(parent.type, Struct)
    return Refusal(
        "INVALID_FIELD_NAME" if below else "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        f"the table has no column {dotted_path(path)}",
        "run DESCRIBE to see the columns",
    )


def find_dependent_refusal(table: Table, path: Path) -> Refusal | None:
    """Refuse changing a column that constraints or generated columns use."""
    for key, expression in table.configuration.items():
        if is_constraint(key) and _overlaps(expression, path):
            return Refusal(
                "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
                f"the constraint {key[len(CONSTRAINT_PREFIX) :]} refers to {dotted_path(path)}",
                "drop the constraint first",
            )
    if "generatedColumns" in table.protocol.supported:
        for other, column in walk_columns(table.schema or Struct(())):
            if column.generated is not None and _overlaps(column.generated, path):
                return Refusal(
                    "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
                    f"{dotted_path(other)} is generated from {dotted_path(path)}",
                    "drop the generated column first",
                )
    return None


def _overlaps(expression: str, path: Path) -> bool:
    """Return True if an expression refers to the path, its parents or children."""
    return any(
        all(is_same_name(one, other) for one, other in zip(used, path, strict=False))
        for used in find_column_references(expression)
    )


def find_column_references(expression: str) -> Iterator[Path]:
    """Yield the columns an expression may refer to: all names except functions and types."""
    found = scan_tokens(expression)
    at = 0
    while at < len(found):
        if not (found[at].quoted or found[at].key.isidentifier()):
            at += 1
            continue
        typed = at > 0 and found[at - 1].key == "AS"
        names = [found[at].value]
        at += 1
        while at + 1 < len(found) and found[at].key == "." and not found[at + 1].string:
            names.append(found[at + 1].value)
            at += 2
        # A function's name, or a literal's type: DATE '2026-01-01'.
        ahead = found[at] if at < len(found) else None
        if typed or (ahead is not None and (ahead.key == "(" or ahead.string)):
            continue
        yield tuple(names)
