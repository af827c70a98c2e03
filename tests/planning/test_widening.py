"""Which changes of type Delta makes, and which of them Iceberg knows.

Sources: the table of the Delta documentation ("Type widening"), which names every pair; and the
Iceberg specification ("Schema Evolution"): int to long, float to double, decimals of more digits
with the same scale. Iceberg has no types shorter than int.
"""

from __future__ import annotations

import itertools

from deltaproto.planning.predict.schema import Array, Atomic, Map, Struct
from deltaproto.planning.predict.type_widening import (
    collection_word,
    is_accepted_change,
    widens,
    widens_in_iceberg,
)

NUMBERS = ("byte", "short", "integer", "long")
DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""of the shortest decimal; the documentation counts ten for all that is shorter than long"""
DECIMALS = ((5, 2), (7, 2), (7, 4), (8, 4), (10, 0), (12, 2), (20, 0), (22, 2), (38, 18))
OTHERS = ("float", "double", "date", "timestamp", "timestamp_ntz", "string", "boolean", "binary")
TYPES = (*NUMBERS, *OTHERS, *(f"decimal({p},{s})" for p, s in DECIMALS))
LISTED = {
    *(("byte", each) for each in ("short", "integer", "long", "double")),
    *(("short", each) for each in ("integer", "long", "double")),
    *(("integer", each) for each in ("long", "double")),
    *(("float", "double"), ("date", "timestamp_ntz")),
}


def documented(one: str, other: str) -> bool:
    if other.startswith("decimal"):
        whole = _whole(other)
        if one in NUMBERS:
            return whole >= (20 if one == "long" else 10)
        return one.startswith("decimal") and whole >= _whole(one) and _scale(other) >= _scale(one)
    return (one, other) in LISTED


def _whole(name: str) -> int:
    precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision) - int(scale)


def _scale(name: str) -> int:
    return int(name.removesuffix(")").split(",")[1])


def test_widening_is_as_documented() -> None:
    for one, other in itertools.permutations(TYPES, 2):
        assert widens(Atomic(one), Atomic(other)) is documented(one, other), (one, other)


def test_what_widens_is_passed_on_by_spark() -> None:
    for one, other in itertools.permutations(TYPES, 2):
        if documented(one, other):
            assert is_accepted_change(Atomic(one), Atomic(other)), (one, other)


def test_iceberg_knows_some_of_them() -> None:
    for one, other in itertools.permutations(TYPES, 2):
        if not documented(one, other):
            continue
        known = (one, other) == ("float", "double") or other in NUMBERS
        if one.startswith("decimal"):
            known = _scale(one) == _scale(other)
        assert widens_in_iceberg(Atomic(one), Atomic(other)) is known, (one, other)


def test_strings_may_become_longer() -> None:
    for one, other, taken in (
        ("varchar(3)", "varchar(4)", True),
        ("varchar(4)", "varchar(3)", False),
        ("varchar(4)", "varchar(4)", True),
        ("varchar(4)", "string", True),
        ("char(4)", "string", True),
        ("char(4)", "varchar(4)", True),
        ("char(4)", "varchar(3)", False),
        ("char(3)", "char(4)", False),
        ("char(4)", "char(4)", True),
        ("varchar(3)", "char(4)", False),
        ("string", "varchar(9)", False),
        ("string", "integer", False),
        ("integer", "string", True),
        ("void", "integer", True),
    ):
        assert is_accepted_change(Atomic(one), Atomic(other)) is taken, (one, other)


def test_collections_have_no_width() -> None:
    atomic = Atomic("integer")
    for kind, name in (
        (Array(atomic), "ARRAY"),
        (Map(atomic, atomic), "MAP"),
        (Struct(()), "STRUCT"),
    ):
        assert collection_word(kind) == name
        for one, other in ((kind, atomic), (atomic, kind), (kind, kind)):
            assert not widens(one, other)
            assert not is_accepted_change(one, other)
    assert collection_word(Atomic("interval day")) == "INTERVAL"
    assert collection_word(atomic) == ""
