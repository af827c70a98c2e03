"""Tokens of SQL as Spark reads them: strings with their escapes, comments, names."""

from __future__ import annotations

import pytest

from deltaproto.sql.tokens import scan_tokens, tokenize


@pytest.mark.parametrize(
    ("written", "value"),
    [
        # Spark's documentation of string literals, and its ParserUtils.unescapeSQLString.
        (r"'\u0041b'", "Ab"),
        (r"'\101\060'", "A0"),
        (r"'a\tb\nc\rd\\'", "a\tb\nc\rd\\"),
        (r"'\0'", "\0"),
        (r"'\%\_'", r"\%\_"),
        (r"'\q\"\''", "q\"'"),
        (r"r'a\tb'", r"a\tb"),
        (r'R"a\tb"', r"a\tb"),
        ("'it''s'", "it's"),
        ('"say ""x"""', 'say "x"'),
        ("`a``b`", "a`b"),
        ("plain", "plain"),
    ],
)
def test_what_a_token_stands_for(written: str, value: str) -> None:
    (token,) = scan_tokens(written)
    assert token.value == value
    assert (token.start, token.end) == (0, len(written))


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("select 1 -- rest ; x", ["SELECT", "1"]),
        ("a /* b /* c */ d */ e", ["A", "E"]),
        ("a /* never closed /* x */", ["A"]),
        ("a.b=c", ["A", ".", "B", "=", "C"]),
        ("drop it ; ;", ["DROP", "IT"]),
        ("a;b", ["A", ";", "B"]),
        (" ; ", []),
    ],
)
def test_comments_and_last_semicolons_are_left_out(sql: str, keys: list[str]) -> None:
    assert [token.key for token in tokenize(sql)] == keys
