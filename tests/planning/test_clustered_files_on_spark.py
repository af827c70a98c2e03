"""Files that OPTIMIZE has clustered: Delta Spark rewrites none while the table is clustered.

Neither REORG nor the drop of a feature then removes deletion vectors or values of older types.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.impact import end_state_of
from deltaproto.planning.search.goals import HistoryChoice, requirements_after
from tests.planning import log_files
from tests.planning.oracle import agree, execute, look, planned, predict
from tests.planning.random_tables import Place
from tests.planning.trial import carry_out
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

pytestmark = needs_delta("4.4", "clustering of existing tables, and the drops")

_ROWS = "insert into {t} select /*+ coalesce(1) */ id, cast(id as smallint) from range(10)"
_CREATE = (
    "create table {{t}} (id bigint, x smallint) using delta cluster by (id) tblproperties ({})"
)
VECTORS = (
    _CREATE.format("'delta.enableDeletionVectors' = 'true'"),
    _ROWS,
    "optimize {t}",
    "delete from {t} where id = 3",
)
WIDENED = (
    _CREATE.format("'delta.enableTypeWidening' = 'true'"),
    _ROWS,
    "optimize {t} full",
    "alter table {t} alter column x type int",
)
UNCLUSTER, CLUSTER = "ALTER TABLE {t} CLUSTER BY NONE", "ALTER TABLE {t} CLUSTER BY (`id`)"


def made(delta_spark: DeltaSpark, path: Path, statements: Sequence[str]) -> str:
    for statement in statements:
        delta_spark.sql(statement.format(t=f"delta.`{path}`"))
    return str(path)


def count(delta_spark: DeltaSpark, path: str) -> int:
    # Delta answers count(*) from the log.
    return len(delta_spark.sql(f"select id from delta.`{path}`"))


@pytest.mark.parametrize(
    ("statement", "rows"),
    [("reorg table {t} apply (purge)", 9), ("alter table {t} drop feature deletionVectors", 10)],
)
def test_deletion_vectors_may_stay(
    statement: str, rows: int, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = made(delta_spark, tmp_path / "t", VECTORS)
    sql = statement.format(t=f"delta.`{path}`")
    before, said = predict(path, sql)
    agree(said, execute(delta_spark, path, sql))
    assert look(path).vectors is True
    assert said.table.vectors is None
    # Without the feature, Delta Spark ignores them.
    assert count(delta_spark, path) == rows
    if rows == 10:
        assert "deleted rows come back" in " ".join(said.warnings)
        needs = requirements_after(planned(path).needs, end_state_of(said.table, before))
        assert needs.doubts


def test_values_of_older_types_may_stay(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = made(delta_spark, tmp_path / "t", WIDENED)
    sql = f"alter table delta.`{path}` drop feature typeWidening"
    _, said = predict(path, sql)
    assert said.warnings
    happened = execute(delta_spark, path, sql)
    agree(said, happened)
    assert "REORG" not in happened.operations


UNIFORM = "reorg table {t} apply (upgrade uniform (iceberg_compat_version = {version}))"


@pytest.mark.parametrize(
    ("made_by", "first", "version", "refused"),
    [
        (VECTORS, (), 2, True),
        (VECTORS[:-1], (), 2, True),
        (VECTORS[:-1], (UNCLUSTER,), 2, False),
        (VECTORS[:-1], (), 1, False),
    ],
    ids=["vectors", "no vectors", "not clustered", "no rewrite"],
)
def test_the_upgrade_to_uniform_needs_files_that_are_not_clustered(
    made_by: Sequence[str],
    first: Sequence[str],
    version: int,
    refused: bool,
    delta_spark: DeltaSpark,
    tmp_path: Path,
) -> None:
    path = made(delta_spark, tmp_path / "t", (*made_by, *first))
    sql = UNIFORM.format(t=f"delta.`{path}`", version=version)
    _, said = predict(path, sql)
    assert (said.refusal is not None) is refused
    agree(said, execute(delta_spark, path, sql))


@pytest.mark.parametrize(
    ("statements", "feature"), [(VECTORS, "deletionVectors"), (WIDENED, "typeWidening")]
)
def test_a_plan_drops_the_feature_while_the_table_is_not_clustered(
    statements: Sequence[str], feature: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = made(delta_spark, tmp_path / "t", statements)
    rows = count(delta_spark, path)
    given = planned(path)
    plan = plan_downgrade(given, DowngradeRequest(drop=(feature,)))
    sql = [step.sql for step in plan.steps]
    assert (sql[0], sql[-1]) == (UNCLUSTER.format(t=given.sql), CLUSTER.format(t=given.sql))
    assert [*carry_out(delta_spark, Place(path, path), plan.steps, given)] == []
    assert log_files.rewritten(log_files.commits(path, given.fingerprint.version + 1))
    after = planned(path)
    assert after.table.protocol == plan.protocol_after
    assert after.table.vectors is False
    assert after.table.clustering == ("id",)
    assert count(delta_spark, path) == rows


MAPPED = (
    _CREATE.format("'delta.columnMapping.mode' = 'name'"),
    _ROWS,
    "optimize {t}",
    "alter table {t} rename column x to y",
)


@pytest.mark.parametrize(
    ("statements", "feature"),
    [(VECTORS, "deletionVectors"), (WIDENED, "typeWidening"), (MAPPED, "columnMapping")],
)
def test_the_table_is_clustered_again_before_the_wait(
    statements: Sequence[str], feature: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = made(delta_spark, tmp_path / "t", statements)
    rows = count(delta_spark, path)
    given = planned(path)
    asked = DowngradeRequest(drop=(feature,), history=HistoryChoice.TRUNCATE)
    plan = plan_downgrade(given, asked)
    drop = f"ALTER TABLE {given.sql} DROP FEATURE `{feature}` TRUNCATE HISTORY"
    around = (UNCLUSTER.format(t=given.sql), drop, CLUSTER.format(t=given.sql))
    assert [step.sql for step in plan.steps] == [*around, None, drop]
    assert [*carry_out(delta_spark, Place(path, path), plan.steps, given)] == []
    after = planned(path)
    assert after.table.protocol == plan.protocol_after
    assert (after.table.vectors, after.table.clustering) == (False, ("id",))
    assert count(delta_spark, path) == rows
