# /// script
# dependencies = [
#   "daft=={version}", "deltalake", "pyarrow", "packaging", "pyiceberg",
# ]
# ///
"""Daft's own reader and writer: `read_deltalake` and `DataFrame.write_deltalake`."""

import operator

import daft

OPS = {"=": operator.eq, ">=": operator.ge, "<": operator.lt}


def release():
    return daft.__version__


def _read(table, version=None):
    return daft.read_deltalake(table) if version is None else daft.read_deltalake(table, version)


def rows(table, version=None, where=None):
    found = _read(table, version)
    if where is not None:
        found = found.where(OPS[where.op](daft.col(where.column), where.value))
    return found.to_pylist()


def count(table):
    return _read(table).count_rows()


def total(table, column):
    return _read(table).sum(column).to_pylist()[0][column]


def schema(table):
    return [(field.name, str(field.dtype)) for field in _read(table).schema()]


def append(table, rows):
    daft.from_arrow(rows.arrow()).write_deltalake(table, mode="append")


def overwrite(table, rows):
    daft.from_arrow(rows.arrow()).write_deltalake(table, mode="overwrite")
