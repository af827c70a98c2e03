"""Tokens of Spark SQL: words, quoted names, strings and single characters. Never raises.

Source: Spark's `SqlBaseLexer` (bracketed comments nest, `r'…'` has no escapes, a doubled quote is a
quote).
"""

import re
from typing import NamedTuple

# Compiled when first used, which most commands do not need.
_SCAN = r"""(?sx)(?P<space>\s+|--(?:\\\r?\n|[^\r\n])*)
      | (?P<comment>/\*(?!\+))
      | (?P<string>[rR]'[^']*'|[rR]"[^"]*"
          |'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<name>`(?:[^`]|``)*`)
      | (?P<word>\w+)
      | (?P<other>.)"""
# Compiled when first used: most commands read no SQL.
_BRACKET = r"/\*|\*/"
_ESCAPE = r"(?s)\\(u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|.)"
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}


class Token(NamedTuple):
    """One token. Words have an uppercase `key`; quoted names and strings have no key."""

    text: str
    key: str
    start: int
    end: int

    @property
    def quoted(self) -> bool:
        """True for a quoted name."""
        return self.text.startswith("`") and not self.key

    @property
    def string(self) -> bool:
        """True for a string."""
        return not self.key and not self.quoted

    @property
    def value(self) -> str:
        """The value, without quotes and escapes."""
        if self.key:
            return self.text
        if self.quoted:
            return self.text[1:-1].replace("``", "`")
        if self.text[0] in "rR":
            return self.text[2:-1]
        quote = self.text[0]
        return re.sub(_ESCAPE, _unescape, self.text[1:-1].replace(quote * 2, quote))


def tokenize(sql: str) -> list[Token]:
    """Return the statement's tokens, without comments and a final semicolon."""
    found = scan_tokens(sql)
    while found and found[-1].key == ";":
        found.pop()
    return found


def scan_tokens(sql: str) -> list[Token]:
    """Return all tokens except comments and spaces."""
    found = []
    at = 0
    token = re.compile(_SCAN)
    while match := token.match(sql, at):
        at = match.end()
        if match.lastgroup == "comment":
            at = _after_comment(sql, at)
        elif match.lastgroup != "space":
            keyed = match.lastgroup in ("word", "other")
            key = match[0].upper() if keyed else ""
            found.append(Token(match[0], key, match.start(), match.end()))
    return found


def is_enclosed(expression: str) -> bool:
    """Return True if an expression stays within its surrounding parentheses.

    An expression that closes them, ends the statement, or opens a quote or a comment could turn the
    following text into another statement.
    """
    sql = f"({expression})"
    found, depth = scan_tokens(sql), 0
    for token in found:
        if token.text in ("'", '"', "`", ";"):
            return False
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth == 0:
            return token.end == len(sql)
    return False


def _after_comment(sql: str, at: int) -> int:
    """Return the end of a bracketed comment; the end of the text if it is not closed."""
    depth = 1
    for bracket in re.compile(_BRACKET).finditer(sql, at):
        depth += 1 if bracket[0] == "/*" else -1
        if depth == 0:
            return bracket.end()
    return len(sql)


def _unescape(match: re.Match[str]) -> str:
    what = match[1]
    if what[0] == "u" and len(what) == 5:
        return chr(int(what[1:], 16))
    if len(what) == 3:
        return chr(int(what, 8))
    # In a LIKE pattern the backslash stays.
    return f"\\{what}" if what in "%_" else _ESCAPED.get(what, what)
