"""Which defaults IcebergCompatV3 takes: recorded from Delta Spark 4.4.0."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deltaproto.planning.ddl.types import is_literal
from deltaproto.planning.predict.schema import Array, Atomic
from tests.support.failures import each_row

TAKEN = [
    *(("5", "integer"), ("-5", "integer"), ("+5", "integer"), ("5", "byte"), ("5", "long")),
    *(("5L", "long"), ("5", "double"), ("1.5", "double"), ("1.5D", "double"), ("1e3", "double")),
    *(("1.5", "decimal(5,2)"), ("-1.5", "decimal(5,2)"), ("true", "boolean"), ("FALSE", "boolean")),
    *(("'x'", "string"), ("'a''b'", "string"), ('"x"', "string"), ("X'1F'", "binary")),
    ("'2024-01-01'", "date"),
]
REFUSED = [
    *(("5+1", "integer"), ("null", "integer"), ("NULL", "string"), ("cast(5 as int)", "integer")),
    *(("(5)", "integer"), ("'5'", "integer"), ("5S", "short"), ("2024", "string")),
    *(("9" * 5000, "long"), ("9" * 5000, "integer")),
    *(("5.25", "decimal(5,1)"), ("current_date()", "date"), ("date'2024-01-01'", "date")),
    *(("timestamp'2024-01-01 00:00:00'", "timestamp"), ("current_timestamp()", "timestamp")),
]


@each_row(("default", "kind"), TAKEN)
def test_taken(default: str, kind: str) -> None:
    assert is_literal(default, Atomic(kind))


@each_row(("default", "kind"), REFUSED)
def test_refused(default: str, kind: str) -> None:
    assert not is_literal(default, Atomic(kind))


@each_row(
    ("default", "kind", "taken"),
    [
        # As the source of `isLiteral` has it.
        ("'2024-02-30'", "date", False),
        ("'2024-01-01 10:00:00'", "timestamp_ntz", True),
        ("'2024-01-01T10:00:00.123456789'", "timestamp_ntz", True),
        ("'2024-01-01T10:00:00+02:00'", "timestamp", True),
        ("'2024-01-01T10:00:00+02:00'", "timestamp_ntz", False),
        ("'2024-01-01'", "timestamp", False),
        ("2147483648", "integer", False),
        ("2147483647", "byte", True),
        ("123.456", "decimal(4,1)", True),
        ("X'1G'", "binary", False),
        ("'1G'", "binary", True),
        ("'a\\'", "string", False),
        ("1_000", "double", False),
        *[("127", "byte", True), ("128", "byte", True), ("-1", "float", True)],
        *[
            ("1.5", "float", True),
            ("NaN", "float", True),
            ("Infinity", "double", True),
            ("x", "float", False),
        ],
        *[("32767", "short", True), ("32768", "short", True), ("-32769", "short", True)],
        *[("2147483647", "integer", True), ("-2147483648", "integer", True)],
        *[("-2147483649", "integer", False), ("9223372036854775807", "long", True)],
        *[("9223372036854775808", "long", False), ("-9223372036854775808", "long", True)],
        *[("-9223372036854775809", "long", False), ("5l", "long", True), ("5L", "integer", False)],
        *[(f"1.{'0' * 29}1", "decimal(38,30)", True), (f"1.{'0' * 29}1", "decimal(38,29)", False)],
        *[("0.000", "decimal(4,1)", True), ("12.30", "decimal(4,1)", True)],
        *[
            ("'2024-12-31T23:59:59'", "timestamp", True),
            ("'2024-12-31T24:00:00'", "timestamp", False),
        ],
        *[("'2024-12-31T23:60:00'", "timestamp", False), ("'2024-13-01'", "date", False)],
        *[("'2024-01-00'", "date", False), ("'2023-02-29'", "date", False)],
        *[("'2024-02-29'", "date", True), ("'2024-00-01'", "date", False), ("'x", "string", False)],
        *[("'", "string", False), ("'x\"", "string", False), ("'a\\\\'", "string", True)],
        *[("x'1'", "binary", True), ("xyz", "binary", False)],
    ],
)
def test_the_edges(default: str, kind: str, taken: bool) -> None:
    assert is_literal(default, Atomic(kind)) is taken


def test_collections_have_no_literals() -> None:
    assert not is_literal("array(1)", Array(Atomic("integer")))


KINDS = st.sampled_from(
    [
        *("byte", "long", "float", "double", "decimal(5,2)", "boolean", "binary", "date", "string"),
        *("timestamp", "timestamp_ntz", "varchar(3)", "variant", "void", "string collate X"),
    ]
)


@given(st.text(max_size=30), KINDS)
def test_any_text_gets_an_answer(default: str, kind: str) -> None:
    assert is_literal(default, Atomic(kind)) in (True, False)


@given(st.integers(-(2**31), 2**31 - 1))
def test_whole_numbers_are_literals_of_every_type_of_numbers(number: int) -> None:
    for kind in ("integer", "long", "double", "decimal(38,0)"):
        assert is_literal(str(number), Atomic(kind))
