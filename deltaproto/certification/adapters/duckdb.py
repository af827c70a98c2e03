# /// script
# dependencies = ["duckdb=={version}", "duckdb-extension-delta=={version}", "pytz"]
# ///
"""DuckDB's delta extension: `delta_scan`, and an attached table for writes."""

import importlib.resources

import duckdb
from kit import literal, sql_type

PANICS = ("InternalException", "FatalException")
TYPES = {"timestamp": "timestamptz", "timestamp_ntz": "timestamp", "binary": "blob"}


def _connect():
    # The package contains the signed extension, which `INSTALL delta` would download.
    home = importlib.resources.files("duckdb_extension_delta") / "extensions"
    found = duckdb.connect()
    found.execute(f"load '{home / ('v' + duckdb.__version__) / 'delta.duckdb_extension'}'")
    return found


con = _connect()
VERSION = tuple(int(part) for part in duckdb.__version__.split(".")[:3])


def release():
    return duckdb.__version__


def _run(sql):
    global con
    try:
        found = con.execute(sql)
        return [column[0] for column in found.description or ()], found.fetchall()
    except (duckdb.InternalException, duckdb.FatalException):
        # After such an error, a database rejects every statement.
        con = _connect()
        raise


def _path(table):
    return "'" + table.replace("'", "''") + "'"


def _scan(table):
    return f"delta_scan({_path(table)})"


def _fetch(sql):
    names, found = _run(sql)
    return [dict(zip(names, row, strict=True)) for row in found]


def _number(sql):
    return _run(sql)[1][0][0]


class _Attached:
    """Attach the table as a separate database, and detach it afterwards."""

    def __init__(self, table):
        self.table = table

    def __enter__(self):
        _run(f"attach {_path(self.table)} as target (type delta)")

    def __exit__(self, *_):
        _run("detach database if exists target")


def rows(table, version=None, where=None):
    wanted = f" where {where.sql}" if where else ""
    if version is None:
        return _fetch(f"select * from {_scan(table)}{wanted}")
    with _Attached(table):
        return _fetch(f"select * from target at (version => {version}){wanted}")


def count(table):
    return _number(f"select count(*) from {_scan(table)}")


def total(table, column):
    return _number(f"select sum({column}) from {_scan(table)}")


def schema(table):
    return [row[:2] for row in _run(f"describe select * from {_scan(table)}")[1]]


if VERSION >= (1, 4, 0):

    def append(table, rows):
        names = ", ".join(f'"{name}"' for name in rows.names)
        types = [TYPES.get(kind, sql_type(kind)) for _, kind in rows.columns]
        values = ", ".join(
            "(" + ", ".join(map("cast({} as {})".format, map(literal, row), types)) + ")"
            for row in rows.tuples()
        )
        with _Attached(table):
            _run(f"insert into target ({names}) values {values}")


# In earlier versions, the statement succeeds and writes nothing.
if VERSION >= (1, 5, 1):

    def checkpoint(table):
        with _Attached(table):
            _run("checkpoint target")
