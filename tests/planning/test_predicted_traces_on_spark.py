"""What plans say of the traces of row tracking and of metadata domains after Delta Spark's work."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.planning.oracle import agree, execute, look, predict
from tests.planning.predicted_needs import load, needs_after
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta

pytestmark = needs_delta("4.1", "fast drops")
TRACKED = "'delta.enableRowTracking'='true'"
VECTORS = "'delta.enableDeletionVectors'='true'"
MAPPED = "'delta.columnMapping.mode'='name'"
ROWS = "insert into {t} select id from range(0, 9, 1, 1)"
SUPPORTED = "alter table {t} set tblproperties ('delta.feature.rowTracking'='supported')"
SUSPENDED = "alter table {t} set tblproperties ('delta.rowTrackingSuspended'='true')"
UNTRACK = "alter table {t} drop feature rowTracking"
FEATURES = ("rowTracking", "domainMetadata")


def created(properties: str, more: str = "") -> str:
    return f"create table {{t}} (id bigint) using delta tblproperties ({properties}) {more}"


class Case(NamedTuple):
    """A table, and the statements whose effect is predicted."""

    made: tuple[str, ...]
    planned: tuple[str, ...]
    holds: tuple[bool | None, ...]
    """whether row tracking and metadata domains have traces, as predicted"""


CASES = {
    "its only domain goes with row tracking": Case(
        (created(TRACKED), ROWS), (UNTRACK,), (None, False)
    ),
    "another domain stays": Case(
        (created(TRACKED, "cluster by (id)"), ROWS), (UNTRACK,), (None, True)
    ),
    "enabled on existing rows": Case(
        (created(VECTORS, "cluster by (id)"), ROWS, SUPPORTED),
        (f"alter table {{t}} set tblproperties ({TRACKED})",),
        (True, True),
    ),
    "a purge writes row ids": Case(
        (created(VECTORS), ROWS, "delete from {t} where id = 1", SUPPORTED),
        ("alter table {t} drop feature deletionVectors",),
        (True, True),
    ),
    "removed mapping writes row ids": Case(
        (created(MAPPED), ROWS, SUPPORTED),
        ("alter table {t} drop feature columnMapping",),
        (True, True),
    ),
    "new rows may have row ids": Case(
        (created(VECTORS), ROWS, SUPPORTED), ("insert into {t} values (7)",), (None, None)
    ),
    "deletes may write row ids": Case(
        (created(VECTORS), ROWS, SUPPORTED), ("delete from {t} where id = 1",), (None, None)
    ),
    "a purge while row tracking is suspended": Case(
        (created(VECTORS), ROWS, "delete from {t} where id = 1", SUPPORTED, SUSPENDED),
        ("reorg table {t} apply (purge)",),
        (False, False),
    ),
    "replaced by a query": Case(
        (created(VECTORS), ROWS, SUPPORTED),
        ("replace table {t} using delta as select id from range(3)",),
        (None, None),
    ),
    "replaced without rows": Case(
        (created(VECTORS), ROWS, SUPPORTED),
        ("replace table {t} (id bigint) using delta",),
        (False, False),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_spark_leaves_the_traces_that_a_plan_predicts(
    case: Case, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = tmp_path / "t"

    def sql(statement: str) -> str:
        return statement.format(t=f"delta.`{path}`")

    for statement in case.made:
        delta_spark.sql(sql(statement))
    said = needs_after(load(path), map(sql, case.planned), RUNNING)
    assert tuple(map(said.holds, FEATURES)) == case.holds
    for statement in case.planned:
        delta_spark.sql(sql(statement))
    real = load(path).needs
    for feature in real.protocol.supported & {*FEATURES}:
        assert said.holds(feature) in (None, real.holds(feature)), feature


@needs_delta("4.4", "the drop of typeWidening")
@pytest.mark.parametrize("rewritten", [True, False])
def test_files_with_older_types_lose_their_deletion_vectors(
    rewritten: bool, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table, rows = f"delta.`{path}`", "select cast(id as int) from range(0, 9, 1, 1)"
    widen = f"alter table {table} alter column id type bigint"
    insert = f"insert into {table} {rows}"
    for statement in (
        f"create table {table} (id int) using delta "
        f"tblproperties ('delta.enableTypeWidening'='true', {VECTORS})",
        *((insert, widen) if rewritten else (widen, insert)),
        f"delete from {table} where id = 3",
    ):
        delta_spark.sql(statement)
    drop = f"alter table {table} drop feature typeWidening"
    _, said = predict(path, drop)
    assert said.table.vectors is None
    agree(said, execute(delta_spark, path, drop))
    assert look(path).vectors is not rewritten
