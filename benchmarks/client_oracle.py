"""What `check` says of random unusual tables, against what real clients do with them.

Each case is a seed: Spark makes a random table, each client reads it, appends a row and deletes
one, and Spark reads the result. Rows are compared value by value. An `ok` that fails or gives other
rows is a mismatch, and the seed reproduces it; a refusal that works is a false alarm, and only
shown. The clients other than Delta Spark get environments of their own in `--cache`. `make bench`
does not run this, because it takes minutes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = (
    "deltalake/engine@1.6.6",
    "deltalake/pyarrow@1.6.6",
    "polars/scan@2.1.0",
    "polars/eager@2.1.0",
    "daft@0.7.26",
    "duckdb@1.5.5",
    "delta-spark@4.4.0",
)
SPARK = "delta-spark@4.4.0"
FOLDERS = ("t", "t", "a b", "ä", "p%20q", "x=1")
NEW = 900
"""within every constraint of the drafts"""
_PLAIN = {
    **dict.fromkeys(("byte", "short", "integer", "long"), 7),
    **dict.fromkeys(("float", "double"), 7.5),
    **{"string": "new", "boolean": True},
}


class Column(NamedTuple):
    """A column of the table, and what a new row has in it."""

    name: str
    type: Any
    value: Any


class Uses(NamedTuple):
    """How one client is used: each function returns rows or None, or raises."""

    rows: Callable[[str], Any]
    append: Callable[[str, Any], Any] | None
    delete: Callable[[str, Any], Any] | None


class Failed(Exception):
    """What a client answered when it failed."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=60, help="tables")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow")
    parser.add_argument("--made", default="", help="only tables made with a statement like this")
    parser.add_argument(
        "--tables",
        choices=("random", "unusual", "by-hand"),
        default="random",
        help="of tests/planning/random_tables.py, unusual_tables.py or handmade_tables.py",
    )
    parser.add_argument("--client", action="append", default=[], help="only this client")
    parser.add_argument("--cache", type=Path, default=ROOT / ".clients")
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long; 0: never")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from benchmarks import handmade_tables, unusual_tables
    from tests.planning.random_tables import draft, drafted_with, make
    from tests.recording.delta_spark import LiveDeltaSpark

    names = arguments.client or CLIENTS
    by_hand = arguments.tables == "by-hand"
    # Without Spark in any role, nothing of it is started.
    spark = None if by_hand and SPARK not in names else _session()
    seeds: Iterator[int] = itertools.count(arguments.seed)
    if arguments.tables == "random":
        seeds = drafted_with(arguments.made, arguments.seed)

    def made(seed: int, path: Path) -> Table:
        if by_hand:
            handmade_tables.make(seed, path)
            return Table(str(path), handmade_tables.rows)
        assert spark is not None
        referee = partial(_spark_rows, spark)
        if arguments.tables == "unusual":
            table = unusual_tables.make(spark, seed, path)
            print(f"seed {seed} is {table.story}", *table.statements, sep=";\n    ")
            return Table(table.path, referee, table.managed_name)
        make(LiveDeltaSpark(spark), draft(seed), path)
        return Table(str(path), referee)

    counted: Counter[tuple[str, str, str]] = Counter()
    started, bad, cases = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as home:
        clients = {name: _uses(name, spark, arguments.cache, Path(home)) for name in names}
        for seed in itertools.islice(seeds, arguments.cases):
            if arguments.minutes and time.monotonic() - started > arguments.minutes * 60:
                break
            folder = Path(home) / str(seed)
            path = folder / FOLDERS[seed % len(FOLDERS)]
            try:
                folder.mkdir()
                found = [*_compared(made(seed, path), clients, counted)]
                cases += 1
            except Exception:
                found = [traceback.format_exc()]
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            bad += bool(found)
            print(f"seed {seed}: {len(found)}", *found, sep="\n  MISMATCH ", flush=True)
    for (client, access, came), count in sorted(counted.items()):
        print(f"{client:26} {access:8} {came:34} {count:4}")
    print(
        f"\n{cases} tables, {counted.total()} verdicts, {bad} tables with mismatches, "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if bad else 0


def _session() -> SparkSession:
    from deltaproto.protocol.table_state import SparkSettings
    from deltaproto.tables.session import spark_session
    from tests.support.spark_settings import SMALL_TABLES

    return spark_session(SparkSettings(conf={**SMALL_TABLES, "spark.sql.session.timeZone": "UTC"}))


Referee = Callable[[str], list[dict[str, Any]]]
"""reads the rows of a table, whatever wrote it"""


class Table(NamedTuple):
    """A table that was made for a seed."""

    path: str
    referee: Referee
    managed_name: str | None = None
    """the name by which a catalog manages it; its copies cannot be read"""


def _compared(table: Table, clients: dict[str, Uses], counted: Counter[Any]) -> Iterator[str]:
    """Use every client in every way, and yield each `ok` that is none."""
    from deltaproto.clients.catalog import ClientCatalog
    from deltaproto.clients.model import Access, Verdict
    from deltaproto.clients.verdicts import path_verdicts
    from deltaproto.inspection import Inspection, ReadRequest, inspect_table
    from deltaproto.inspection.facts import facts_from_inspection

    def needs(name: str) -> tuple[Any, Any]:
        inspection = inspect_table(name, ReadRequest())
        assert isinstance(inspection, Inspection), inspection
        return facts_from_inspection(inspection).needs, inspection.state.metadata.schema

    path, managed = table.path, table.managed_name
    by_path, schema = needs(path)
    assert schema is not None
    columns = [*_columns(schema)]
    base = [_normal_row(row, columns) for row in table.referee(managed or path)]
    trial = _Trial(table, columns, base, min(row["id"] for row in base) if base else 0)
    # By name there are no copies, so Spark comes last.
    for name, uses in sorted(clients.items(), key=lambda item: item[0] == SPARK):
        named = managed if name == SPARK else None
        for access in (Access.READ, Access.APPEND, Access.DML):
            wanted = needs(named)[0] if named else by_path
            for each, said in path_verdicts(ClientCatalog().resolve(name), access, wanted):
                if each is None:
                    counted[name, str(access), "unknown version"] += 1
                    continue
                try:
                    wrong = trial.use(name, uses, access)
                except NotImplementedError:
                    counted[name, str(access), f"{said.verdict}, not offered"] += 1
                    continue
                except Exception as error:
                    wrong = f"{type(error).__name__}: {error}"
                came = "wrong" if wrong and wrong.startswith("rows") else "failed"
                counted[name, str(access), f"{said.verdict}, {came if wrong else 'right'}"] += 1
                if wrong and said.verdict is Verdict.OK:
                    yield f"{name} {access}: {wrong[:600]}"
                elif not wrong and said.verdict is not Verdict.OK:
                    print(f"  {name} {access} is right, but {said.verdict}: {said.reason[:200]}")


class _Trial:
    """Uses clients on a table or on copies of it, each use on another copy."""

    def __init__(
        self, table: Table, columns: list[Column], base: list[dict[str, Any]], gone: int
    ) -> None:
        self.table, self.columns = table, columns
        self.rows, self.gone = base, gone

    def use(self, name: str, uses: Uses, access: Any) -> str:
        """Return what is wrong about the rows afterwards; empty if they are right.

        Raises:
            NotImplementedError: if the client has no such operation.
        """
        named = self.table.managed_name if name == SPARK else None
        if access == "read":
            return _difference(self._normal(uses.rows(named or self.table.path)), self.rows)
        use = uses.append if access == "append" else uses.delete
        if use is None:
            raise NotImplementedError
        target = named or self._copy(f"{name.replace('/', '-')}-{access}")
        if access == "append":
            given = [c for c in self.columns if c.value is not ...]
            use(target, given)
            expected = {c.name: _normal(c.value, c.type) for c in given}
            after = self._after(target, named)
            new = [row for row in after if row["id"] == NEW]
            wrong = _difference([row for row in after if row["id"] != NEW], self.rows)
            if len(new) != 1 or any(not _same(new[0][k], v) for k, v in expected.items()):
                wrong = wrong or f"rows: {new} instead of {expected}"
            return wrong
        use(target, self.gone)
        left = [row for row in self.rows if row["id"] != self.gone]
        after = self._after(target, named)
        return _difference([row for row in after if not (named and row["id"] == NEW)], left)

    def _copy(self, name: str) -> str:
        path = Path(self.table.path)
        copy = path.parent / f"copy-{name}" / path.name
        shutil.copytree(path, copy)
        return str(copy)

    def _after(self, target: str, named: str | None) -> list[dict[str, Any]]:
        if self.table.managed_name and not named:
            # Nobody can read what was written beside the catalog.
            return [{"id": "written beside the catalog"}]
        return self._normal(self.table.referee(target))

    def _normal(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [_normal_row(row, self.columns) for row in rows]


def _columns(schema: Any) -> Iterator[Column]:
    for field in schema["fields"]:
        metadata = field.get("metadata", {})
        # The files have CHAR as text; Spark pads it on reading.
        kind = metadata.get("__CHAR_VARCHAR_TYPE_STRING", field["type"])
        filled = any(key.startswith(("delta.identity", "delta.generation")) for key in metadata)
        value: Any = NEW if field["name"] == "id" else None
        if isinstance(field["type"], str) and field["name"] != "id":
            value = _PLAIN.get(field["type"])
        yield Column(field["name"], kind, ... if filled else value)


def _uses(name: str, spark: SparkSession | None, cache: Path, home: Path) -> Uses:
    if name == SPARK:
        assert spark is not None
        return _spark_uses(spark)
    from deltaproto.certification.adapter import ReplyKind, ServedAdapter
    from deltaproto.certification.client import create_environment, select_client
    from deltaproto.certification.operation import AdapterRequest
    from deltaproto.certification.process import ProcessLimits

    subject = select_client(name)
    python = create_environment(subject.requires, cache)
    adapter = ServedAdapter(python, subject.file, home, ProcessLimits(seconds=60))
    adapter.start()

    def ask(table: str, function: str, **arguments: Any) -> Any:
        reply = adapter.ask(Path(table), AdapterRequest(function, arguments))
        if reply.kind is ReplyKind.NOT_OFFERED:
            raise NotImplementedError
        if reply.kind is not ReplyKind.ANSWERED:
            raise Failed(f"{reply.kind} {reply.message}")
        return reply.answer

    def append(table: str, columns: list[Column]) -> None:
        if name.startswith("duckdb"):
            # Of a NULL, the insertion makes any type.
            columns = [c._replace(type=c.type if c.value else "string") for c in columns]
        row = {c.name: c.value for c in columns}
        ask(table, "append", rows={"values": [row], "columns": [c[:2] for c in columns]})

    def delete(table: str, key: int) -> None:
        ask(table, "delete", where={"column": "id", "op": "=", "value": key})

    return Uses(lambda table: ask(table, "rows"), append, delete)


def _spark_uses(spark: SparkSession) -> Uses:
    def append(table: str, columns: list[Column]) -> None:
        values = ", ".join("null" if c.value is None else repr(c.value) for c in columns)
        names = ", ".join(f"`{c.name}`" for c in columns)
        spark.sql(f"insert into {_in_sql(table)} ({names}) values ({values})")

    return Uses(
        partial(_spark_rows, spark),
        append,
        lambda table, key: spark.sql(f"delete from {_in_sql(table)} where id = {key}"),
    )


def _spark_rows(spark: SparkSession, table: str) -> list[dict[str, Any]]:
    frame = spark.sql(f"select * from {_in_sql(table)}")
    # pyspark cannot collect intervals of months.
    found = frame.select(*(_readable(field) for field in frame.schema)).collect()
    return [row.asDict(True) for row in found]


def _readable(field: Any) -> Any:
    from pyspark.sql import functions

    column = functions.col(f"`{field.name}`")
    months = field.dataType.typeName() == "yearmonthinterval"
    return column.cast("string").alias(field.name) if months else column


def _in_sql(table: str) -> str:
    return f"delta.`{table}`" if table.startswith("/") else table


def _normal_row(row: dict[str, Any], columns: list[Column]) -> dict[str, Any]:
    names = {c.name for c in columns}
    # Columns that the table does not have show as a difference.
    more = {name: value for name, value in row.items() if name not in names}
    return {c.name: _normal(row.get(c.name, "no such column"), c.type) for c in columns} | more


def _normal(value: Any, kind: Any) -> Any:
    """A value as every client should give it, whatever its classes."""
    if value is None or value is ...:
        return None
    if isinstance(kind, dict):
        return _normal_nested(value, kind)
    if kind in ("variant", "void") or kind.startswith("interval"):
        return "there"
    if kind.startswith("timestamp"):
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    if kind in ("float", "double") or kind.startswith("decimal"):
        return float(value)
    if kind.startswith("char("):
        return value.rstrip(" ")
    if kind == "binary":
        return value if isinstance(value, str) else f"0x{bytes(value).hex()}"
    return str(value) if kind == "date" else value


def _normal_nested(value: Any, kind: dict[str, Any]) -> Any:
    if kind["type"] == "struct":
        return {f["name"]: _normal(value.get(f["name"]), f["type"]) for f in kind["fields"]}
    if kind["type"] == "array":
        return [_normal(each, kind["elementType"]) for each in value]
    pairs: Iterable[Any] = value.items() if isinstance(value, dict) else value
    pairs = [(p["key"], p["value"]) if isinstance(p, dict) else p for p in pairs]
    return sorted((_normal(k, kind["keyType"]), _normal(v, kind["valueType"])) for k, v in pairs)


def _difference(found: list[dict[str, Any]], right: list[dict[str, Any]]) -> str:
    by_id = sorted(found, key=lambda row: str(row.get("id")))
    for row, other in itertools.zip_longest(by_id, sorted(right, key=lambda row: str(row["id"]))):
        if row is None or other is None or row.keys() != other.keys():
            return f"rows: {len(found)} instead of {len(right)}: {row} instead of {other}"
        for name, value in other.items():
            if not _same(row[name], value):
                return f"rows: {name} of {other['id']} is {row[name]!r} instead of {value!r}"
    return ""


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6)
    return bool(one == other)


if __name__ == "__main__":
    sys.exit(main())
