"""Columns of `delta.dataSkippingStatsColumns` and of CLUSTER BY, where SQL does not name them."""

from __future__ import annotations

from deltaproto.planning.predict.schema import Array, Atomic, Column, Map, Struct
from deltaproto.planning.predict.statistics import collected, renamed, without
from deltaproto.planning.predict.table import Table
from deltaproto.planning.statement import ClusterBy
from deltaproto.protocol.properties import INDEXED, STATISTICS, names_in
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
    assert ClusterBy(("nope",)).outcome(TABLE.with_schema(None), RUNNING).refusal is None


@each_row(
    ("configuration", "paths"),
    [
        ({}, {("id",), ("st", "a"), ("a.b",)}),
        ({INDEXED: "2"}, {("id",), ("st", "a")}),
        ({INDEXED: "-1"}, {("id",), ("st", "a"), ("a.b",)}),
        ({INDEXED: "0"}, set()),
        ({INDEXED: "0", STATISTICS: "ST, `A.B`"}, {("st", "a"), ("a.b",)}),
        ({STATISTICS: ""}, set()),
    ],
)
def test_which_columns_have_statistics(
    configuration: dict[str, str], paths: set[tuple[str, ...]]
) -> None:
    assert collected(TABLE.with_properties(configuration)) == paths


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
    assert names_in(text) == paths


def test_the_list_follows_its_columns() -> None:
    table = TABLE.with_properties({STATISTICS: "st.a, id"})
    after = renamed(table, ("st", "a"), ("n o", "z"))
    assert after.configuration == {STATISTICS: "`n o`.z,id"}
    # Measured with Delta Spark 4.4.0, which does not understand its own list any longer then.
    assert without(after, [("id",)]).configuration == {STATISTICS: "n o.z"}
