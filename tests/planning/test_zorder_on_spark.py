"""OPTIMIZE … ZORDER BY columns without statistics, of other types, or that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planning.oracle import agree, execute, predict
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

COLUMNS = (
    "i int, st struct<a: int, b: string, v: variant>, ar array<struct<e: int>>, "
    "m map<string, int>, v variant, n void, bo boolean, s string, p int"
)
ROW = (
    "insert into {t} (i, st, ar, m, v, bo, s, p) select 1, named_struct('a', 1, 'b', 'x', 'v', "
    "parse_json('1')), array(named_struct('e', 1)), map('k', 1), parse_json('1'), true, 'x', 1"
)
ORDERS = (
    *("i", "I", "`i`", "i.x", "st", "st.a", "ST.B", "st.v", "st.nope", "`st.a`", "ar", "ar.e"),
    *("ar.element", "ar.element.e", "m", "m.key", "m.a", "v", "v.x", "n", "bo", "s", "p", "P"),
    *("nope", "i, st.a", "i, p", "p, nope", "i, nope, p", "i, i"),
)
# By name: a property, and whether the table has a row.
TABLES = {
    "empty": ("", False),
    "every column": ("", True),
    "two columns": ("'delta.dataSkippingNumIndexedCols' = '2'", True),
    "no columns": ("'delta.dataSkippingNumIndexedCols' = '0'", True),
    "named columns": ("'delta.dataSkippingStatsColumns' = 'st.a,s'", True),
}


@needs_delta("4.4", "types and checks of this release")
@pytest.mark.parametrize("name", TABLES)
def test_each_order_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    properties, filled = TABLES[name]
    clause = f"tblproperties ({properties})" if properties else ""
    table = f"delta.`{path}`"
    delta_spark.sql(f"create table {table} ({COLUMNS}) using delta partitioned by (p) {clause}")
    if filled:
        delta_spark.sql(ROW.format(t=table))
    unsure = set()
    for order in ORDERS:
        sql = f"optimize {table} zorder by ({order})"
        _, said = predict(path, sql)
        happened = execute(delta_spark, path, sql)
        if said.refusal is None or said.refusal.sure:
            agree(said, happened)
        else:
            assert happened.error == (said.refusal.error if filled else None), order
            unsure.add(order)
    everything = {"st", "st.v", "m", "v"}
    assert unsure == {"two columns": {"st"}, "named columns": {"st"}}.get(
        name, set() if name == "no columns" else everything
    )
