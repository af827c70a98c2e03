"""deltalake, as it is installed for the tests: the measure for those that are wrong on purpose."""

import deltalake
import pyarrow as pa


def release():
    return deltalake.__version__


def _query(sql, table, version=None):
    opened = deltalake.DeltaTable(table, version=version)
    return pa.table(deltalake.QueryBuilder().register("t", opened).execute(sql)).to_pylist()


def rows(table, version=None, where=None):
    return _query("select * from t" + (f" where {where.sql}" if where else ""), table, version)


def count(table):
    return _query("select count(*) as n from t", table)[0]["n"]


def total(table, column):
    return _query(f"select sum({column}) as n from t", table)[0]["n"]


def schema(table):
    fields = deltalake.DeltaTable(table).schema().fields
    return [(field.name, getattr(field.type, "type", str(field.type))) for field in fields]


def append(table, rows):
    deltalake.write_deltalake(table, rows.arrow(), mode="append")


def delete(table, where):
    deltalake.DeltaTable(table).delete(where.sql)


def optimize(table):
    deltalake.DeltaTable(table).optimize.compact()
