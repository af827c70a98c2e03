"""Constraints that call functions of another engine, as deltalake stores them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.search.copy_table import plan_copy
from deltaproto.planning.search.goals import FeaturesAbsent
from tests.planning.log_files import commits
from tests.planning.oracle import agree, execute, newest, planned, predict
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

pytestmark = needs_delta("4.4", "what it was measured with")
MISSING = "UNRESOLVED_ROUTINE"
STRPOS = "strpos(s, 'a') > 0"
MADE = (
    "create table {t} (id int, s string) using delta tblproperties "
    "('delta.enableDeletionVectors' = 'true', 'delta.feature.checkConstraints' = 'supported')",
    "insert into {t} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'a') as v (id, s)",
    "insert into {t} values (3, 'a')",
    "delete from {t} where id = 2",
)
STATEMENTS = {
    "optimize {t}": "",
    "reorg table {t} apply (purge)": "",
    "update {t} set id = 5 where id = 1": MISSING,
    "insert into {t} values (4, 'a')": MISSING,
    "delete from {t} where id = 3": None,
    "alter table {t} drop feature deletionVectors": "",
    "alter table {t} set tblproperties ('team' = 'a')": None,
    "alter table {t} add constraint d check (id > 0)": None,
    "alter table {t} drop constraint c": None,
    "insert into {t} values (5, 'a')": None,
}
"""statements, with their errors; an empty one has no error class"""


def store_constraint(path: str, text: str) -> None:
    """Commit the constraint `c`, as another engine does."""
    *_, stored = (metadata for each in commits(path) for metadata in each.kind("metaData"))
    stored["configuration"]["delta.constraints.c"] = text
    info = {"timestamp": 1, "operation": "ADD CONSTRAINT"}
    lines = [json.dumps({"commitInfo": info}), json.dumps({"metaData": stored})]
    log = Path(path) / "_delta_log"
    (log / f"{newest(path) + 1:020d}.json").write_text("\n".join(lines) + "\n")


def make_table(delta_spark: DeltaSpark, folder: Path, made: tuple[str, ...] = MADE) -> str:
    path = str(folder / "t")
    for statement in made:
        delta_spark.sql(statement.format(t=f"delta.`{path}`"))
    store_constraint(path, STRPOS)
    return path


def test_spark_cannot_write_rows(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = make_table(delta_spark, tmp_path)
    for statement, error in STATEMENTS.items():
        sql = statement.format(t=f"delta.`{path}`")
        said = predict(path, sql)[1]
        happened = execute(delta_spark, path, sql)
        agree(said, happened)
        assert happened.error == error, statement


def test_column_mapping_is_not_removed(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    mapped = ("alter table {t} set tblproperties ('delta.columnMapping.mode' = 'name')",)
    path = make_table(delta_spark, tmp_path, (MADE[0], *mapped, MADE[2]))
    for text, error in (
        ("set tblproperties ('delta.columnMapping.mode' = 'none')", MISSING),
        ("drop feature columnMapping", MISSING),
    ):
        sql = f"alter table delta.`{path}` {text}"
        said = predict(path, sql)[1]
        happened = execute(delta_spark, path, sql)
        agree(said, happened)
        assert happened.error == error


def test_a_table_is_not_upgraded_for_iceberg(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = make_table(delta_spark, tmp_path)
    sql = f"reorg table delta.`{path}` apply (upgrade uniform (iceberg_compat_version = 2))"
    said = predict(path, sql)[1]
    happened = execute(delta_spark, path, sql)
    agree(said, happened)
    assert happened.error == "DELTA_ICEBERG_COMPAT_VIOLATION.REWRITE_DATA_FAILED"


@pytest.mark.parametrize("stored", [STRPOS, "strpos(s, 'a') > 0 and id > 0"])
def test_a_plan_names_the_constraint(stored: str, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = make_table(delta_spark, tmp_path)
    store_constraint(path, stored)
    given = planned(path)
    plan = plan_downgrade(given, DowngradeRequest(drop=("deletionVectors",)))
    assert not plan.steps
    (blocked,) = plan.blocked
    assert (blocked.feature, blocked.error) == ("deletionVectors", "")
    assert "the constraint c calls strpos()" in blocked.reason
    # A copy is made without the constraint.
    copied = plan_copy(given, FeaturesAbsent(frozenset(["deletionVectors"])))
    assert copied is not None
    assert "checkConstraints" not in copied.protocol_after.supported
    dropped = plan_downgrade(given, DowngradeRequest(drop=("checkConstraints",)))
    assert dropped.steps[0].undo is None
