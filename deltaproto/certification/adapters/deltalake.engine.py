# /// script
# dependencies = ["deltalake=={version}", "pyarrow"]
# ///
"""deltalake's own engine: DataFusion SQL in `QueryBuilder`, the Rust writer and operations."""

import inspect

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from kit import literal


def release():
    return deltalake.__version__


def _open(table, version=None):
    return DeltaTable(table) if version is None else DeltaTable(table, version=version)


def schema(table):
    return [(field.name, field.type.type) for field in _open(table).schema().fields]


if hasattr(deltalake, "QueryBuilder"):

    def _query(sql, table, version=None):
        found = deltalake.QueryBuilder().register("t", _open(table, version)).execute(sql)
        if hasattr(found, "fetchall"):
            found = found.fetchall()
        if isinstance(found, list):
            return [row for batch in found for row in batch.to_pylist()]
        return pa.table(found.read_all()).to_pylist()

    def rows(table, version=None, where=None):
        clause = "" if where is None else f"where {where.sql}"
        return _query(f"select * from t {clause}", table, version)

    def count(table):
        return _query("select count(*) as n from t", table)[0]["n"]

    def total(table, column):
        return _query(f"select sum({column}) as n from t", table)[0]["n"]


# Before 0.13, pyarrow's is the only writer, then one of two, and since 1.0 it is gone.
_CHOICE = "engine" in inspect.signature(write_deltalake).parameters
_ENGINE = {"engine": "rust"} if _CHOICE else {}

if _CHOICE or not deltalake.__version__.startswith("0."):

    def append(table, rows):
        write_deltalake(table, rows.arrow(), mode="append", **_ENGINE)

    def overwrite(table, rows):
        write_deltalake(table, rows.arrow(), mode="overwrite", **_ENGINE)


if hasattr(DeltaTable, "delete"):

    def delete(table, where):
        _open(table).delete(where.sql)


if hasattr(DeltaTable, "update"):

    def update(table, where, column, value):
        _open(table).update(updates={column: literal(value)}, predicate=where.sql)


if hasattr(DeltaTable, "merge"):

    def merge(table, rows, column):
        (
            _open(table)
            .merge(rows.arrow(), f"t.{column} = s.{column}", source_alias="s", target_alias="t")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )


def optimize(table):
    _open(table).optimize.compact()


def checkpoint(table):
    _open(table).create_checkpoint()


def vacuum(table):
    _open(table).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


if hasattr(getattr(deltalake.table, "TableAlterer", None), "set_table_properties"):

    def configure(table, key, value):
        _open(table).alter.set_table_properties({key: value})
