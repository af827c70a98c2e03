"""Statistics that Delta Spark stores, and filters on deltalake's pyarrow datasets."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds

from deltaproto.clients.model import Verdict
from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.file_statistics import MISREAD_BOUNDS
from deltaproto.tables.log.reader import LogReader
from tests.clients.test_filtered_reads import verdict
from tests.recording.delta_spark import DeltaSpark, LiveDeltaSpark

COLUMNS, BOOLEANS, _, NAN, EXPONENTS = MISREAD_BOUNDS
ROW = "select 1 id, true flag, double('NaN') ratio, cast(0 as decimal(20,10)) amount, 'a' text"
FILTERS = {
    COLUMNS: ds.field("later").is_null(),
    BOOLEANS: ds.field("flag") == ds.scalar(True),
    NAN: ds.field("ratio") == 2.5,
    EXPONENTS: ds.field("amount") == pa.scalar(Decimal(0), pa.decimal128(20, 10)),
}


def test_delta_spark_stores_bounds_that_are_misread(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"

    def shown() -> set[Trace]:
        traces = LogReader(every_commit=True).read(path).traces
        return {trace for trace in MISREAD_BOUNDS if traces[trace]}

    def compare(expected: set[Trace]) -> None:
        assert shown() == expected
        assert verdict(path) is (Verdict.WRONG if expected else Verdict.OK)
        if isinstance(delta_spark, LiveDeltaSpark):
            data = deltalake.DeltaTable(path).to_pyarrow_dataset()
            rows = data.to_table()
            lost = {
                trace
                for trace, each in FILTERS.items()
                if trace is not COLUMNS or "later" in rows.column_names
                if data.to_table(filter=each).num_rows != rows.filter(each).num_rows
            }
            assert lost == expected

    one_file = f"select /*+ coalesce(1) */ * from ({ROW} union all {two('2.5')})"
    delta_spark.sql(f"create table {table} using delta as {one_file}")
    compare({BOOLEANS, NAN, EXPONENTS})
    delta_spark.sql(f"insert overwrite {table} {two('2.5', 'null')}")
    compare({EXPONENTS})
    delta_spark.sql(f"alter table {table} add columns (later int)")
    compare({COLUMNS, EXPONENTS})
    delta_spark.sql(
        f"alter table {table} set tblproperties ('delta.dataSkippingStatsColumns' = 'id,text')"
    )
    compare(set())


def two(ratio: str, flag: str = "false") -> str:
    return f"select 2, cast({flag} as boolean), double({ratio}), cast(0 as decimal(20,10)), 'b'"
