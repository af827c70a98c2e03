"""Runs one adapter in the client's own Python, and processes requests on its standard streams.

Uses only the standard library, because it is started in the environment of the measured client. A
request is one line of JSON, `{"id", "operation", "table", …}`. So is the response,
`{"id", "answer"}` or `{"id", "failed": {"type", "message", "panic"}}`. What a client prints goes
to standard error.

Adapters are Python files with a function for each operation that the client supports. They import
the helpers below from the module `kit`:

    def release() -> str                                    version reported by the client
    def rows(table, version=None, where=None)               all, of a version, or filtered
    def count(table)                                        number of rows, without any column
    def total(table, column)                                the sum of a column
    def schema(table)                                       names and types of the columns
    def append(table, rows)                                 writes; `rows` is a `RowsToWrite`
    def overwrite(table, rows)
    def delete(table, where)                                `where` is a `Comparison`
    def update(table, where, column, value)
    def merge(table, rows, column)                          rows that match in `column` are replaced
    def optimize(table), checkpoint(table), vacuum(table)   vacuum removes all unneeded files
    def configure(table, key, value)                        sets a table property

An operation is not supported if its function is missing, raises `kit.NotOffered`, or lacks an
optional argument (`version`, `where`) of the request. Any other exception is a refusal, except for
the types in the adapter's `PANICS`, which are crashes.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import os
import sys
import types
from collections.abc import Callable
from decimal import Decimal
from typing import Any


class NotOffered(Exception):
    """The client lacks this operation, or does not support these arguments."""


class Comparison:
    """A comparison of a column with a value; `sql` is the equivalent SQL.

    The value is a bool, int, float or str; for a decimal column, a Decimal of the same scale.
    """

    def __init__(self, column: str, op: str, value: Any, type: str = "") -> None:
        self.column, self.op, self.value = column, op, value
        if type.startswith("decimal("):
            scale = int(type[:-1].split(",")[1])
            self.value = Decimal(str(value)).quantize(Decimal(1).scaleb(-scale))

    @property
    def sql(self) -> str:
        return f"{self.column} {self.op} {literal(self.value)}"


class RowsToWrite:
    """Rows to write: `values` as dicts, `columns` as (name, Delta type) in the table's order."""

    def __init__(self, values: list[dict[str, Any]], columns: list[Any]) -> None:
        self.values = values
        self.columns: list[tuple[str, Any]] = [tuple(column) for column in columns]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def tuples(self) -> list[tuple[Any, ...]]:
        return [tuple(row.get(name) for name in self.names) for row in self.values]

    def select(self, cast: str = "cast({value} as {type})") -> str:
        """Return the rows as SELECTs of literals, combined with UNION ALL."""
        return " union all ".join(
            "select "
            + ", ".join(
                cast.format(value=literal(row.get(name)), type=sql_type(kind)) + f" as {name}"
                for name, kind in self.columns
            )
            for row in self.values
        )

    def merge_clauses(self) -> str:
        """Return the clauses of a MERGE from `s` that updates and inserts these columns."""
        assigned = ", ".join(f"{name} = s.{name}" for name in self.names)
        values = ", ".join(f"s.{name}" for name in self.names)
        return (
            f"when matched then update set {assigned} "
            f"when not matched then insert ({', '.join(self.names)}) values ({values})"
        )

    def arrow(self) -> Any:
        """Return the rows as a pyarrow table."""
        import pyarrow as pa

        fields = [pa.field(name, arrow_type(kind)) for name, kind in self.columns]
        return pa.Table.from_pylist(self.values, schema=pa.schema(fields))


def literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def sql_type(kind: str) -> str:
    return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(
        kind, kind
    )


