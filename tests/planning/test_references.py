"""The columns that an expression refers to."""

from __future__ import annotations

import pytest

from deltaproto.planning.ddl.checks import find_column_references


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("a > 3", ["a"]),
        ("a.b.c > d.e", ["a.b.c", "d.e"]),
        ("`a b`.`c` = 'x.y'", ["a b.c"]),
        ("length(s) > 0", ["s"]),
        ("cast(a.b as int) = 1", ["a.b", "as"]),
        ("day = date '2026-01-01'", ["day"]),
        ("x.f(y)", ["y"]),
        ("", []),
        ("3 + 4", []),
        ("a.", ["a"]),
    ],
)
def test_names_but_of_functions_and_types(expression: str, columns: list[str]) -> None:
    # Words of the language are taken for names as well: a column may be called so.
    assert [".".join(path) for path in find_column_references(expression)] == columns
