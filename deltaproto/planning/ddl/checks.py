"""What Delta checks whenever the columns of a table change.

Source: Delta Spark 4.4's `alterDeltaTableCommands`, `SchemaUtils`, `IcebergCompat`; measured with
Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from deltaproto.planning.engine import Engine
from deltaproto.planning.predict import consistency
from deltaproto.planning.predict.auto_enable import upgraded
from deltaproto.planning.predict.outcome import Outcome, PredictedCommit, Refusal
from deltaproto.planning.predict.schema import FORBIDDEN, Atomic, Path, Struct, dotted, same, walk
from deltaproto.planning.predict.table import CONSTRAINT, MODE, Table
from deltaproto.sql.tokens import scan


class ColumnChange(NamedTuple):
    """New columns, and the operation that brings them."""

    operation: str
    schema: Struct
    """the whole schema afterwards, or only new columns where the rest is not known"""
    known: bool = True
    """the schema is the whole one"""


def altered(table: Table, change: ColumnChange, engine: Engine) -> Outcome:
    """What a change of the schema does, once the statement itself was found good."""
    refusal = forbidden(table, change.schema)
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    protocol = upgraded(table.protocol, table.configuration, change.schema, engine)
    if isinstance(protocol, Refusal):
        return Outcome(table, refusal=protocol)
    after = table.with_schema(change.schema)
    unfit = consistency.unfit(table, after, whole=change.known)
    if unfit is not None:
        return Outcome(table, refusal=unfit)
    after = after if change.known else table.with_schema(None)
    commit = PredictedCommit(change.operation, protocol, sure=change.known)
    return Outcome(after._replace(protocol=protocol), (commit,))


def forbidden(table: Table, schema: Struct) -> Refusal | None:
    """What the names or types of columns break on this table."""
    for path, column in walk(schema):
        name = column.type.name if isinstance(column.type, Atomic) else ""
        if not table.mapped and FORBIDDEN & set(path[-1]):
            return Refusal(
                "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
                f"without column mapping no column can be called {dotted(path)}",
                f"set {MODE} = name first, or name it otherwise",
            )
        if name.startswith(("geometry", "geography")) and dotted(path) not in table.geospatial:
            return Refusal(
                "DELTA_GEOSPATIAL_NOT_SUPPORTED",
                f"{dotted(path)} is of a geospatial type, which Delta Spark has switched off",
                "spark.databricks.delta.geo.preview.enabled switches it on",
            )
    return consistency.unstorable(table.with_schema(schema))


def unresolved(path: Path) -> Refusal:
    """There is no such column."""
    return Refusal(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        f"the table has no column {dotted(path)}",
        "DESCRIBE the table for its columns",
    )


def dependents(table: Table, path: Path) -> Refusal | None:
    """What is computed from a column and keeps it from being changed or removed."""
    for key, expression in table.configuration.items():
        if key.lower().startswith(CONSTRAINT) and _depends(expression, path):
            return Refusal(
                "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
                f"the constraint {key[len(CONSTRAINT) :]} refers to {dotted(path)}",
                "drop the constraint first",
            )
    if "generatedColumns" in table.protocol.supported:
        for other, column in walk(table.schema or Struct(())):
            if column.generated is not None and _depends(column.generated, path):
                return Refusal(
                    "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
                    f"{dotted(other)} is generated from {dotted(path)}",
                    "drop the generated column first",
                )
    return None


def _depends(expression: str, path: Path) -> bool:
    """Whether one of both is, or lies below, the other: as Delta compares them."""
    return any(
        all(same(one, other) for one, other in zip(used, path, strict=False))
        for used in references(expression)
    )


def references(expression: str) -> Iterator[Path]:
    """The columns an expression may refer to: all names but of functions and types."""
    found = scan(expression)
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