def arrow_type(kind: Any) -> Any:
    """Return the Arrow type of a Delta type: its name or, if it is nested, its JSON."""
    import pyarrow as pa

    if isinstance(kind, dict):
        if kind["type"] == "struct":
            fields = kind["fields"]
            return pa.struct([(field["name"], arrow_type(field["type"])) for field in fields])
        if kind["type"] == "array":
            return pa.list_(arrow_type(kind["elementType"]))
        return pa.map_(arrow_type(kind["keyType"]), arrow_type(kind["valueType"]))
    if kind.startswith("decimal("):
        return pa.decimal128(*map(int, kind[len("decimal(") : -1].split(",")))
    known = {
        "long": pa.int64(),
        "integer": pa.int32(),
        "short": pa.int16(),
        "byte": pa.int8(),
        "string": pa.string(),
        "double": pa.float64(),
        "float": pa.float32(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "binary": pa.binary(),
        "void": pa.null(),
        "variant": pa.struct(
            [
                pa.field("metadata", pa.binary(), nullable=False),
                pa.field("value", pa.binary(), nullable=False),
            ]
        ),
    }
    return known[kind] if kind in known else pa.string()


def plain(value: Any) -> Any:
    """Convert a value to JSON: times in ISO format, bytes in hex, decimals as strings."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "0x" + bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return plain(value.item())
    if hasattr(value, "as_py"):
        return plain(value.as_py())
    return str(value)


def listed(found: Any) -> list[dict[str, Any]]:
    """Convert any container of rows to a list of dicts."""
    if hasattr(found, "to_pylist"):
        found = found.to_pylist()
    elif hasattr(found, "to_dicts"):
        found = found.to_dicts()
    return [{str(name): plain(value) for name, value in dict(row).items()} for row in found]


def _load(path: str) -> Any:
    kit = types.ModuleType("kit")
    for helper in (NotOffered, Comparison, RowsToWrite, literal, sql_type, arrow_type, plain):
        setattr(kit, helper.__name__, helper)
    sys.modules["kit"] = kit
    spec = importlib.util.spec_from_file_location("adapter", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["adapter"] = module
    spec.loader.exec_module(module)
    return module


def _arguments(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in request.items():
        if name in ("id", "operation"):
            continue
        if name == "where" and value is not None:
            value = Comparison(**value)
        if name == "rows":
            value = RowsToWrite(**value)
        found[name] = value
    return found


READING: dict[str, Callable[[Any], Any]] = {
    "rows": listed,
    "count": plain,
    "total": plain,
    "schema": plain,
}


def _answer(module: Any, request: dict[str, Any]) -> dict[str, Any]:
    function = getattr(module, request["operation"], None)
    if function is None:
        return {"offered": False}
    arguments = _arguments(request)
    if not _takes(function, {"version", "where"} & arguments.keys()):
        return {"offered": False}
    found = function(**arguments)
    convert = READING.get(request["operation"])
    if convert is None:
        return {"answer": None}
    return {"answer": None if found is None else convert(found)}


def _takes(function: Callable[..., Any], names: set[str]) -> bool:
    """Return True if the function has these arguments."""
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return names <= known.keys() or any(
        each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values()
    )


def _failure(error: BaseException, panics: tuple[str, ...] = ()) -> dict[str, Any]:
    # Rust panics are not Exceptions, and have no other base class in all releases.
    name = type(error).__name__
    panic = not isinstance(error, Exception) or "panic" in name.lower() or name in panics
    return {
        "failed": {
            "type": name,
            "message": str(error)[:2000],
            "panic": panic,
        }
    }


def main(path: str) -> int:
    # The client must not import from this file's folder.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(found: dict[str, Any]) -> None:
        answers.write(json.dumps(found) + "\n")
        answers.flush()

    try:
        module = _load(path)
        release = str(module.release()) if hasattr(module, "release") else ""
    except BaseException as error:
        say({"ready": False, **_failure(error)})
        return 1
    offers = [name for name in OPERATIONS if hasattr(module, name)]
    say({"ready": True, "release": release, "offers": offers, "python": sys.version.split()[0]})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            found = _answer(module, request)
        except KeyboardInterrupt:
            raise
        except NotOffered:
            found = {"offered": False}
        except BaseException as error:
            found = _failure(error, getattr(module, "PANICS", ()))
        say({"id": request["id"], **found})
    return 0


OPERATIONS = (
    "rows",
    "count",
    "total",
    "schema",
    "append",
    "overwrite",
    "delete",
    "update",
    "merge",
    "optimize",
    "checkpoint",
    "vacuum",
    "configure",
)

if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    # Engines leave threads running that would keep the process alive.
    os._exit(code)
