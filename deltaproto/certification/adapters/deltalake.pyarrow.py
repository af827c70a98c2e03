# /// script
# dependencies = ["deltalake=={version}", "pyarrow"]
# ///
"""deltalake's pyarrow path: `to_pyarrow_dataset`, which pandas, Polars and DuckDB users take."""

import inspect
import operator

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

OPERATORS = {"=": operator.eq, ">=": operator.ge, "<": operator.lt}


def release():
    return deltalake.__version__


def _dataset(table, version=None):
    opened = DeltaTable(table) if version is None else DeltaTable(table, version=version)
    return opened.to_pyarrow_dataset()


def rows(table, version=None, where=None):
    wanted = where and OPERATORS[where.op](pc.field(where.column), where.value)
    return _dataset(table, version).to_table(filter=wanted)


def count(table):
    return _dataset(table).count_rows()


def total(table, column):
    return pc.sum(_dataset(table).to_table(columns=[column])[column]).as_py()


def schema(table):
    return [(field.name, str(field.type)) for field in _dataset(table).schema]


# Before 0.13, pyarrow's is the only writer, then one of two, and since 1.0 it is gone.
_CHOICE = "engine" in inspect.signature(write_deltalake).parameters
_ENGINE = {"engine": "pyarrow"} if _CHOICE else {}

if _CHOICE or deltalake.__version__.startswith("0."):

    def _write(table, rows, mode):
        # This writer requires columns as declared, including NOT NULL. `from_pylist` does not
        # check for nulls, so a forbidden one is left for the client to detect.
        known = DeltaTable(table).schema().to_pyarrow()
        declared = pa.schema([known.field(name) for name in rows.names])
        data = pa.Table.from_pylist(rows.values, schema=declared)
        write_deltalake(table, data, mode=mode, **_ENGINE)

    def append(table, rows):
        _write(table, rows, "append")

    def overwrite(table, rows):
        _write(table, rows, "overwrite")
