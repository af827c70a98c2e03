"""Quoting: whatever a name or a text holds, Spark reads the same back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.location import locate
from deltaproto.sql.quoting import quote_identifier, quote_literal, split_name, sql_table_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NASTY = st.text(
    st.one_of(
        st.sampled_from(list("`'\"\\;-/*$.{}\n\t ab%")),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    ),
    min_size=1,
    max_size=12,
)


@given(st.lists(NASTY, min_size=1, max_size=3))
def test_parts_of_a_name_come_back(parts: list[str]) -> None:
    assert split_name(".".join(map(quote_identifier, parts))) == parts


@given(NASTY)
def test_nothing_leaves_its_quotes(text: str) -> None:
    inside = quote_identifier(text)[1:-1]
    assert "`" not in inside.replace("``", "")
    body = quote_literal(text)[1:-1].replace("\\\\", "").replace("\\'", "")
    assert "'" not in body
    assert "${" not in body


def test_names_and_paths() -> None:
    assert sql_table_name(locate("main.sales.orders")) == "`main`.`sales`.`orders`"
    assert sql_table_name(locate("main.`odd.name`")) == "`main`.`odd.name`"
    assert sql_table_name(locate("s3://bucket/a`b")) == "delta.`s3://bucket/a``b`"
    assert sql_table_name(locate("/tmp/x y")) == "delta.`/tmp/x y`"


@pytest.mark.spark
@settings(max_examples=40)
@given(st.lists(NASTY, min_size=8, max_size=8))
def test_spark_reads_the_same_back(spark: SparkSession, texts: list[str]) -> None:
    columns = ", ".join(f"{quote_literal(text)} as c{i}" for i, text in enumerate(texts))
    assert list(spark.sql(f"select {columns}").collect()[0]) == texts


@pytest.mark.spark
@settings(max_examples=40)
@given(NASTY.filter(lambda text: "${" not in text))
def test_spark_takes_any_name(spark: SparkSession, name: str) -> None:
    assert spark.sql(f"select 1 as {quote_identifier(name)}").columns == [name]
