"""Columns of `delta.dataSkippingStatsColumns` and of CLUSTER BY, where SQL does not name them."""

from __future__ import annotations

from deltaproto.planning.predict.schema import Array, Atomic, Column, Map, Struct
from deltaproto.planning.predict.statistics import (
    remove_columns,
    rename_column,
    statistics_columns,
    validate_statistics_columns,
)
from deltaproto.planning.predict.table import Table
from deltaproto.planning.statement import ClusterBy
from deltaproto.protocol.properties import (
    INDEXED_COLUMNS_PROPERTY,
    STATISTICS_COLUMNS_PROPERTY,
    parse_column_names,
)
from deltaproto.protocol.protocol import Protocol
from tests.support.engines import RUNNING
from tests.support.failures import each_row

SCHEMA = Struct(
    (
        Column("id", Atomic("long")),
        Column("st", Struct((Column("a", Atomic("integer")), Column("b", Atomic("binary"))))),
        Column("a.b", Atomic("string")),
        Column("ar", Array(Atomic("integer"))),
        Column("m", Map(Atomic("string"), Atomic("integer"))),
        Column("ok", Atomic("boolean")),
    )
)
TABLE = Table(Protocol(1, 2)).with_schema(SCHEMA)
UNKNOWN = "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"
TYPE = "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"


@each_row(
    ("columns", "error"),
    [
        (("id",), None),
        (("st.a",), None),
        (("`a.b`",), None),
        (("nope",), UNKNOWN),
        (("a.b",), UNKNOWN),
        (("st.nope",), UNKNOWN),
        (("m.key",), UNKNOWN),
        (("ar.element",), UNKNOWN),
        (("id", "ID"), "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"),
        (("st",), TYPE),
        (("st.b",), TYPE),
        (("ok",), TYPE),
        (("m",), TYPE),
        (("id", "st.a", "`a.b`", "ok", "st.b"), "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
    ],
)
def test_columns_of_an_option_are_judged_like_those_of_a_statement(
    columns: tuple[str, ...], error: str | None
) -> None:
    refusal = ClusterBy(columns).outcome(TABLE, RUNNING).refusal
    assert (refusal.error if refusal else None) == error


def test_nothing_is_claimed_about_columns_that_are_not_known() -> None:
    unknown = TABLE.with_schema(None)
    assert ClusterBy(("nope",)).outcome(unknown, RUNNING).refusal is None
    named = unknown.with_properties({STATISTICS_COLUMNS_PROPERTY: "nope"})
    assert validate_statistics_columns(named) is None
    known = TABLE.with_properties({STATISTICS_COLUMNS_PROPERTY: "nope"})
    assert validate_statistics_columns(known) is not None


@each_row(
    ("configuration", "paths"),
    [
        ({}, {("id",), ("st", "a"), ("a.b",)}),
        ({INDEXED_COLUMNS_PROPERTY: "2"}, {("id",), ("st", "a")}),
        ({INDEXED_COLUMNS_PROPERTY: "-1"}, {("id",), ("st", "a"), ("a.b",)}),
        ({INDEXED_COLUMNS_PROPERTY: "0"}, set()),
        (
            {INDEXED_COLUMNS_PROPERTY: "0", STATISTICS_COLUMNS_PROPERTY: "ST, `A.B`"},
            {("st", "a"), ("a.b",)},
        ),
        ({STATISTICS_COLUMNS_PROPERTY: ""}, set()),
    ],
)
def test_which_columns_have_statistics(
    configuration: dict[str, str], paths: set[tuple[str, ...]]
) -> None:
    assert statistics_columns(TABLE.with_properties(configuration)) == paths


@each_row(
    ("text", "paths"),
    [
        ("a, `b c`.d ,e", (("a",), ("b c", "d"), ("e",))),
        ("", ()),
        ("`a``b`", (("a`b",),)),
        ("select", (("select",),)),
        ("a b", (("a",),)),
        ("a;b", (("a",),)),
        *((text, None) for text in (",", "a,", "1", ".a", "`a", "a-b", "*", "-")),
    ],
)
def test_a_list_of_columns_is_read_as_spark_reads_it(
    text: str, paths: tuple[tuple[str, ...], ...] | None
) -> None:
    assert parse_column_names(text) == paths


def test_the_list_follows_its_columns() -> None:
    table = TABLE.with_properties({STATISTICS_COLUMNS_PROPERTY: "st.a, id"})
    after = rename_column(table, ("st", "a"), ("n o", "z"))
    assert after.configuration == {STATISTICS_COLUMNS_PROPERTY: "`n o`.z,id"}
    # Measured with Delta Spark 4.4.0, which does not understand its own list any longer then.
    assert remove_columns(after, [("id",)]).configuration == {STATISTICS_COLUMNS_PROPERTY: "n o.z"}
