"""Table properties and SQL on tables of every layout: as predicted, and as Spark does."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.resolution import UNRESOLVED
from deltaproto.planning.ddl.restore import HISTORY_MAY_BE_MISSING
from deltaproto.planning.ddl.rows import ROWS_MAY_BE_REFUSED
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.table import Table
from tests.planning import swept_sql, swept_tables
from tests.planning.oracle import agree, came_true, execute, look, newest
from tests.planning.swept_tables import Swept, made
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta
from tests.support.failures import collect_failures

OPEN = (UNRESOLVED, ROWS_MAY_BE_REFUSED, HISTORY_MAY_BE_MISSING)
BY_DELTA = (
    "delta.columnMapping.maxColumnId",
    "delta.rowTracking.materialized",
    "delta.inCommitTimestampEnablement",
    "delta.requireCheckpointProtectionBeforeVersion",
)
pytestmark = [
    needs_delta("4.4", "the properties and rules of this release"),
    pytest.mark.replayed,
]


PART = 100
"""statements of one test at most"""


def _parts(tables: Iterable[str], statements: Callable[[str], Iterator[str]]) -> Iterator[Any]:
    for name in tables:
        for start in range(0, sum(1 for _ in statements(name)), PART):
            yield pytest.param(name, start, id=f"{name}-{start}")


@pytest.mark.parametrize(("name", "start"), _parts(swept_tables.TABLES, swept_tables.statements))
def test_every_property_does_what_was_predicted(
    name: str, start: int, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    _sweep(delta_spark, tmp_path, swept_tables.TABLES[name], swept_tables.statements(name), start)


@pytest.mark.parametrize(("name", "start"), _parts(swept_sql.TABLES, swept_sql.statements))
def test_every_statement_does_what_was_predicted(
    name: str, start: int, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    _sweep(delta_spark, tmp_path, swept_sql.TABLES[name], swept_sql.statements(name), start)


def _sweep(
    delta_spark: DeltaSpark, folder: Path, swept: Swept, statements: Iterable[str], start: int
) -> None:
    """Try each statement on a copy of the table."""
    base = folder / "base"
    for statement in made(swept):
        delta_spark.sql(statement.replace("{t}", f"delta.`{base}`"))
    with collect_failures() as failures:
        for number, statement in [*enumerate(statements)][start : start + PART]:
            path = folder / str(number)
            shutil.copytree(base, path)
            sql = statement.replace("{t}", f"delta.`{path}`")
            before = look(str(path))._replace(version=newest(str(path)))
            happened = execute(delta_spark, str(path), sql)
            with failures.of(statement):
                (each,) = parse_script(sql)
                if not each.understood:
                    continue
                said = each.statement.outcome(before, RUNNING)
                if happened.error is not None and _open(said):
                    assert not happened.operations
                    continue
                agree(said, happened)
                after = look(str(path))
                came_true(said, after, sql)
                _stored(said, after)
            shutil.rmtree(path)


def _open(said: Outcome) -> bool:
    """Whether it was said that the statement may be refused, because of what is not known."""
    return said.refusal is None and said.fewest == 0 and bool({*said.warnings} & {*OPEN})


def _stored(said: Outcome, after: Table) -> None:
    """The properties are what was said, but for those that Delta sets itself."""
    if said.table.schema is None:
        return
    theirs, ours = (
        {
            # Spark writes an expression with other spaces.
            key: value.replace(" ", "") if key.startswith("delta.constraints.") else value
            for key, value in each.configuration.items()
            if not key.startswith(BY_DELTA)
        }
        for each in (after, said.table)
    )
    assert theirs == ours
