# /// script
# dependencies = ["chdb=={version}", "pyarrow", "pandas"]
# ///
"""ClickHouse as chdb, with the table function `deltaLakeLocal`."""

import os

import chdb
from chdb.session import Session
from kit import literal

# Local tables must be below the working directory.
os.chdir("/")
session = Session()


def _fetch(sql):
    return session.query(sql, "ArrowTable")


def _names(sql):
    return {row["name"] for row in _fetch(sql).to_pylist()}


FUNCTIONS = _names("select name from system.table_functions where name ilike 'deltaLake%'")
SETTINGS = _names("select name from system.settings where name ilike '%delta_lake%'")
WRITES = sorted(SETTINGS & {"allow_delta_lake_writes", "allow_experimental_delta_lake_writes"})


def release():
    return chdb.__version__


def _table(path):
    return "deltaLakeLocal('" + path.replace("\\", "\\\\").replace("'", "\\'") + "')"


if "deltaLakeLocal" in FUNCTIONS:

    def rows(table, version=None, where=None):
        sql = f"select * from {_table(table)}" + (f" where {where.sql}" if where else "")
        if version is not None:
            sql += f" settings delta_lake_snapshot_version = {version}"
        return _fetch(sql)

    def count(table):
        return _fetch(f"select count() as n from {_table(table)}").to_pylist()[0]["n"]

    def total(table, column):
        return _fetch(f"select sum({column}) as n from {_table(table)}").to_pylist()[0]["n"]

    def schema(table):
        found = _fetch(f"describe table {_table(table)}").to_pylist()
        return [(row["name"], row["type"]) for row in found]


if WRITES:

    def append(table, rows):
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows.tuples())
        session.query(
            f"insert into table function {_table(table)} ({', '.join(rows.names)}) "
            f"settings {WRITES[0]} = 1 values {values}"
        )
