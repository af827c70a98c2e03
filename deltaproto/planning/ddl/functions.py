"""The values of calls of Spark SQL functions, as far as known."""

from __future__ import annotations

from collections.abc import Callable

from deltaproto.planning.ddl.cursor import Cursor
from deltaproto.planning.ddl.operators import (
    UNKNOWN,
    VOID,
    RefusedError,
    Value,
    apply_comparison,
    common_type,
    is_condition,
    is_date_or_timestamp,
    is_numeric,
    is_string,
)
from deltaproto.planning.predict.schema import Array, Atomic, Map, Type
from deltaproto.sql.functions import NO_ROUTINE, RETURNS, is_built_in

_UNITS = frozenset(
    """
    YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND
    """.split()  # noqa: SIM905
)


def has_special_grammar(cursor: Cursor) -> bool:
    """Return True if the arguments are not expressions: lambdas, names, units, FROM."""
    tokens, depth = cursor.tokens, 0
    first = cursor.key
    for at in range(cursor.at, len(tokens)):
        token = tokens[at]
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth < 0:
            return first in _UNITS and tokens[cursor.at + 1].key == ","
        arrow = token.key in ("-", "=") and at + 1 < len(tokens) and tokens[at + 1].key == ">"
        side_by_side = arrow and tokens[at + 1].start == token.end
        if side_by_side or (depth == 0 and token.key in ("FROM", "FOR", "IN")):
            return True
    return False


def require_function(name: str) -> None:
    """Check that Spark has a function of this name (lowercase).

    Raises:
        RefusedError: if it does not exist.
    """
    if not is_built_in(name):
        raise RefusedError(NO_ROUTINE, f"Spark has no function {name}")


def call_result(name: str, arguments: list[Value]) -> Value:
    """Return the value of a call."""
    if name == "if" and len(arguments) == 3:
        return common_type(arguments[1:]) if is_condition(arguments[0]) else UNKNOWN
    if name in ("array", "map"):
        return Value(_collection_type(name, arguments))
    if name == "nullif" and len(arguments) == 2:
        return Value(arguments[0].type if apply_comparison(*arguments).type else None)
    if name in ("coalesce", "ifnull", "nvl", "greatest", "least") and arguments:
        return common_type(arguments)
    if not _arguments_fit(name, arguments):
        return UNKNOWN
    if name in ("abs", "negative", "positive"):
        return Value(arguments[0].type)
    kind = RETURNS.get(name)
    return Value(None if kind is None else Atomic(kind))


def _arguments_fit(name: str, arguments: list[Value]) -> bool:
    """Return True if the arguments certainly have the accepted types."""
    kinds = ARGUMENTS.get(name, ())
    if len(kinds) != len(arguments):
        return False
    return all(_KINDS[kind](each.type) for kind, each in zip(kinds, arguments, strict=True))


_KINDS: dict[str, Callable[[Type | None], bool]] = {
    "any": lambda kind: kind is not None,
    "number": is_numeric,
    "text": lambda kind: is_string(kind) or is_numeric(kind),
    "time": is_date_or_timestamp,
}


def _collection_type(name: str, arguments: list[Value]) -> Type | None:
    if name == "array":
        if not arguments:
            return Array(VOID)
        kind = common_type(arguments).type
        return None if kind is None else Array(kind)
    if not arguments:
        return Map(VOID, VOID)
    if len(arguments) % 2:
        return None
    keys, values = common_type(arguments[::2]).type, common_type(arguments[1::2]).type
    return None if keys is None or values is None else Map(keys, values)


ARGUMENTS = {
    **dict.fromkeys(
        """
        length len char_length character_length octet_length upper lower ucase lcase trim ltrim
        rtrim btrim initcap ascii
        """.split(),  # noqa: SIM905
        ("text",),
    ),
    **dict.fromkeys(
        """
        year month day dayofmonth dayofweek dayofyear quarter weekday weekofyear hour minute
        last_day to_date
        """.split(),  # noqa: SIM905
        ("time",),
    ),
    **dict.fromkeys(["contains", "startswith", "endswith", "instr"], ("text", "text")),
    **dict.fromkeys(["datediff", "date_diff"], ("time", "time")),
    **dict.fromkeys(["isnull", "isnotnull"], ("any",)),
    **dict.fromkeys(["abs", "negative", "positive"], ("number",)),
    **dict.fromkeys(["substring", "substr"], ("text", "number", "number")),
    **dict.fromkeys(["left", "right"], ("text", "number")),
    **dict.fromkeys(["isnan", "sqrt", "exp", "ln", "log10", "log2"], ("number",)),
}
"""accepted argument types of some functions; calls of others are not checked"""
