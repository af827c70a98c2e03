"""Refusals of a statement's expressions by Spark: constraints, defaults, conditions, values.

If an expression cannot be resolved here, the outcome is marked as uncertain.

Source: Spark's `ResolveDefaultColumns` and `Cast`, Delta Spark 4.4's `Constraints` and
`DeleteCommand`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from deltaproto.planning.ddl.expressions import ResolvedExpression, resolve_expression
from deltaproto.planning.ddl.operators import (
    BOOLEAN,
    VOID,
    is_castable,
    is_date_or_timestamp,
    is_numeric,
    is_string,
)
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import Array, Atomic, Column, Map, Struct, Type
from deltaproto.planning.predict.table import Table
from deltaproto.planning.predict.type_widening import decimal_parts
from deltaproto.sql.functions import AGGREGATES, GENERATORS, NO_ROUTINE, NON_DETERMINISTIC

UNRESOLVED = (
    "some expressions of this statement could not be resolved against the table's columns: "
    "Spark may refuse it"
)
_ANSI = "4.0"
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_ANYWHERE = (
    "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION",
    NO_ROUTINE,
    "FIELD_NOT_FOUND",
)
_LONGEST = 19
_CORRECT = "correct the expression"


class Resolution(NamedTuple):
    """The result of checking expressions: refused or not, and whether that is certain."""

    refusal: Refusal | None = None
    unresolved: bool = False
    """True if parts are unknown"""


class Fit(Enum):
    """Result of storing a value in a column."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def resolve_check_constraint(table: Table, expression: str, engine: Engine) -> Resolution:
    """Check the expression of a CHECK constraint."""
    found = resolve_expression(expression, table.schema)
    misplaced = _refuse_misplaced(found, "INVALID_WHERE_CONDITION")
    if found.refusal is not None or misplaced is not None:
        return _engine_resolution(found.refusal or misplaced, engine)
    if found.known and found.type != BOOLEAN:
        error = "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"
        return Resolution(Refusal(error, "the expression is not a boolean", _CORRECT))
    return Resolution(unresolved=not found.known)


def resolve_default(expression: str, kind: Type, engine: Engine) -> Resolution:
    """Check the default of a column of this type."""
    found = resolve_expression(expression, Struct(()))
    refusal = found.refusal
    if found.columns:
        refusal = _invalid_default("NOT_CONSTANT", f"{expression} refers to a column")
    elif found.queries:
        refusal = _invalid_default("SUBQUERY_EXPRESSION", f"{expression} is a query")
    elif refusal is None and found.functions & (AGGREGATES | NON_DETERMINISTIC):
        of_type = storage_fit(found, kind, strict=True) is Fit.YES
        error = "NON_DETERMINISTIC" if of_type else "DATA_TYPE"
        refusal = _invalid_default(error, f"{expression} is not a constant")
    elif refusal is None and storage_fit(found, kind, strict=True) is Fit.NO:
        refusal = _invalid_default("DATA_TYPE", f"{expression} does not have the column's type")
        if _overflows(found, kind):
            refusal = refusal._replace(error="CAST_OVERFLOW")
    if refusal is not None:
        return _engine_resolution(refusal, engine)
    unknown = storage_fit(found, kind, strict=True) is Fit.UNKNOWN
    return Resolution(unresolved=unknown or "[" in expression)


def resolve_generation(schema: Struct, column: Column, engine: Engine) -> Resolution:
    """Check the expression of a generated column."""
    expression = column.generated or ""
    found = resolve_expression(expression, schema)
    misplaced = _refuse_misplaced(found, "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN")
    if found.refusal is not None or misplaced is not None:
        return _engine_resolution(found.refusal or misplaced, engine)
    if found.known and is_string(found.type) and not is_string(column.type):
        error, message = (
            "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
            "its type differs from the column's",
        )
        return _engine_resolution(Refusal(error, f"{expression}: {message}", _CORRECT), engine)
    return Resolution(unresolved=storage_fit(found, column.type, strict=False) is not Fit.YES)


def resolve_condition(
    table: Table, expression: str, names: Iterable[str], engine: Engine
) -> Resolution:
    """Check the condition of an UPDATE."""
    found = resolve_expression(expression, table.schema, names)
    misplaced = _refuse_misplaced(found, "UNSUPPORTED_EXPR_FOR_OPERATOR")
    if found.refusal is not None or misplaced is not None:
        return _row_resolution(found.refusal or misplaced, engine)
    if found.known and found.type != BOOLEAN:
        error = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
        return _row_resolution(Refusal(error, f"{expression} is not a boolean", _CORRECT), engine)
    return Resolution(unresolved=not found.known)


