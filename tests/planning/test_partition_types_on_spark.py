"""Partition columns that Spark refuses in a new definition: as predicted, and as Spark does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planning.oracle import agree, execute, predict
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta
from tests.support.failures import collect_failures

TYPES = (
    *("string collate utf8_lcase", "string collate unicode", "string collate utf8_binary"),
    *("variant", "void", "array<int>", "char(3)", "interval year to month", "binary"),
)
DEFINITIONS = (
    *(f"(id int, c {kind}) using delta partitioned by (c)" for kind in TYPES),
    "(c string) using delta partitioned by (c)",
    "(id int, c string) using delta partitioned by (nope)",
    "(id int, c string) using delta partitioned by (c, c)",
    "(id int, c string, c int) using delta partitioned by (c)",
)


@needs_delta("4.4", "the order of its checks")
@pytest.mark.parametrize("layout", ["cluster by (id)", "partitioned by (c)"])
def test_a_definition_is_refused_as_predicted(
    layout: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    delta_spark.sql(f"create table {table} (id bigint, c string) using delta {layout}")
    with collect_failures() as failures:
        for definition in DEFINITIONS:
            for begin in ("create or replace", "replace"):
                statement = f"{begin} table {table} {definition}"
                with failures.of(statement):
                    _, said = predict(path, statement)
                    agree(said, execute(delta_spark, path, statement))
