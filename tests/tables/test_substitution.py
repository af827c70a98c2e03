"""No statement reaches Spark with variable substitution: `victim${x}` is not `victim`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deltaproto
from deltaproto.errors import EngineError
from deltaproto.execution.runner import StatementRunner
from deltaproto.sql.quoting import SUBSTITUTION, quote_identifier
from deltaproto.tables.session import sql_rows
from deltaproto.tables.spark import SparkReader
from tests.support.connect_server import ConnectServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("victim${x}", "${env:HOME}", "${system:user.dir}", "${spark:spark.app.name}", "a${b}${c}")


class Conf:
    def __init__(self, fixed: bool, **values: str) -> None:
        self.values, self.fixed = dict(values), fixed

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        if key == SUBSTITUTION and self.fixed:
            raise RuntimeError("[CANNOT_MODIFY_CONFIG]")
        self.values[key] = value

    def unset(self, key: str) -> None:
        self.values.pop(key, None)


class Session:
    """Records each statement with the setting under which it was sent."""

    def __init__(self, *, fixed: bool = False) -> None:
        self.conf = Conf(fixed)
        self.sent: list[tuple[str, str | None]] = []

    def sql(self, text: str) -> Session:
        self.sent.append((text, self.conf.get(SUBSTITUTION, "true")))
        return self

    def collect(self) -> list[Any]:
        return []


@pytest.mark.parametrize("name", NAMES)
def test_a_statement_is_sent_with_substitution_off(name: str) -> None:
    session, sql = Session(), f"ALTER TABLE {quote_identifier(name)} DROP CONSTRAINT a"
    assert StatementRunner(session).run(sql, "mark").error is None  # type: ignore[arg-type]
    sql_rows(session, sql)  # type: ignore[arg-type]
    assert session.sent == [(sql, "false"), (sql, "false")]
    assert session.conf.get(SUBSTITUTION, "true") == "true"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_sent_where_the_session_keeps_it_on(name: str) -> None:
    session, sql = Session(fixed=True), f"SELECT 1 AS {quote_identifier(name)}"
    answer = StatementRunner(session).run(sql, "mark")  # type: ignore[arg-type]
    assert "nothing was sent" in answer.message
    assert answer.error is not None
    with pytest.raises(EngineError, match="replaces"):
        sql_rows(session, sql)  # type: ignore[arg-type]
    assert session.sent == []


def _protects(session: SparkSession, folder: Path, reader: SparkReader) -> None:
    victim, other = folder / "victim", folder / "victim${x}"
    for path in (victim, other):
        session.range(1).write.format("delta").save(str(path))
    session.conf.set(SUBSTITUTION, "true")
    sql = f"ALTER TABLE delta.{quote_identifier(str(other))} SET TBLPROPERTIES ('a' = '1')"
    answer = StatementRunner(session).run(sql, '{"deltaproto":{}}')
    assert answer.error is None, answer
    commits = [len(list((path / "_delta_log").glob("*.json"))) for path in (victim, other)]
    assert commits == [1, 2]
    assert session.conf.get(SUBSTITUTION) == "true"
    assert reader.read(str(other)).version == 1
    assert reader.read(str(victim)).version == 0


@pytest.mark.spark
@pytest.mark.slow
def test_classic_spark_changes_and_reads_the_table_that_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    try:
        _protects(spark, tmp_path, SparkReader())
    finally:
        spark.conf.unset(SUBSTITUTION)


@pytest.mark.spark
@pytest.mark.slow
def test_spark_connect_changes_and_reads_the_table_that_is_named(
    connect: ConnectServer, tmp_path: Path
) -> None:
    import subprocess
    import sys

    from tests.support.connect_server import outside

    code = (
        "import sys, pathlib\n"
        "from deltaproto.protocol.table_state import SparkSettings\n"
        "from deltaproto.tables.session import spark_session\n"
        "from deltaproto.tables.spark import SparkReader\n"
        "from tests.tables.test_substitution import _protects\n"
        "settings = SparkSettings(remote=sys.argv[1])\n"
        "session = spark_session(settings)\n"
        "_protects(session, pathlib.Path(sys.argv[2]), SparkReader(settings))\n"
    )
    words = [sys.executable, "-c", code, connect.remote, str(tmp_path)]
    ran = subprocess.run(words, env=outside(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


GUARDED = {
    ("tables/session.py", "_rows"),
    ("execution/runner.py", "_facts"),
    ("execution/runner.py", "run"),
    ("tables/session.py", "open_query"),
}
"""functions that send SQL: after `has_variable`, or a text without a name"""


def test_sql_is_sent_by_the_guarded_functions_only() -> None:
    package = Path(deltaproto.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        if "certification" in path.parts:
            continue  # its tables have names of its own
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                found |= {
                    (str(path.relative_to(package)), function.name)
                    for node in ast.walk(function)
                    if isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "sql"
                    and ast.unparse(node.func.value).lower().endswith(("session", "spark"))
                }
    assert found == GUARDED
