"""How column mapping leaves a table by property: as predicted, and as Spark does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.planning import mapping
from deltaproto.planning.outcome import Outcome, Rewrite
from deltaproto.planning.statement import SetProperties, Statement, UnsetProperties
from deltaproto.planning.table import MODE
from tests.planning import log_files
from tests.planning.oracle import agree, execute, look, newest
from tests.support.engines import RUNNING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
MAPPED = "tblproperties ('delta.columnMapping.mode' = 'name')"
OFF, UNSET = SetProperties({MODE: "none"}), UnsetProperties((MODE,))


def made(spark: SparkSession, path: str, more: str, columns: str = "id bigint, c int") -> str:
    table = f"delta.`{path}`"
    spark.sql(f"create table {table} ({columns}) using delta {more}")
    spark.sql(f"insert into {table} values (1, 10)")
    return table


def done(spark: SparkSession, path: str, statement: Statement) -> Outcome:
    said = statement.outcome(look(path), RUNNING)
    agree(said, execute(spark, path, statement.sql(f"delta.`{path}`")))
    return said


@pytest.mark.parametrize("statement", [OFF, UNSET])
@pytest.mark.parametrize("more", ["", MAPPED])
def test_every_file_is_rewritten_whether_there_was_a_mapping_or_not(
    statement: Statement, more: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    made(spark, path, more)
    first = newest(path) + 1
    said = done(spark, path, statement)
    assert said.rewrites is Rewrite.ALL
    assert len(log_files.rewritten(log_files.commits(path, first))) == 1
    assert look(path).configuration == said.table.configuration


def test_names_that_only_mapping_allows_keep_it(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    made(spark, path, MAPPED, "id bigint, `a b` int")
    for statement in (OFF, UNSET):
        refusal = done(spark, path, statement).refusal
        assert refusal is not None
        assert "a b" in refusal.message


def test_in_capitals_none_makes_every_value_null(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    table = made(spark, path, MAPPED)
    said = done(spark, path, SetProperties({MODE: "NONE"}))
    assert said.warnings == (mapping.MISREAD,)
    assert [tuple(row) for row in spark.sql(f"select * from {table}").collect()] == [(None, None)]


def test_a_clustered_table_is_broken_by_it(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    table = made(spark, path, f"cluster by (id) {MAPPED}")
    assert done(spark, path, OFF).warnings == (mapping.CLUSTERED,)
    assert execute(spark, path, f"optimize {table}").error is not None