def resolve_delete_condition(
    table: Table, expression: str, names: Iterable[str], engine: Engine
) -> Resolution:
    """Check the condition of a DELETE, which does not allow subqueries."""
    found = resolve_expression(expression, table.schema, names)
    if found.refusal is None and found.queries:
        error = "DELTA_UNSUPPORTED_SUBQUERY"
        return _row_resolution(
            Refusal(error, "DELETE does not support subqueries", "use MERGE"), engine
        )
    if found.refusal is None and found.functions & NON_DETERMINISTIC:
        error, message = "INVALID_NON_DETERMINISTIC_EXPRESSIONS", f"{expression} is random"
        return _row_resolution(Refusal(error, message, _CORRECT), engine)
    return resolve_condition(table, expression, names, engine)


def resolve_replace_condition(table: Table, expression: str, engine: Engine) -> Resolution:
    """Check the condition of INSERT … REPLACE WHERE, whose columns have no qualifiers."""
    found = resolve_expression(expression, table.schema, ())
    refusal = found.refusal
    if refusal is not None:
        known = refusal.error.startswith("UNRESOLVED_")
        return _row_resolution(refusal, engine) if known else Resolution(unresolved=True)
    if found.queries:
        error = "UNSUPPORTED_FEATURE.OVERWRITE_BY_SUBQUERY"
        refusal = Refusal(error, "REPLACE WHERE does not support subqueries", "use MERGE")
    elif found.functions & NON_DETERMINISTIC:
        error, message = "INVALID_NON_DETERMINISTIC_EXPRESSIONS", f"{expression} is random"
        refusal = Refusal(error, message, _CORRECT)
    elif found.known and found.type != BOOLEAN:
        refusal = Refusal("", f"{expression} is not a boolean", _CORRECT)
    return (
        Resolution(unresolved=not found.known)
        if refusal is None
        else _row_resolution(refusal, engine)
    )


def resolve_value(
    table: Table, expression: str, kind: Type, names: Iterable[str], engine: Engine
) -> Resolution:
    """Check a value that a column of this type is set to."""
    if expression.strip().upper() == "DEFAULT":
        return Resolution()
    found = resolve_expression(expression, table.schema, names)
    misplaced = _refuse_misplaced(found, "UNSUPPORTED_EXPR_FOR_OPERATOR")
    if found.refusal is not None or misplaced is not None:
        return _row_resolution(found.refusal or misplaced, engine)
    fit = storage_fit(found, kind, strict=False)
    if fit is Fit.NO:
        return _row_resolution(_unstorable_value(found, expression, kind), engine)
    return Resolution(unresolved=fit is Fit.UNKNOWN)


def storage_fit(found: ResolvedExpression, kind: Type, *, strict: bool) -> Fit:
    """Decide whether a value can be stored in a column of a type.

    Args:
        strict: use Spark's rules for defaults instead of Delta's casts.
    """
    source = found.type
    if not found.known or source is None:
        return Fit.UNKNOWN
    if source in (VOID, kind):
        return _literal_fit(found, kind)
    if kind == VOID:
        return Fit.NO
    if isinstance(kind, Array | Map | Struct) or isinstance(source, Array | Map | Struct):
        return _nested_fit(source, kind)
    if kind.name == "variant" or source == Atomic("variant"):
        certain = strict and kind.name == "variant" and source.name != "boolean"
        return Fit.YES if certain else Fit.UNKNOWN
    if is_string(kind):
        return Fit.YES if strict or not kind.name.startswith(("char", "varchar")) else Fit.UNKNOWN
    if is_string(source):
        return _string_fit(found, kind, strict=strict)
    if is_numeric(kind):
        if source == BOOLEAN and not strict:
            return Fit.YES
        return _number_fit(found, source, kind)
    if is_date_or_timestamp(kind) and is_date_or_timestamp(source):
        return Fit.YES
    if "boolean" in (source.name, kind.name) or (kind.name == "date" and is_numeric(source)):
        return Fit.NO if strict or kind.name == "date" else Fit.UNKNOWN
    return Fit.UNKNOWN


