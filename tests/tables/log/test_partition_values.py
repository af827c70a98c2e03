"""Partition values that do not fit the types of their columns, compared with deltalake."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.reader import LogReader
from tests.support.failures import collect_failures, each_row
from tests.support.logs import Log, add, column, metadata, protocol, schema_string

FITTING = {
    "byte": ["-128", "+1", "01"],
    "integer": ["1", "-1", "2147483647"],
    "long": ["-9223372036854775808"],
    "decimal(10,2)": ["1.50", "-1.50", "12345678.90", "1E-2"],
    "decimal(2,2)": ["0.50"],
    "decimal(10,0)": ["1", "-1"],
    "double": ["1", "1.5", "-1.5e10", "NaN", "inf", "-Infinity", ".5", "1.", "1E10"],
    "boolean": ["true", "False"],
    "date": ["2026-01-02", "2026-1-2"],
    "timestamp": [
        *("2026-01-02 03:04:05", "2026-01-02 03:04:05.1", "2026-01-02T03:04:05.000000Z"),
        *("2026-01-02 03:04:05Z", "2026-01-02T03:04:05+02:00"),
    ],
    "timestamp_ntz": ["2026-01-02 03:04:05"],
    "string": ["0.-1", ""],
}
MISFITS = {
    "byte": ["1000"],
    "integer": [" 1", "1.0", "1e3", "abc", "0x1", "21474836470", "\u0661"],
    "decimal(10,2)": ["0.-1", "-1.-50", "1.505", ".5", "1,5", "123456789.00", "NaN", "+1.5"],
    "double": ["1d", "abc"],
    "boolean": ["1", "yes"],
    "date": ["20260102", "2026-01-02 00:00:00", "10000-01-01"],
    "timestamp": ["2026-01-02", "2026-01-02T03:04:05", "1704067200000000"],
    "timestamp_ntz": ["2026-01-02T03:04:05Z", "abc"],
}
NARROWER = {"decimal(10,2)": ["1", "1.5", "-1.5"], "timestamp_ntz": ["2026-01-02"]}


def make(log: Log, kind: str, value: str, *, in_checkpoint: bool = False) -> None:
    """Write a table with two rows in the partition of this value."""
    file = log.root / "f.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), file)
    ntz = ["timestampNtz"] if kind == "timestamp_ntz" else None
    schema = schema_string(column("id"), column("p", kind))
    actions = (
        protocol(3, 7, ntz, ntz) if ntz else protocol(1, 2),
        metadata({}, schema, partition_columns=["p"]),
        add("f.parquet", partitionValues={"p": value}, size=file.stat().st_size),
    )
    log.commit(0, *actions)
    if in_checkpoint:
        log.checkpoint(0, *actions)


def seen(log: Log) -> tuple[bool | None, bool | None]:
    traces = LogReader(every_commit=True).read(log.table).traces
    return traces.get(Trace.MISFIT_VALUES), traces.get(Trace.UNWIDENED_VALUES)


def is_readable(log: Log) -> bool:
    try:
        QueryBuilder().register("t", DeltaTable(log.table)).execute("select * from t").read_all()
    except DeltaError:
        return False
    return True


def is_readable_by_pyarrow(log: Log) -> bool:
    try:
        DeltaTable(log.table).to_pyarrow_dataset()
    except pa.ArrowInvalid:
        return False
    return True


@pytest.mark.parametrize(
    ("values", "shown"),
    [(FITTING, (False, False)), (MISFITS, (True, False)), (NARROWER, (False, True))],
    ids=["fitting", "misfits", "narrower"],
)
def test_deltalake_reads_the_values_that_fit(
    tmp_path: Path, values: dict[str, list[str]], shown: tuple[bool, bool]
) -> None:
    rows = [(kind, value) for kind, found in values.items() for value in found]
    with collect_failures() as failures:
        for number, (kind, value) in enumerate(rows):
            with failures.of(kind, repr(value)):
                log = Log(tmp_path / str(number))
                make(log, kind, value)
                assert seen(log) == shown
                assert is_readable(log) is not any(shown)


def test_a_checkpoint_shows_the_values_of_decimals(tmp_path: Path) -> None:
    log = Log(tmp_path / "t")
    make(log, "decimal(10,2)", "-1.-50", in_checkpoint=True)
    log.path(0, ".json").unlink()
    log.commit(1)
    assert seen(log) == (True, False)


@each_row(
    ("kind", "value"),
    [("decimal(10,2)", "-1.50"), ("decimal(10,2)", "1.50"), ("decimal(10,0)", "-1")],
)
def test_pyarrow_cannot_read_negative_decimals(tmp_path: Path, kind: str, value: str) -> None:
    log = Log(tmp_path / f"{kind} {value}")
    make(log, kind, value)
    negative = LogReader().read(log.table).traces[Trace.NEGATIVE_DECIMALS]
    assert is_readable_by_pyarrow(log) is not negative


def test_deltalake_stores_negative_decimals_that_it_cannot_read(log: Log) -> None:
    row = pa.table({"id": [1], "p": pa.array([Decimal("-1.50")], pa.decimal128(10, 2))})
    with pytest.raises(DeltaError, match=r"Failed to parse value '-1\.-50'"):
        write_deltalake(log.table, row, partition_by=["p"])
    assert seen(log) == (True, False)
