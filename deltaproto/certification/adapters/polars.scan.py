# /// script
# dependencies = ["polars=={version}", "deltalake", "pyarrow", "packaging"]
# ///
"""Polars' lazy path: `scan_delta` with filter and column pushdown, and `sink_delta`."""

import operator

import polars as pl
from kit import NotOffered

OPS = {"=": operator.eq, ">=": operator.ge, "<": operator.lt}


def release():
    return pl.__version__


def _scan(table, version=None):
    return pl.scan_delta(table) if version is None else pl.scan_delta(table, version=version)


def _compare(where):
    try:
        value = pl.lit(where.value)
    except TypeError:
        # Early releases have no literals of decimals.
        raise NotOffered from None
    return OPS[where.op](pl.col(where.column), value)


def rows(table, version=None, where=None):
    found = _scan(table, version)
    if where is not None:
        found = found.filter(_compare(where))
    return found.collect()


def count(table):
    return _scan(table).select(pl.len()).collect().item()


def total(table, column):
    return _scan(table).select(pl.col(column).sum()).collect().item()


def schema(table):
    found = _scan(table)
    found = found.collect_schema() if hasattr(found, "collect_schema") else found.schema
    return [(name, str(kind)) for name, kind in found.items()]


if hasattr(pl.LazyFrame, "sink_delta"):

    def append(table, rows):
        pl.from_arrow(rows.arrow()).lazy().sink_delta(table, mode="append")

    def overwrite(table, rows):
        pl.from_arrow(rows.arrow()).lazy().sink_delta(table, mode="overwrite")
