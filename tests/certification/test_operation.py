"""What is asked, and what a table must hold afterwards."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.certification.adapter_server import Comparison
from deltaproto.certification.fixtures.case import Filter
from deltaproto.certification.fixtures.recipe import ANY, DOUBLED, FeatureEvidence
from deltaproto.certification.fixtures.recipes import recipes
from deltaproto.certification.operation import (
    build_requests,
    expected_changes,
    operations_for,
    rows_after,
)
from deltaproto.clients.measurement import ResultColumn
from deltaproto.clients.requirements import OF_FILTERED_READS
from deltaproto.protocol import feature_catalog
from tests.certification.made import SCHEMA, case

CHANGING = (ResultColumn.APPEND, ResultColumn.OVERWRITE, ResultColumn.DELETE, ResultColumn.UPDATE)
IDS = st.sets(st.integers(0, 40), min_size=1).map(sorted).map(tuple)


@given(IDS, st.sampled_from([*CHANGING, ResultColumn.MERGE]))
def test_a_change_feed_leads_from_before_to_after(
    ids: tuple[int, ...], operation: ResultColumn
) -> None:
    table = case(ids=ids)
    after = sorted(row["id"] for row in rows_after(table, operation))
    left = set(ids)
    for kind, number in expected_changes(table, operation):
        if kind == "delete":
            left.discard(number)
    left |= {number for kind, number in expected_changes(table, operation) if kind == "insert"}
    assert sorted(left) == after
    assert len(after) == len(set(after))


@pytest.mark.parametrize("operation", list(ResultColumn))
def test_what_only_reads_or_maintains_keeps_every_row(operation: ResultColumn) -> None:
    table = case(omitted={"price": ANY})
    kept = rows_after(table, operation) == list(table.rows)
    adding = (ResultColumn.APPEND_OMITTING, ResultColumn.MERGE)
    assert kept == (operation not in (*CHANGING, *adding))


def test_a_filter_is_one_request_for_each_comparison() -> None:
    found = list(build_requests(case(), ResultColumn.FILTER))
    assert [request.arguments["where"] for request in found] == [
        {"column": "id", "op": ">=", "value": 10, "type": "long"}
    ]


def test_a_filter_of_a_decimal_column_has_a_decimal_of_its_scale() -> None:
    schema = (*SCHEMA, ("cost", "decimal(20,10)"))
    table = case(schema=schema, filters=(Filter("cost", "=", 5, ()),))
    (request,) = build_requests(table, ResultColumn.FILTER)
    where = Comparison(**request.arguments["where"])
    assert (where.value, str(where.value)) == (Decimal(5), "5.0000000000")
    assert where.sql == "cost = 5.0000000000"


def test_a_table_about_filters_is_only_read() -> None:
    for hazard in OF_FILTERED_READS:
        asked = operations_for(case(hazard=hazard, state=FeatureEvidence.LAYOUT))
        assert asked == (ResultColumn.ROWS, ResultColumn.FILTER)


def test_rows_to_write_have_every_column_of_the_table() -> None:
    schema = (*SCHEMA, ("twice", "long"), ("at", "timestamp_ntz"))
    table = case(schema=schema, fill={"twice": DOUBLED}, omitted={"twice": 600})
    (request,) = build_requests(table, ResultColumn.APPEND)
    assert request.arguments["rows"]["columns"] == [list(column) for column in schema]
    first, _ = request.arguments["rows"]["values"]
    assert first == {"id": 100, "word": "new", "price": 1.5, "twice": 200, "at": None}
    (request,) = build_requests(table, ResultColumn.APPEND_OMITTING)
    assert ["twice", "long"] not in request.arguments["rows"]["columns"]
    assert "twice" not in request.arguments["rows"]["values"][0]
    assert rows_after(table, ResultColumn.APPEND_OMITTING)[-1]["twice"] == 600


def test_a_table_about_its_protocol_is_asked_one_thing_of_each_kind() -> None:
    table = case(state=FeatureEvidence.LISTED, filters=(), past=None)
    asked = operations_for(table)
    assert [str(operation.access) for operation in asked] == ["read", "append", "dml", "maintain"]
    assert len(operations_for(case())) > 10


def test_every_feature_has_a_table() -> None:
    listed = {recipe.feature for recipe in recipes() if recipe.state is FeatureEvidence.LISTED}
    assert listed == {feature.name for feature in feature_catalog.all_features()}


def test_recipes_have_names_of_their_own() -> None:
    names = [recipe.name for recipe in recipes()]
    assert len(names) == len({name.casefold() for name in names})
    assert names == sorted(names)
    assert {f"protocol.{r}-{w}" for r in (1, 2) for w in range(1, 7)} <= set(names)


def test_every_operation_is_asked_somewhere() -> None:
    whole = case(omitted={"price": 1.0}, violating={"price": -1})
    assert set(operations_for(whole)) == set(ResultColumn)
