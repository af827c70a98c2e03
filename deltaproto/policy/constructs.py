"""The parts of an SQL expression that not every engine supports.

All tested clients that evaluate constraints accept comparisons of columns with literals, AND, OR,
NOT, IS NULL, BETWEEN, IN and the operators + - * /. Every other construct has a name here. The
client catalog lists the clients that support it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from deltaproto.counts import counted

if TYPE_CHECKING:
    from deltaproto.sql.tokens import Token

_PLAIN_WORDS = frozenset(["AND", "OR", "NOT", "IS", "NULL", "BETWEEN", "IN", "TRUE", "FALSE"])
_PLAIN_SIGNS = frozenset(["(", ")", ",", ".", "=", "<", ">", "+", "-", "*"])
_KEYWORDS = {
    "DIV": "div",
    "LIKE": "like",
    "ILIKE": "ilike",
    "RLIKE": "rlike",
    "REGEXP": "rlike",
    "ESCAPE": "escape",
    "CASE": "case",
    "CAST": "cast",
    "TRY_CAST": "try_cast",
    "INTERVAL": "interval",
    "DISTINCT": "is distinct from",
    "EXISTS": "exists",
    "SELECT": "subquery",
}
_PATTERNS = ("LIKE", "ILIKE", "RLIKE", "REGEXP")
"""operators that are also functions"""
_QUANTIFIERS = ("ALL", "ANY", "SOME")
_INSIDE = frozenset(
    "WHEN THEN ELSE END AS FROM FOR BOTH LEADING TRAILING PLACING ALL ANY".split()  # noqa: SIM905
)
"""keywords that occur only inside named constructs"""
_LITERALS = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "X")
_SUFFIXES = frozenset([*"DFSYB", "BD"])
"""suffixes of typed numbers, as in 0.5D, 1S and 0.5BD; L is plain, lower-case l is not"""
_TYPES = frozenset(
    "boolean bool tinyint smallint int integer bigint float real double decimal numeric string "  # noqa: SIM905
    "char varchar date timestamp interval array map struct".split()
)
"""cast targets that are not constructs; element types of the last three are checked"""
_AFTER_CAST = ("CAST", "TRY_CAST")
OTHER_FUNCTION = "a function that Spark does not have"
"""a construct, beside the function's own, as other engines store it"""
_COLUMN_IN_QUOTES = "a column's name in double quotes"
"""a string for Spark, and the column for other engines"""
_ARGUMENTS = {
    **dict.fromkeys(("TRIM", "LTRIM", "RTRIM", "CEIL", "FLOOR", "TO_DATE", "TO_TIMESTAMP"), 1),
    "REPLACE": 3,
}
"""argument counts for which other engines agree with Spark: LTRIM(x, y) trims y in Spark"""
_FORMATTED = frozenset(("string", "char", "varchar", "decimal", "numeric"))
"""cast targets whose text or rounding differs between engines"""
_SEPARATORS = (",", "FROM", "FOR")
"""of arguments"""
_COUNTING = ("SUBSTR", "SUBSTRING", "LEFT", "RIGHT")
"""functions whose second argument counts characters: engines differ if it is below 1"""


class ColumnNames(frozenset[str]):
    """The columns of a schema; create it once for all of its expressions."""

    @cached_property
    def folded(self) -> frozenset[str]:
        """The names without case."""
        return frozenset(name.casefold() for name in self)


def find_constructs(expression: str, columns: Collection[str] = ()) -> tuple[str, ...]:
    """Return the distinct non-plain constructs of an expression, in order.

    Functions end in `()`. A column whose case differs from the schema's also counts as a construct.
    """
    known = columns if isinstance(columns, ColumnNames) else ColumnNames(columns)
    # Most tables have no expressions.
    from deltaproto.sql.tokens import scan_tokens

    return tuple(dict.fromkeys(_find_in_tokens(scan_tokens(expression), known)))


def find_other_functions(expression: str) -> list[str]:
    """Return the functions of an expression that Spark does not have, in order, lowercase.

    Spark fails to write rows if a constraint calls one, unless the session defines it: other
    engines, such as deltalake, store the names of their own functions.
    """
    calls = (each.removesuffix("()") for each in find_constructs(expression) if each[-2:] == "()")
    return [name for name in calls if _is_other(name)]


def _is_other(function: str) -> bool:
    from deltaproto.sql.functions import is_built_in

    return not is_built_in(function) and function not in _TYPES


def _find_in_tokens(tokens: Sequence[Token], columns: ColumnNames) -> Iterator[str]:
    types, calls = _find_cast_types(tokens), _find_calls(tokens)
    for at, token in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        before = tokens[at - 1] if at else None
        if token.quoted:
            yield from _classify_column(token.value, columns)
        elif token.string:
            if before is not None and before.string:
                yield "adjacent strings"
            yield from _classify_string(token, columns)
        elif token.key[0].isalpha() or token.key[0] == "_":
            if at in types:
                yield from _type(token)
                continue
            if token.key in _SUFFIXES and _closes_number(tokens, at):
                yield from _typed_number(after)
                continue
            yield from _classify_word(token, before, after, columns)
            if at + 1 in calls:
                yield from _unusual_call(token, tokens, calls[at + 1])
        elif token.key[0].isdigit():
            if token.key.startswith("0X"):
                yield "hexadecimal number"
            elif token.key[-1] in _SUFFIXES or token.text.endswith("l"):
                yield from _typed_number(after)
        elif token.key == "[":
            if after is None or not after.string:
                yield "array index"
            else:
                yield "map key"
        elif token.key == "]":
            continue
        else:
            yield from _classify_sign(token, before, after)


