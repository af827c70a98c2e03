"""Resolve the references and the type of an expression, as far as possible.

Only a part of Spark's grammar is supported; the rest is unknown. The reference is Spark 4 in its
default ANSI mode.

Source: Spark 4.2's `Analyzer` and `TypeCoercion`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from deltaproto.planning.ddl.cursor import Cursor, UnreadableError
from deltaproto.planning.ddl.functions import call_result, has_special_grammar, require_function
from deltaproto.planning.ddl.operators import (
    BOOLEAN,
    INTERVAL,
    MISMATCH,
    STRING,
    UNKNOWN,
    VOID,
    RefusedError,
    Value,
    apply_arithmetic,
    apply_comparison,
    apply_logical,
    cast_value,
    common_type,
    element_of,
    field_of,
    is_condition,
    is_integer,
    is_numeric,
    is_string,
    parse_number,
    parse_typed_literal,
)
from deltaproto.planning.ddl.types import parse_type
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import Atomic, Path, Struct, Type, dotted_path, is_same_name

_COMPARING = ("=", "==", "!=", "<>", "<", ">", "<=", ">=", "<=>")
_BARE = {
    "CURRENT_DATE": "date",
    "CURRENT_TIMESTAMP": "timestamp",
    "LOCALTIMESTAMP": "timestamp_ntz",
    "CURRENT_USER": "string",
    "SESSION_USER": "string",
    "USER": "string",
}
_LAZY = ("if", "coalesce", "ifnull", "nvl", "nvl2", "nullif")
_OPEN = ("'", '"', "`")
_DEEPEST = 60


class ResolvedExpression(NamedTuple):
    """The result of resolving an expression."""

    type: Type | None
    """None: unknown"""
    refusal: Refusal | None = None
    """why Spark refuses the expression in any context"""
    literal: str | None = None
    """its text if it is a plain literal; strings without quotes"""
    columns: tuple[Path, ...] = ()
    """the columns that it refers to"""
    functions: frozenset[str] = frozenset()
    """the called functions, in lowercase"""
    queries: bool = False
    """True if it has a subquery, which is not analyzed"""
    complete: bool = True
    """False: a part of it was not understood"""

    @property
    def known(self) -> bool:
        """True if every part of the expression was resolved."""
        return self.complete and not self.queries and self.type is not None


def resolve_expression(
    sql: str, schema: Struct | None, names: Iterable[str] = ()
) -> ResolvedExpression:
    """Resolve an expression against a table's columns.

    Args:
        schema: None if the columns are unknown; column names are then not checked.
        names: table names that may qualify a column.
    """
    reader = _ExpressionParser(Cursor(sql), schema, [name.casefold() for name in names])
    value, refusal, complete = UNKNOWN, None, True
    try:
        if any(token.text in _OPEN for token in reader.cursor.tokens):
            raise reader.cursor.unreadable("a quote is not closed")
        value = reader.expression()
        complete = reader.cursor.done
    except RefusedError as error:
        refusal = error.refusal
    except (UnreadableError, RecursionError):
        complete = False
    return ResolvedExpression(
        value.type if complete else None,
        refusal,
        value.literal,
        tuple(reader.columns),
        frozenset(reader.functions),
        reader.queries,
        complete,
    )


class _ExpressionParser:
    """A recursive-descent parser over the tokens; raises refusals that it finds."""

    def __init__(self, cursor: Cursor, schema: Struct | None, names: list[str]) -> None:
        self.cursor, self.schema, self.names = cursor, schema, names
        self.columns: list[Path] = []
        self.functions: set[str] = set()
        self.queries = False
        self.depth = 0

    def expression(self) -> Value:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.cursor.unreadable("the expression is nested too deeply")
        value = self._conjunction()
        while self.cursor.take("OR"):
            value = apply_logical(value, self._conjunction())
        self.depth -= 1
        return value

    def _conjunction(self) -> Value:
        value = self._negation()
        while self.cursor.take("AND"):
            value = apply_logical(value, self._negation())
        return value

    def _negation(self) -> Value:
        if not self.cursor.one_of("NOT", "!"):
            return self._predicate()
        value = self._negation()
        if value.type not in (None, BOOLEAN, VOID) and not is_string(value.type):
            raise RefusedError(f"{MISMATCH}UNEXPECTED_INPUT_TYPE", "NOT requires a boolean")
        return Value(BOOLEAN if value.type == BOOLEAN else None)

    def _predicate(self) -> Value:
        value = self._sum()
        while True:
            sign = self.cursor.take_sign(_COMPARING)
            if sign:
                value = apply_comparison(value, self._sum())
                continue
            if self.cursor.take("IS"):
                self.cursor.take("NOT")
                return self._is(value)
            negated = self.cursor.keys(2)[1:] and self.cursor.keys(1) == ("NOT",)
            at = self.cursor.at
            if negated:
                self.cursor.at += 1
            word = self.cursor.one_of("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
            if not word:
                self.cursor.at = at
                return value
            return self._matched(value, word)

    def _is(self, value: Value) -> Value:
        if self.cursor.one_of("NULL", "UNKNOWN"):
            return Value(None if value.type is None else BOOLEAN)
        if self.cursor.one_of("TRUE", "FALSE"):
            if value.type is not None and not is_string(value.type):
                apply_comparison(value, Value(BOOLEAN))
            return Value(BOOLEAN if value.type == BOOLEAN else None)
        raise self.cursor.unreadable("unknown test")

    def _matched(self, value: Value, word: str) -> Value:
        if word == "BETWEEN":
            low = self._sum()
            self.cursor.expect("AND")
            both = (apply_comparison(value, low), apply_comparison(value, self._sum()))
            return Value(BOOLEAN if all(each.type for each in both) else None)
        if word != "IN":
            if self.cursor.key in ("ALL", "ANY", "SOME"):
                raise self.cursor.unreadable("unknown operator")
            pattern = self._sum()
            plain = is_string(value.type) and is_string(pattern.type)
            return Value(BOOLEAN if plain else None)
        self.cursor.expect("(")
        if self._query():
            return Value(BOOLEAN)
        found = [self.expression()]
        while self.cursor.take(","):
            found.append(self.expression())
        self.cursor.expect(")")
        for each in found:
            try:
                value_known = apply_comparison(value, each).type
            except RefusedError as error:
                if error.refusal.error.startswith(MISMATCH):
                    raise RefusedError(f"{MISMATCH}DATA_DIFF_TYPES", str(error)) from None
                raise
            if value_known is None:
                return UNKNOWN
        return Value(BOOLEAN)

    def _query(self) -> bool:
        """Skip a query up to its closing bracket."""
        if self.cursor.key not in ("SELECT", "WITH", "VALUES", "FROM"):
            return False
        self.queries = True
        self.cursor.until(")")
        self.cursor.expect(")")
        return True

    def _sum(self) -> Value:
        value = self._product()
        while sign := self.cursor.take_sign(("+", "-", "||", "&", "|", "^")):
            value = apply_arithmetic(value, self._product(), sign)
        return value

    def _product(self) -> Value:
        value = self._factor()
        while sign := self.cursor.take_sign(("*", "/", "%")) or self.cursor.one_of("DIV"):
            value = apply_arithmetic(value, self._factor(), sign)
        return value

    def _factor(self) -> Value:
        sign = self.cursor.take_sign(("-", "+", "~"))
        if not sign:
            return self._extracted(self._primary())
        value = self._factor()
        if sign == "-" and value.literal is not None and is_numeric(value.type):
            return Value(value.type, f"-{value.literal}")
        fits = is_integer(value.type) if sign == "~" else is_numeric(value.type)
        return Value(value.type if fits or (sign != "~" and value.type == INTERVAL) else None)

    def _primary(self) -> Value:
        cursor = self.cursor
        if cursor.done:
            raise cursor.unreadable("an expression was expected")
        token = cursor.tokens[cursor.at]
        if token.string:
            return Value(STRING, cursor.string())
        if token.text[0].isdigit() or token.text[0] == ".":
            return parse_number(cursor)
        if cursor.take("("):
            if self._query():
                return UNKNOWN
            value = self.expression()
            cursor.expect(")")
            return value
        if not token.quoted:
            found = self._keyword(token.key)
            if found is not None:
                return found
        return self._name_or_call()

    def _keyword(self, key: str) -> Value | None:
        cursor = self.cursor
        following = cursor.tokens[cursor.at + 1] if cursor.at + 1 < len(cursor.tokens) else None
        match key:
            case "TRUE" | "FALSE" | "NULL":
                cursor.at += 1
                return Value(VOID if key == "NULL" else BOOLEAN, key.lower())
            case "CASE":
                cursor.at += 1
                return self._lazily(self._case)
            case "CAST" | "TRY_CAST" if following and following.key == "(":
                cursor.at += 2
                value = self.expression()
                cursor.expect("AS")
                kind = parse_type(cursor)
                cursor.expect(")")
                return cast_value(value, kind)
            case "EXISTS" if following and following.key == "(":
                cursor.at += 2
                if not self._query():
                    raise cursor.unreadable("unknown keyword")
                return Value(BOOLEAN)
            case "IDENTIFIER" if following and following.key == "(":
                raise cursor.unreadable("a name is computed")
            case "INTERVAL" if following and (following.string or following.text[0].isdigit()):
                cursor.at += 2
                cursor.name()
                if cursor.take("TO"):
                    cursor.name()
                return Value(INTERVAL)
            case "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ" | "X" if following and following.string:
                cursor.at += 1
                return parse_typed_literal(key, cursor.string())
        return None

    def _lazily(self, read: Callable[[], Value]) -> Value:
        """Read a lazily computed part, whose text literals are not cast in advance."""
        try:
            return read()
        except RefusedError as error:
            if error.refusal.error != "CAST_INVALID_INPUT":
                raise
            raise self.cursor.unreadable("a string may not be castable") from None

    def _case(self) -> Value:
        cursor = self.cursor
        operand = None if cursor.key == "WHEN" else self.expression()
        results, fits = [], True
        while cursor.take("WHEN"):
            condition = self.expression()
            if operand is not None:
                condition = apply_comparison(operand, condition)
            fits = is_condition(condition) and fits
            cursor.expect("THEN")
            results.append(self.expression())
        if cursor.take("ELSE"):
            results.append(self.expression())
        cursor.expect("END")
        return common_type(results) if fits else UNKNOWN

    def _name_or_call(self) -> Value:
        cursor = self.cursor
        start = cursor.at
        path = cursor.path()
        if cursor.key == "(" and len(path) == 1:
            return self._called(path[0].lower())
        string = not cursor.done and cursor.tokens[cursor.at].string
        if cursor.key == "(" or string or path[0].casefold() == "_metadata":
            raise cursor.unreadable("unknown expression")
        found = self._column(path)
        if found is not None:
            return found
        if cursor.tokens[start].key == "CURRENT_TIME":
            raise cursor.unreadable("unknown expression")
        bare = _BARE.get(cursor.tokens[start].key) if len(path) == 1 else None
        if bare is not None:
            self.functions.add(path[0].lower())
            return Value(Atomic(bare))
        self.columns.append(path)
        suggested = self.schema is not None and bool(self.schema.columns)
        raise RefusedError(
            f"UNRESOLVED_COLUMN.{'WITH' if suggested else 'WITHOUT'}_SUGGESTION",
            f"the table has no column {dotted_path(path)}",
            "run DESCRIBE to see the columns",
        )

    def _column(self, path: Path) -> Value | None:
        """Return the column at a path, or None."""
        if self.schema is None:
            return UNKNOWN
        columns = self.schema.columns
        # A path may be qualified by the last part of the table's name, or its alias.
        named = [n for n in range(1, len(path)) if path[n - 1].casefold() in self.names]
        at = max(named, default=0)
        found = next((c for c in columns if is_same_name(c.name, path[at])), None)
        if found is None:
            return None
        self.columns.append(path[at:])
        value = Value(found.type)
        for name in path[at + 1 :]:
            value = field_of(value, name)
        return value

    def _called(self, name: str) -> Value:
        cursor = self.cursor
        cursor.expect("(")
        self.functions.add(name)
        require_function(name)
        if cursor.take("*"):
            cursor.expect(")")
            return self._called_with(name, [])
        if has_special_grammar(cursor):
            cursor.until(")")
            cursor.expect(")")
            return self._called_with(name, [UNKNOWN])
        arguments: list[Value] = []
        if not cursor.take(")"):
            if cursor.one_of("DISTINCT", "ALL"):
                raise cursor.unreadable("unsupported aggregate")
            read = self.expression if name not in _LAZY else partial(self._lazily, self.expression)
            arguments.append(read())
            while cursor.take(","):
                arguments.append(read())
            cursor.expect(")")
        return self._called_with(name, arguments)

    def _called_with(self, name: str, arguments: list[Value]) -> Value:
        if self.cursor.take("OVER"):
            error = "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE"
            raise RefusedError(error, f"{name} requires a window")
        return call_result(name, arguments)

    def _extracted(self, value: Value) -> Value:
        while True:
            if self.cursor.take("["):
                index = self.expression()
                self.cursor.expect("]")
                value = element_of(value, index)
            elif self.cursor.take("."):
                value = field_of(value, self.cursor.name())
            else:
                return value