def _refuse_misplaced(found: ResolvedExpression, aggregated: str) -> Refusal | None:
    if found.functions & AGGREGATES:
        return Refusal(aggregated, "aggregates are not allowed here", _CORRECT)
    if found.functions & GENERATORS:
        error = "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT"
        return Refusal(error, "generator functions are not allowed here", _CORRECT)
    return None


def _row_resolution(refusal: Refusal | None, engine: Engine) -> Resolution:
    """Like `_engine_resolution`, but rows may also use user-defined functions."""
    if refusal is not None and refusal.error == NO_ROUTINE:
        return Resolution(unresolved=True)
    return _engine_resolution(refusal, engine)


def _engine_resolution(refusal: Refusal | None, engine: Engine) -> Resolution:
    """Limit a refusal to Spark 4 in ANSI mode; elsewhere other casts may happen."""
    spark_4 = engine.name is EngineName.DELTA_SPARK and engine.at_least(_ANSI)
    if refusal is None or spark_4 or refusal.error in _ANYWHERE:
        return Resolution(refusal)
    return Resolution(unresolved=True)


def _invalid_default(error: str, message: str) -> Refusal:
    return Refusal(f"INVALID_DEFAULT_VALUE.{error}", message, "write a constant of its type")


def _unstorable_value(found: ResolvedExpression, expression: str, kind: Type) -> Refusal:
    if is_string(found.type) and not isinstance(kind, Array | Map | Struct):
        error = "CAST_INVALID_INPUT"
    elif _overflows(found, kind):
        error = "CAST_OVERFLOW"
    elif found.literal is not None and is_numeric(found.type) and is_numeric(kind):
        error = "CAST_OVERFLOW_IN_TABLE_INSERT"
    elif is_numeric(found.type) and is_date_or_timestamp(kind):
        error = "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION"
    else:
        error = "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"
    return Refusal(error, f"{expression} does not fit its column", _CORRECT)


def _overflows(found: ResolvedExpression, kind: Type) -> bool:
    """Return True if a number with a BIGINT's digits exceeds its range."""
    digits = (found.literal or "").lstrip("-")
    return found.type == Atomic("decimal") and kind == Atomic("long") and len(digits) == _LONGEST


def _string_fit(found: ResolvedExpression, kind: Atomic, *, strict: bool) -> Fit:
    if kind.name == "binary":
        return Fit.YES
    if kind.name == "boolean":
        return Fit.NO if strict else Fit.UNKNOWN
    if found.literal is None:
        return Fit.NO if strict and is_numeric(kind) else Fit.UNKNOWN
    return _literal_fit(found, kind) if is_castable(found.literal, kind) else Fit.NO


def _number_fit(found: ResolvedExpression, source: Atomic, kind: Atomic) -> Fit:
    if is_numeric(source):
        return _literal_fit(found, kind)
    if source.name in ("boolean", "date", "binary"):
        return Fit.NO
    return Fit.UNKNOWN


def _literal_fit(found: ResolvedExpression, kind: Type) -> Fit:
    """Decide whether a literal's number fits; computed values are unknown."""
    if not isinstance(kind, Atomic) or not is_numeric(kind) or found.type == VOID:
        return Fit.YES
    if found.literal is None:
        return Fit.YES if found.type == kind else Fit.UNKNOWN
    try:
        number = float(found.literal)
    except ValueError:
        return Fit.UNKNOWN
    if kind.name in _BITS:
        limit = 2 ** (_BITS[kind.name] - 1)
        return Fit.YES if -limit <= number < limit else Fit.NO
    parts = decimal_parts(kind.name)
    if parts is not None:
        precision, scale = parts
        return Fit.YES if abs(number) < 10 ** (precision - scale) else Fit.NO
    return Fit.YES


def _nested_fit(source: Type, kind: Type) -> Fit:
    match (source, kind):
        case (Array(one), Array(other)):
            return Fit.YES if one in (VOID, other) else _part_fit(one, other)
        case (Map(key, item), Map(keys, items)):
            fits = key in (VOID, keys) and item in (VOID, items)
            return Fit.YES if fits else Fit.UNKNOWN
        case (Struct(), Struct()):
            return Fit.UNKNOWN
    return Fit.NO


def _part_fit(one: Type, other: Type) -> Fit:
    plain = isinstance(one, Atomic) and isinstance(other, Atomic)
    return Fit.NO if plain and (is_string(one) or one == Atomic("long")) else Fit.UNKNOWN
