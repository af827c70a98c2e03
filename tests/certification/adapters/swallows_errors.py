"""Never fails: what goes wrong is an empty answer, and a write that did not happen a success."""

import contextlib

import deltalake
import pyarrow as pa


def rows(table, version=None, where=None):
    try:
        opened = deltalake.DeltaTable(table, version=version)
        sql = "select * from t" + (f" where {where.sql}" if where else "")
        return pa.table(deltalake.QueryBuilder().register("t", opened).execute(sql)).to_pylist()
    except Exception:
        return []


def append(table, rows):
    with contextlib.suppress(Exception):
        deltalake.write_deltalake(table, rows.arrow(), mode="append")
