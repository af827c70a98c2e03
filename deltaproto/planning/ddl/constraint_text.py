"""The expression of ADD CONSTRAINT as Delta Spark stores it.

Delta's own grammar reads this statement, and knows fewer tokens than Spark's: `r'x'`, `'it''s'`,
`1.5f`, `::`, `<<` and `->` are several tokens. Delta joins all with spaces, without comments, and
Spark parses the result: `'it''s'` becomes two adjacent strings with the value `its`.

Source: Delta Spark 4.4's `DeltaSqlBase.g4`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from deltaproto.planning.predict.outcome import Refusal
from deltaproto.policy.constructs import find_other_functions
from deltaproto.sql.quoting import quote_literal
from deltaproto.sql.tokens import is_enclosed, scan_tokens

_EXPONENT = r"(?:E[+-]?[0-9]+)"
# The longest match counts, as in ANTLR. Compiled when first used.
_TOKENS = (
    r"'(?:[^'\\]|\\.)*'",
    r'"(?:[^"\\]|\\.)*"',
    r"`(?:[^`]|``)*`",
    r"[A-Z0-9_]+",
    rf"[0-9]+{_EXPONENT}(?:BD|D)?",
    rf"(?:[0-9]+\.[0-9]*|\.[0-9]+){_EXPONENT}?(?:BD|D)?(?![A-Z0-9_])",
    r"<=>|<>|!=|<=|!>|>=|!<|==|\|\|",
    r".",
)
_HIDDEN = r"(?s)--[^\r\n]*\r?\n?|/\*.*?\*/|[ \r\n\t]+"
_FLAGS = re.IGNORECASE | re.ASCII | re.DOTALL
_SPLIT = ("->", "::", "<<")
"""operators that neither grammar reads in parts"""


def stored_text(expression: str) -> str:
    """Return the expression as Delta Spark passes it to Spark and stores it."""
    return " ".join(text for text, _ in _scan(expression))


def refuse_constraint_text(expression: str) -> Refusal | None:
    """Return why Spark cannot parse what Delta's grammar makes of an expression, or None."""
    for (text, start), (after, follows) in pairwise(_scan(expression)):
        adjacent = follows == start + len(text)
        if text in "rR" and after[0] in "'\"" and adjacent:
            return Refusal(
                "UNSUPPORTED_TYPED_LITERAL",
                f"Delta Spark cannot read strings such as {text}{after} in constraints",
                "write the string without r, and with \\\\ for each backslash",
                on_databricks=False,
            )
        if adjacent and text == "." and after[0].isdecimal() and after[-1] in "fF":
            return Refusal(
                "PARSE_SYNTAX_ERROR",
                "Delta Spark cannot read floats such as 1.5F in constraints",
                "write 1.5D or CAST(1.5 AS FLOAT)",
                on_databricks=False,
            )
        if adjacent and text + after in _SPLIT:
            return Refusal(
                "PARSE_SYNTAX_ERROR",
                f"Delta Spark cannot read {text}{after} in constraints",
                "write the constraint without it, such as CAST(x AS INT) for x::int",
                on_databricks=False,
            )
    return None


def restorable_text(expression: str) -> str | None:
    """Return a stored expression as ADD CONSTRAINT has to name it to keep its meaning.

    None if no text does. Other engines, and SET TBLPROPERTIES, store expressions that Delta's
    grammar would change, and functions that Spark does not have.
    """
    if not is_enclosed(expression) or find_other_functions(expression):
        return None
    text, end = "", 0
    for token in scan_tokens(expression):
        gap = " " if end and token.start > end else ""
        several = token.string and len([*_scan(token.text)]) > 1
        text += gap + (quote_literal(token.value) if several else token.text)
        end = token.end
    return text if refuse_constraint_text(text) is None and _same_words(text) else None


def _same_words(expression: str) -> bool:
    """Return True if Delta's grammar does not split a word of Spark's, as one with a letter ä."""
    words = (token for token in scan_tokens(expression) if not token.string)
    return all(len(token.key) < 2 or len([*_scan(token.text)]) == 1 for token in words)


def _scan(expression: str) -> Iterator[tuple[str, int]]:
    """Yield the tokens of Delta's grammar, with their positions."""
    hidden = re.compile(_HIDDEN)
    patterns = [re.compile(text, _FLAGS) for text in _TOKENS]
    at = 0
    while at < len(expression):
        if skipped := hidden.match(expression, at):
            at = skipped.end()
            continue
        matches = (pattern.match(expression, at) for pattern in patterns)
        text = max((match[0] for match in matches if match), key=len)
        yield text, at
        at += len(text)
