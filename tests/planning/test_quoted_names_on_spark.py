"""Dropping columns of a layout whose names Spark quotes: as predicted, and as Spark does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planning.oracle import agree, came_true, execute, look, predict
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

pytestmark = needs_delta("4.1", "Spark 4, which also quotes names that begin with a digit")
MAPPED = "tblproperties ('delta.columnMapping.mode' = 'name')"
NAMES = ("c", "A_b", "a b", "ä", "1a", "12", "c.d", "c`.d")


@pytest.mark.parametrize("layout", ["cluster by", "partitioned by"])
@pytest.mark.parametrize("name", NAMES)
def test_whether_a_column_of_the_layout_can_be_dropped(
    name: str, layout: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path, quoted = str(tmp_path / "t"), f"`{name.replace('`', '``')}`"
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"create table {table} (id bigint, {quoted} int) using delta {layout} ({quoted}) {MAPPED}"
    )
    sql = f"alter table {table} drop column {quoted}"
    _, said = predict(path, sql)
    agree(said, execute(delta_spark, path, sql))
    came_true(said, look(path), sql)
    if said.refusal is None:
        optimize = f"optimize {table}"
        _, said = predict(path, optimize)
        agree(said, execute(delta_spark, path, optimize))