def _unusual_call(function: Token, tokens: Sequence[Token], bounds: Sequence[int]) -> Iterator[str]:
    """Yield a construct for arguments of a common function on which engines disagree."""
    name = f"{function.text.lower()}()"
    expected = _ARGUMENTS.get(function.key)
    if expected is not None:
        given = 1 + sum(tokens[at].key == "," for at in bounds[:-1])
        if given != expected:
            yield f"{name} with {counted(given, 'argument')}"
    if function.key in _COUNTING:
        second = tokens[bounds[0] + 1 : bounds[1]] if len(bounds) > 1 else ()
        literal = len(second) == 1 and second[0].key.isdecimal()
        if not literal or not second[0].key.strip("0"):
            yield f"{name} with a count that may be below 1"


def _find_calls(tokens: Sequence[Token]) -> Mapping[int, Sequence[int]]:
    """Return the separators and the end of the arguments of each opening bracket."""
    found: dict[int, list[int]] = {}
    open_brackets: list[list[int]] = []
    for at, token in enumerate(tokens):
        if token.key == "(":
            found[at] = []
            open_brackets.append(found[at])
        elif token.key == ")" and open_brackets:
            open_brackets.pop().append(at)
        elif token.key in _SEPARATORS and not token.string and open_brackets:
            open_brackets[-1].append(at)
    for bounds in open_brackets:
        bounds.append(len(tokens))
    return found


def _typed_number(after: Token | None) -> Iterator[str]:
    yield "typed number"
    if after is not None:
        yield "text after a typed number"


def _closes_number(tokens: Sequence[Token], at: int) -> bool:
    """Return True if the word is the suffix of a number that ends in a point, as in 0.D."""
    number, point = tokens[max(at - 2, 0)], tokens[at - 1]
    joined = at > 1 and number.end == point.start and point.end == tokens[at].start
    return joined and point.key == "." and number.key[:1].isdigit()


def _type(token: Token) -> Iterator[str]:
    name = token.text.lower()
    if name not in _TYPES or name in _FORMATTED:
        yield f"cast to {name}"


def _find_cast_types(tokens: Sequence[Token]) -> set[int]:
    """Return the token positions of type names in casts."""
    found: set[int] = set()
    open_casts: list[int] = []
    depth = 0
    for at, token in enumerate(tokens):
        if token.key == "(":
            depth += 1
            if at and tokens[at - 1].key in _AFTER_CAST:
                open_casts.append(depth)
        elif token.key == ")":
            if open_casts and open_casts[-1] == depth:
                open_casts.pop()
            depth -= 1
        elif (token.key == "AS" and open_casts and open_casts[-1] == depth) or (
            token.key == ":" and at and tokens[at - 1].key == ":"
        ):
            found.add(at + 1)
    return found


def _classify_word(
    token: Token, before: Token | None, after: Token | None, columns: ColumnNames
) -> Iterator[str]:
    key = token.key
    qualified = before is not None and before.key == "."
    if qualified or key in _PLAIN_WORDS or key in _INSIDE:
        return
    calls = after is not None and after.key == "("
    operand = before is not None and (
        before.key in (")", "]", "NOT")
        or before.string
        or before.quoted
        or (before.key[:1].isalnum() and before.key not in ("AND", "OR", "WHEN"))
    )
    if key in _KEYWORDS and not (calls and key in _PATTERNS and not operand):
        yield _KEYWORDS[key]
        if key in _PATTERNS and after is not None and after.key in _QUANTIFIERS:
            yield "like any"
    elif after is not None and after.key == "(":
        name = token.text.lower()
        yield f"{name}()"
        if _is_other(name):
            yield OTHER_FUNCTION
    elif after is not None and after.string and key in _LITERALS:
        yield f"{key.lower()} literal"
    else:
        yield from _classify_column(token.text, columns)


def _classify_column(name: str, columns: ColumnNames) -> Iterator[str]:
    if name not in columns and name.casefold() in columns.folded:
        yield "column in another case"
    elif columns and name.casefold() not in columns.folded:
        yield name.lower() if name.strip() else "blank name"


def _classify_string(token: Token, columns: ColumnNames) -> Iterator[str]:
    if token.text.startswith('"'):
        is_column = token.value.casefold() in columns.folded
        yield _COLUMN_IN_QUOTES if is_column else "double-quoted string"
    elif not token.text.startswith("'"):
        yield "raw string"
    elif "\\" in token.text:
        yield "backslash in a string"


def _classify_sign(token: Token, before: Token | None, after: Token | None) -> Iterator[str]:
    key = token.key
    follows = before is not None and before.end == token.start
    if key == "=" and follows and before is not None and before.key == "=":
        yield "=="
    elif key == "!":
        if after is None or after.key != "=" or after.start != token.end:
            yield "!"
    elif key == ">" and follows and before is not None and before.key == "-":
        yield "lambda"
    elif key == ">" and follows and before is not None and before.key == "=":
        yield "<=>"
    elif key == "|":
        if follows and before is not None and before.key == "|":
            yield "||"
        elif after is None or after.key != "|" or after.start != token.end:
            yield "|"
    elif key == ":":
        if follows and before is not None and before.key == ":":
            yield "::"
    elif key not in _PLAIN_SIGNS:
        yield key
