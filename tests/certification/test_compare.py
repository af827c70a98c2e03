"""What counts as the same answer."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.certification.adapter_server import plain
from deltaproto.certification.compare import (
    describe_number_difference,
    describe_row_difference,
    describe_schema_difference,
    is_same_value,
)
from deltaproto.certification.fixtures.recipe import ANY
from tests.certification.made import case, rows

IDS = st.lists(st.integers(0, 60), unique=True, max_size=20)


@given(IDS, st.randoms(use_true_random=False))
def test_rows_are_the_same_in_any_order(ids: list[int], chance: random.Random) -> None:
    wanted = list(rows(*ids))
    found = [dict(row) for row in wanted]
    chance.shuffle(found)
    assert describe_row_difference(case(), found, wanted) == ""


@given(IDS.filter(bool), st.data())
def test_any_change_of_a_row_is_seen(ids: list[int], data: st.DataObject) -> None:
    wanted = list(rows(*ids))
    found: list[dict[str, Any]] = [dict(row) for row in wanted]
    place = data.draw(st.integers(0, len(found) - 1))
    change = data.draw(st.sampled_from(["gone", "twice", "null", "other", "column", "moved"]))
    if change == "gone":
        del found[place]
    elif change == "twice":
        found.append(found[place])
    elif change == "null":
        found[place]["word"] = None
    elif change == "other":
        found[place]["price"] += 0.5
    elif change == "column":
        found[place]["more"] = 1
    else:
        found[place]["id"] = 1000
    assert describe_row_difference(case(), found, wanted) != ""


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "it returned no rows"),
        (7, "it did not return rows"),
        ([1], "it did not return rows"),
        ([], "0 rows instead of 2 (missing: 0, 1)"),
        (list(rows(1)), "1 row instead of 2 (missing: 0)"),
        (list(rows(0, 1, 3)), "3 rows instead of 2 (unexpected: 3)"),
        (list(rows(0, 0, 1)), "3 rows instead of 2 (twice: 0)"),
        ([{"id": 0}, {"id": 1}], "columns id instead of id, price, word"),
        ([*rows(0), {"id": None, "word": "w1", "price": 0.5}], "id is null instead of 0"),
    ],
)
def test_what_is_wrong_is_said(found: Any, why: str) -> None:
    assert why in describe_row_difference(case(), found, list(rows(0, 1)))


@pytest.mark.parametrize(
    ("found", "wanted", "kind", "equal"),
    [
        (1, 1, "long", True),
        (1.0, 1, "long", True),
        ("1", 1, "long", True),
        ("1.50", 1.5, "double", True),
        (True, 1, "long", False),
        (1, True, "boolean", False),
        ("x", 1, "long", False),
        (None, 0, "long", False),
        (0, None, "long", False),
        (None, None, "long", True),
        ("2026-01-01T00:00:05", "2026-01-01T00:00:05", "timestamp_ntz", True),
        ("2026-01-01 00:00:05.000", "2026-01-01T00:00:05", "timestamp_ntz", True),
        ("2026-01-01T00:00:05+00:00", "2026-01-01T00:00:05", "timestamp", True),
        ("2026-01-01T01:00:05+01:00", "2026-01-01T00:00:05", "timestamp", False),
        ("2026-01-01", "2026-01-01T00:00:00", "date", True),
        ("2026-01-02", "2026-01-01T00:00:00", "date", False),
        ("0E-10", "0E-10", "decimal(38,10)", True),
        ("0.0000000000", "0E-10", "decimal(38,10)", True),
        (5.0, "5.0000000000", "decimal(38,10)", True),
        ("5.1", "5.0000000000", "decimal(38,10)", False),
        ("five", "5.0000000000", "decimal(38,10)", False),
        ("nan", "nan", "double", True),
        ("NaN", "nan", "double", True),
        (float("nan"), "nan", "double", True),
        (3.0, "nan", "double", False),
        ("nan", 3.0, "double", False),
        ({"first": 1, "second": 2}, {"first": 1, "second": 2}, "struct", True),
        ([1, 2], {"first": 1, "second": 2}, "struct", True),
        ([2, 1], {"first": 1, "second": 2}, "struct", False),
        ("anything", ANY, "long", True),
        (None, ANY, "long", False),
        ('{"a": 1}', {"json": '{"a":1}', "metadata": "", "value": ""}, "variant", True),
        ({"a": 1}, {"json": '{"a":1}', "metadata": "", "value": ""}, "variant", True),
        ('{"a": 2}', {"json": '{"a":1}', "metadata": "", "value": ""}, "variant", False),
        ("{", {"json": '{"a":1}', "metadata": "", "value": ""}, "variant", False),
        (
            {"metadata": "0x0101000161", "value": "0x020100000c01"[:14]},
            {"json": '{"a":1}', "metadata": "", "value": ""},
            "variant",
            False,
        ),
        (
            {"metadata": "0x0101000161", "value": "0x02010000020c01"},
            {"json": '{"a":1}', "metadata": "other bytes", "value": "of the same"},
            "variant",
            True,
        ),
    ],
)
def test_values(found: Any, wanted: Any, kind: str, equal: bool) -> None:
    assert is_same_value(found, wanted, kind) is equal


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ([["id", "Int64"], ["word", "String"], ["price", "Float64"]], ""),
        ([["id", "bigint"], ["word", "large_string"], ["price", "f64"]], ""),
        ([["id", "Nullable(Int64)"], ["word", "Nullable(String)"], ["price", "double"]], ""),
        ([["id", "no such type"], ["word", "string"], ["price", "double"]], ""),
        ([["id", "int32"], ["word", "string"], ["price", "double"]], "id is int32 instead of long"),
        ([["word", "string"], ["id", "long"], ["price", "double"]], "columns word, id, price"),
        ([["id", "long"]], "columns id instead of id, word, price"),
        (None, "it returned no columns"),
        ([["id"]], "did not return columns"),
    ],
)
def test_schemas(found: Any, fault: str) -> None:
    told = describe_schema_difference(case(), found)
    assert (told == "") == (fault == "")
    assert fault in told


@given(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62))
def test_numbers(found: int, wanted: int) -> None:
    assert (describe_number_difference(found, wanted) == "") == (found == wanted)


def test_no_number_is_wrong() -> None:
    assert describe_number_difference(None, 20) == "nothing instead of 20"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_every_value_can_be_sent(value: Any) -> None:
    import json

    sent = json.loads(json.dumps(plain(value), allow_nan=False))
    assert plain(sent) == sent
