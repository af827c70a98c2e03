"""How column mapping leaves a table by property: as predicted, and as Spark does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.planning.predict import column_mapping
from deltaproto.planning.predict.outcome import Outcome, Rewrite
from deltaproto.planning.predict.table import MAPPING_MODE
from deltaproto.planning.statement import SetProperties, Statement, UnsetProperties
from tests.planning import log_files
from tests.planning.oracle import agree, execute, look, newest, predict
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING

MAPPED = "tblproperties ('delta.columnMapping.mode' = 'name')"
OFF, UNSET = SetProperties({MAPPING_MODE: "none"}), UnsetProperties((MAPPING_MODE,))


def made(delta_spark: DeltaSpark, path: str, more: str, columns: str = "id bigint, c int") -> str:
    table = f"delta.`{path}`"
    delta_spark.sql(f"create table {table} ({columns}) using delta {more}")
    delta_spark.sql(f"insert into {table} values (1, 10)")
    return table


def done(delta_spark: DeltaSpark, path: str, statement: Statement) -> Outcome:
    said = statement.outcome(look(path), RUNNING)
    agree(said, execute(delta_spark, path, statement.sql(f"delta.`{path}`")))
    return said


@pytest.mark.parametrize("statement", [OFF, UNSET])
@pytest.mark.parametrize("more", ["", MAPPED])
def test_every_file_is_rewritten_whether_there_was_a_mapping_or_not(
    statement: Statement, more: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path)
    made(delta_spark, path, more)
    first = newest(path) + 1
    said = done(delta_spark, path, statement)
    assert said.rewrites is Rewrite.ALL
    assert len(log_files.rewritten(log_files.commits(path, first))) == 1
    assert look(path).configuration == said.table.configuration


def test_names_that_only_mapping_allows_keep_it(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = str(tmp_path)
    made(delta_spark, path, MAPPED, "id bigint, `a b` int")
    for statement in (OFF, UNSET):
        refusal = done(delta_spark, path, statement).refusal
        assert refusal is not None
        assert "a b" in refusal.message


def test_in_capitals_none_makes_every_value_null(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = str(tmp_path)
    table = made(delta_spark, path, MAPPED)
    said = done(delta_spark, path, SetProperties({MAPPING_MODE: "NONE"}))
    assert said.warnings == (column_mapping.MISSPELLED_NONE,)
    assert delta_spark.sql(f"select * from {table}") == [{"id": None, "c": None}]


def test_a_clustered_table_is_broken_by_it(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = str(tmp_path)
    table = made(delta_spark, path, f"cluster by (id) {MAPPED}")
    assert done(delta_spark, path, OFF).warnings == (column_mapping.CLUSTERED,)
    assert execute(delta_spark, path, f"optimize {table}").error is not None


@pytest.mark.parametrize(
    "statement",
    [
        "alter table {t} add columns (n int)",
        "alter table {t} change column c comment 'x'",
        "alter table {t} replace columns (id bigint, c int, z int)",
        "alter table {t} cluster by none",
        "alter table {t} cluster by (c)",
        "optimize {t}",
        "reorg table {t} apply (purge)",
        "reorg table {t} where id = 1 apply (purge)",
        "reorg table {t} apply (upgrade uniform (iceberg_compat_version = 2))",
        "alter table {t} set tblproperties ('team' = 'a')",
        "alter table {t} add constraint positive check (c > 0)",
        "delete from {t} where id = 1",
    ],
)
def test_statements_that_look_for_lost_clustering_columns_fail(
    statement: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path)
    table = made(delta_spark, path, f"cluster by (id) {MAPPED}")
    assert done(delta_spark, path, OFF).table.clustering is None
    sql = statement.format(t=table)
    _, said = predict(path, sql)
    agree(said, execute(delta_spark, path, sql))


_ON = "set tblproperties ('delta.enableDeletionVectors' = 'true')"
_OFF = "set tblproperties ('delta.enableDeletionVectors' = 'false')"
_WIDENS = "set tblproperties ('delta.enableTypeWidening' = 'true')"


@pytest.mark.parametrize(
    ("feature", "changes"),
    [
        pytest.param("deletionVectors", (_ON, OFF), id="no vectors"),
        pytest.param("deletionVectors", (_ON, _OFF, OFF), id="no vectors, and none may be written"),
        pytest.param("deletionVectors", (_ON, OFF, "delete"), id="vectors"),
        pytest.param(
            "deletionVectors", (_ON, OFF, "delete", _OFF), id="vectors, and none may be written"
        ),
        pytest.param("typeWidening", (_WIDENS, OFF), id="nothing widened"),
        pytest.param(
            "typeWidening", (_WIDENS, "alter column c type bigint", OFF), id="rewritten since"
        ),
    ],
)
def test_drops_that_rewrite_files_fail_on_lost_clustering(
    feature: str,
    changes: tuple[str | Statement, ...],
    delta_spark: DeltaSpark,
    tmp_path: Path,
) -> None:
    path = str(tmp_path)
    table = made(delta_spark, path, f"cluster by (id) {MAPPED}")
    delta_spark.sql(f"insert into {table} select id, 1 from range(0, 4, 1, 1)")
    for change in changes:
        if change is OFF:
            done(delta_spark, path, OFF)
        elif change == "delete":
            delta_spark.sql(f"delete from {table} where id = 3")
        else:
            delta_spark.sql(f"alter table {table} {change}")
    sql = f"alter table {table} drop feature {feature}"
    _, said = predict(path, sql)
    agree(said, execute(delta_spark, path, sql))


def test_no_condition_of_reorg_is_allowed_on_a_clustered_table(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path)
    table = made(delta_spark, path, "cluster by (id)")
    for condition in ("id = 1", "nope = 1"):
        sql = f"reorg table {table} where {condition} apply (purge)"
        _, said = predict(path, sql)
        agree(said, execute(delta_spark, path, sql))


@pytest.mark.parametrize("columns", ["id bigint", "c int", "id bigint, c int, n int"])
def test_replaced_columns_include_those_of_partitions(
    columns: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path)
    table = made(delta_spark, path, f"partitioned by (c) {MAPPED}")
    sql = f"alter table {table} replace columns ({columns})"
    _, said = predict(path, sql)
    agree(said, execute(delta_spark, path, sql))
