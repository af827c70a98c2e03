"""What the calls of Spark's functions return, as far as can be told."""

from __future__ import annotations

from collections.abc import Callable

from deltaproto.planning.ddl.cursor import Cursor
from deltaproto.planning.ddl.functions import ARGUMENTS, RETURNS, built_in
from deltaproto.planning.ddl.operators import (
    UNKNOWN,
    VOID,
    RefusedError,
    Value,
    common,
    numeric,
    textual,
    timed,
)
from deltaproto.planning.schema import Array, Atomic, Map, Type

_UNITS = frozenset(
    """
    YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND
    """.split()  # noqa: SIM905
)


def own_grammar(cursor: Cursor) -> bool:
    """Whether arguments come next that are no expressions: lambdas, names, units, FROM."""
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


def find_function(name: str) -> None:
    """Check that Spark has a function of this name, in lowercase.

    Raises:
        RefusedError: when it has none.
    """
    if not built_in(name):
        error, message = "UNRESOLVED_ROUTINE", f"Spark has no function {name}"
        raise RefusedError(error, message)


def returned(name: str, arguments: list[Value]) -> Value:
    """What a call returns."""
    if name in ("if", "iff") and len(arguments) == 3:
        return common(arguments[1:])
    if name in ("array", "map"):
        return Value(_built(name, arguments))
    if name == "nullif" and len(arguments) == 2:
        return Value(arguments[0].type)
    if name in ("coalesce", "ifnull", "nvl", "greatest", "least") and arguments:
        return common(arguments)
    if not _fit(name, arguments):
        return UNKNOWN
    if name in ("abs", "negative", "positive"):
        return Value(arguments[0].type)
    kind = RETURNS.get(name)
    return Value(None if kind is None else Atomic(kind))


def _fit(name: str, arguments: list[Value]) -> bool:
    """Whether the arguments of a call are known to be of its kinds."""
    kinds = ARGUMENTS.get(name, ())
    if len(kinds) != len(arguments):
        return False
    return all(_KINDS[kind](each.type) for kind, each in zip(kinds, arguments, strict=True))


_KINDS: dict[str, Callable[[Type | None], bool]] = {
    "any": lambda kind: kind is not None,
    "number": numeric,
    "text": lambda kind: textual(kind) or numeric(kind),
    "time": timed,
}


def _built(name: str, arguments: list[Value]) -> Type | None:
    if name == "array":
        if not arguments:
            return Array(VOID)
        kind = common(arguments).type
        return None if kind is None else Array(kind)
    if name == "map":
        if not arguments:
            return Map(VOID, VOID)
        keys, values = common(arguments[::2]).type, common(arguments[1::2]).type
        return None if keys is None or values is None else Map(keys, values)
    return None
