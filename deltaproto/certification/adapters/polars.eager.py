# /// script
# dependencies = ["polars=={version}", "deltalake", "pyarrow", "packaging"]
# ///
"""Polars' eager path: `read_delta` and `DataFrame.write_delta`."""

import inspect
import operator

import polars as pl
from kit import NotOffered

OPS = {"=": operator.eq, ">=": operator.ge, "<": operator.lt}


def release():
    return pl.__version__


def _read(table, version=None, columns=None):
    if version is None:
        return pl.read_delta(table, columns=columns)
    return pl.read_delta(table, version=version, columns=columns)


def _compare(where):
    try:
        value = pl.lit(where.value)
    except TypeError:
        # Early releases have no literals of decimals.
        raise NotOffered from None
    return OPS[where.op](pl.col(where.column), value)


def rows(table, version=None, where=None):
    found = _read(table, version)
    if where is None:
        return found
    return found.filter(_compare(where))


def count(table):
    return _read(table).height


def total(table, column):
    return _read(table, columns=[column])[column].sum()


def schema(table):
    return [(name, str(kind)) for name, kind in _read(table).schema.items()]


def _frame(rows):
    return pl.from_arrow(rows.arrow())


def append(table, rows):
    _frame(rows).write_delta(table, mode="append")


def overwrite(table, rows):
    _frame(rows).write_delta(table, mode="overwrite")


if "delta_merge_options" in inspect.signature(pl.DataFrame.write_delta).parameters:

    def merge(table, rows, column):
        options = {
            "predicate": f"s.{column} = t.{column}",
            "source_alias": "s",
            "target_alias": "t",
        }
        (
            _frame(rows)
            .write_delta(table, mode="merge", delta_merge_options=options)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )
