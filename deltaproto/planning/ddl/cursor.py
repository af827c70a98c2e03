"""A cursor over a statement's tokens, and splitting scripts into statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from deltaproto.planning.predict.schema import Path
from deltaproto.sql.tokens import Token, scan_tokens, tokenize

T = TypeVar("T")
# What Spark's lexer reads as a number, such as 3, 3L and 3e5; 3a is a name.
_NUMBER = r"[0-9]+([LSYFD]|BD|E[0-9]+(F|D|BD)?)?"
_OPENING, _CLOSING = "([{", ")]}"


class UnreadableError(Exception):
    """The statement has an unsupported form. This error never leaves the package."""


class Cursor:
    """Reads tokens from left to right."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens = tokenize(sql)
        self.at = 0

    @property
    def done(self) -> bool:
        """True if all tokens are read."""
        return self.at >= len(self.tokens)

    def keys(self, count: int) -> tuple[str, ...]:
        """Return up to `count` next keys."""
        return tuple(token.key for token in self.tokens[self.at : self.at + count])

    @property
    def key(self) -> str:
        """The next key; empty at the end and before a string or quoted name."""
        return "" if self.done else self.tokens[self.at].key

    def take(self, *keys: str) -> bool:
        """Read these keys if they are next."""
        if self.keys(len(keys)) != keys:
            return False
        self.at += len(keys)
        return True

    def expect(self, *keys: str) -> None:
        """Read these keys.

        Raises:
            UnreadableError: if something else is next.
        """
        if not self.take(*keys):
            raise self.unreadable(f"{' '.join(keys)} was expected")

    def one_of(self, *keys: str) -> str:
        """Read one of these keys; return an empty string if none is next."""
        return next((key for key in keys if self.take(key)), "")

    def next(self) -> Token:
        """Read one token."""
        if self.done:
            raise self.unreadable("unexpected end")
        self.at += 1
        return self.tokens[self.at - 1]

    def end(self) -> None:
        """Check that nothing follows."""
        if not self.done:
            raise self.unreadable("the statement should end")

    def name(self) -> str:
        """Read one identifier."""
        token = self.next()
        plain = token.key.isidentifier() or (
            token.text.isalnum() and not re.fullmatch(_NUMBER, token.key)
        )
        if token.string or not (token.quoted or plain):
            self.at -= 1
            raise self.unreadable("a name was expected")
        return token.value

    def path(self) -> Path:
        """Read identifiers joined by dots."""
        names = [self.name()]
        while self.take("."):
            names.append(self.name())
        return tuple(names)

    def string(self) -> str:
        """Read one string, or several adjacent strings."""
        if self.done or not self.tokens[self.at].string:
            raise self.unreadable("a string was expected")
        text = ""
        while not self.done and self.tokens[self.at].string:
            text += self.next().value
        return text

    def number(self) -> int:
        """Read an integer."""
        token = self.next()
        if not (token.text.isascii() and token.text.isdigit()):
            self.at -= 1
            raise self.unreadable("a number was expected")
        return int(token.text[:9])

    def listed(self, read: Callable[[], T], opening: str = "(", closing: str = ")") -> list[T]:
        """Read a bracketed, comma-separated list."""
        self.expect(opening)
        found = [read()]
        while self.take(","):
            found.append(read())
        self.expect(closing)
        return found

    def take_sign(self, signs: tuple[str, ...]) -> str:
        """Consume and return the longest matching sign; empty if none matches.

        Each character of a sign may be a separate token.
        """
        tokens, at = self.tokens, self.at
        for sign in sorted(signs, key=len, reverse=True):
            text, end = "", at
            while end < len(tokens) and len(text) < len(sign):
                if end > at and tokens[end].start != tokens[end - 1].end:
                    break
                text += tokens[end].text
                end += 1
            if text == sign:
                self.at = end
                return sign
        return ""

    def until(self, *keys: str) -> str:
        """Read the text up to one of these keys outside of brackets, or to the end."""
        start, depth = self.at, 0
        while not self.done:
            key = self.tokens[self.at].key
            if depth == 0 and key in keys:
                break
            depth += (key in _OPENING if key else 0) - (key in _CLOSING if key else 0)
            self.at += 1
        if self.at == start:
            return ""
        return self.sql[self.tokens[start].start : self.tokens[self.at - 1].end]

    def bracketed(self) -> str:
        """Read the text in parentheses."""
        self.expect("(")
        text = self.until(")")
        self.expect(")")
        return text

    def unreadable(self, why: str) -> UnreadableError:
        """Create the error for this position."""
        here = "at its end" if self.done else f"at {self.tokens[self.at].text[:40]}"
        return UnreadableError(f"{why} {here}")


class ScriptStatement(NamedTuple):
    """One statement of a script."""

    text: str
    """from its first token to its last, without comments before and after"""
    line: int
    """line of its start, from 1"""


def split_script(sql: str) -> list[ScriptStatement]:
    """Split a script into its nonempty statements; never raises.

    Semicolons separate statements except in strings, quoted names and comments.
    """
    pieces: list[ScriptStatement] = []
    group: list[Token] = []
    for token in [*scan_tokens(sql), Token(";", ";", len(sql), len(sql))]:
        if token.key != ";":
            group.append(token)
        elif group:
            start = group[0].start
            pieces.append(
                ScriptStatement(sql[start : group[-1].end], sql.count("\n", 0, start) + 1)
            )
            group = []
    return pieces
