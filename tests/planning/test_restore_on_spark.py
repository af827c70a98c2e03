"""RESTORE to a version that the log has, or that the script made: as predicted, and as in Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.clients.requirements import UNTRACKED_FILES
from deltaproto.plan_inputs.from_log import with_restored_versions
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.restore import FILES_MAY_BE_MISSING
from deltaproto.planning.impact import end_state_of
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.search.goals import requirements_after
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.oracle import agree, came_true, execute, look, newest, planned, predict
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta

# What Delta counts, names or refers to is not predicted.
_UNPREDICTED = (
    *("delta.columnMapping.maxColumnId", "delta.rowTracking.materialized"),
    *("delta.inCommitTimestampEnablement", "delta.requireCheckpointProtection"),
)
_NAMED_BY_RESTORE = ("delta.rowTracking.materialized", "delta.inCommitTimestampEnablement")
_MAPPED = "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'name')"
_UNMAPPED = "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'none')"
_RESTORE = "restore table {t} to version as of "
_VECTORS = (
    "create table {t} (id bigint) using delta "
    "tblproperties ('delta.enableDeletionVectors' = 'true')",
    "insert into {t} select id from range(10)",
    "delete from {t} where id = 3",
)
_NO_VECTORS = "alter table {t} drop feature deletionVectors"

# By name: how the table was created, and a script.
SCRIPTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "before a drop": ((*_VECTORS, _NO_VECTORS), (f"{_RESTORE}2", _NO_VECTORS)),
    "before a drop in the script": (_VECTORS, (_NO_VECTORS, f"{_RESTORE}2", _NO_VECTORS)),
    "before the feature": (
        (*_VECTORS, _NO_VECTORS),
        (f"{_RESTORE}0", "alter table {t} set tblproperties ('team' = 'a')"),
    ),
    "before the mapping": (
        (
            "create table {t} (id bigint, b int) using delta",
            "insert into {t} values (1, 2)",
            _MAPPED,
            "alter table {t} rename column b to c",
        ),
        (f"{_RESTORE}1", "alter table {t} add columns (d int)", f"{_RESTORE}3"),
    ),
    "before the mapping was removed": (
        (
            "create table {t} (id bigint, b int) using delta "
            "tblproperties ('delta.columnMapping.mode' = 'name')",
            "insert into {t} values (1, 2)",
            "alter table {t} rename column b to c",
            _UNMAPPED,
        ),
        (f"{_RESTORE}1", "alter table {t} drop column b"),
    ),
    "before timestamps": (
        (
            "create table {t} (id bigint) using delta",
            "insert into {t} values (1)",
            "alter table {t} set tblproperties ('delta.enableInCommitTimestamps' = 'true')",
        ),
        (f"{_RESTORE}1", "alter table {t} drop feature inCommitTimestamp", f"{_RESTORE}2"),
    ),
    "before row ids": (
        (
            "create table {t} (id bigint) using delta",
            "insert into {t} values (1)",
            "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')",
        ),
        (f"{_RESTORE}1", "alter table {t} drop feature rowTracking"),
    ),
    "before a constraint": (
        (
            "create table {t} (id bigint) using delta cluster by (id)",
            "insert into {t} values (1)",
            "alter table {t} add constraint c check (id > 0)",
            "alter table {t} cluster by none",
        ),
        (f"{_RESTORE}1", "alter table {t} drop feature checkConstraints", f"{_RESTORE}3"),
    ),
    "before V2 checkpoints were dropped": (
        (
            "create table {t} (id bigint) using delta "
            "tblproperties ('delta.checkpointPolicy' = 'v2')",
            "insert into {t} values (1)",
            "alter table {t} drop feature v2Checkpoint",
        ),
        (f"{_RESTORE}1", "alter table {t} drop feature v2Checkpoint"),
    ),
    "before V2 checkpoints": (
        (
            "create table {t} (id bigint) using delta",
            "insert into {t} values (1)",
            "alter table {t} set tblproperties "
            "('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3')",
            "insert into {t} values (2)",
        ),
        (f"{_RESTORE}1", "alter table {t} drop feature v2Checkpoint truncate history"),
    ),
    "before row tracking was disabled and dropped": (
        (
            "create table {t} (id bigint) using delta "
            "tblproperties ('delta.enableRowTracking' = 'true')",
            "insert into {t} values (1)",
            "update {t} set id = 2",
            "alter table {t} set tblproperties ('delta.enableRowTracking' = 'false')",
            "alter table {t} drop feature rowTracking",
        ),
        (f"{_RESTORE}3", "reorg table {t} apply (purge)"),
    ),
    "before timestamps were dropped": (
        (
            "create table {t} (id bigint) using delta "
            "tblproperties ('delta.enableInCommitTimestamps' = 'true')",
            "insert into {t} values (1)",
            "alter table {t} drop feature inCommitTimestamp",
        ),
        (f"{_RESTORE}1", "alter table {t} drop feature inCommitTimestamp"),
    ),
    "another table": (
        (
            "create table {t} (id bigint, p string) using delta partitioned by (p)",
            "insert into {t} values (1, 'a')",
            "replace table {t} (x int, v variant) using delta partitioned by (x)",
        ),
        (f"{_RESTORE}1", "alter table {t} set tblproperties ('team' = 'a')"),
    ),
}


@needs_delta("4.4", "every feature that the tables use")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_restores_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    created, script = (
        [each.format(t=f"delta.`{path}`") for each in part] for part in SCRIPTS[name]
    )
    for statement in created:
        delta_spark.sql(statement)
    parsed = tuple(parse_script(";".join(script)))
    given = with_restored_versions(planned(path), parsed, {}, SparkSettings())
    plan = plan_upgrade(given, UpgradeRequest(statements=parsed))
    assert not plan.blocked
    start = given.table._replace(version=newest(path))
    table = start.with_earlier({newest(path): start})
    for statement, each in zip(script, parsed, strict=True):
        said = predict_statement(each.statement, table, RUNNING)
        agree(said, execute(delta_spark, path, statement))
        table, after = said.table, look(path)
        came_true(said, after, statement)
        predicted, real = (
            {k: v for k, v in one.configuration.items() if not k.startswith(_UNPREDICTED)}
            for one in (table, after)
        )
        assert predicted == real, statement
        if "restore" in statement:
            assert said.warnings == (FILES_MAY_BE_MISSING,)
            named = [
                {key for key in one.configuration if key.startswith(_NAMED_BY_RESTORE)}
                for one in (said.table, after)
            ]
            assert named[0] == named[1], statement
            assert said.table.v2_checkpoint == after.v2_checkpoint, statement
            assert said.table.row_ids in (None, after.row_ids), statement
    assert plan.protocol_after == look(path).protocol


@needs_delta("4.4", "every feature that the tables use")
def test_deletion_vectors_are_not_restored_where_new_ones_are_disallowed(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    for each in (*_VECTORS, _NO_VECTORS):
        delta_spark.sql(each.format(t=table))
    statement = f"{_RESTORE}3".format(t=table)
    parsed = parse_script(statement)
    given = with_restored_versions(planned(path), parsed, {}, SparkSettings())
    said = predict_statement(parsed[0].statement, given.table, RUNNING)
    assert said.refusal is not None
    assert said.refusal.sure
    agree(said, execute(delta_spark, path, statement))


_BY_ID = "tblproperties ('delta.columnMapping.mode' = 'id')"
# By name: how the table was created, and the version to restore.
_OTHER_MODES = {
    "none to id": (
        (f"create table {{t}} (id bigint) using delta {_BY_ID}", _UNMAPPED),
        0,
    ),
    "none to id, after a drop": (
        (
            f"create table {{t}} (id bigint) using delta {_BY_ID}",
            "alter table {t} drop feature columnMapping",
        ),
        0,
    ),
    "id to name": (
        (
            "create table {t} (id bigint) using delta "
            "tblproperties ('delta.columnMapping.mode' = 'name')",
            f"replace table {{t}} (id bigint) using delta {_BY_ID}",
        ),
        0,
    ),
}


@needs_delta("4.4", "every feature that the tables use")
@pytest.mark.parametrize("name", _OTHER_MODES)
def test_a_mapping_mode_that_a_table_cannot_change_to_is_not_restored(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    created, version = _OTHER_MODES[name]
    for statement in created:
        delta_spark.sql(statement.format(t=f"delta.`{path}`"))
    statement = f"{_RESTORE}{version}".format(t=f"delta.`{path}`")
    parsed = parse_script(statement)
    given = with_restored_versions(planned(path), parsed, {}, SparkSettings())
    said = predict_statement(parsed[0].statement, given.table, RUNNING)
    assert said.refusal is not None
    assert said.refusal.sure
    agree(said, execute(delta_spark, path, statement))


@needs_delta("4.4", "every feature that the tables use")
def test_files_of_both_versions_have_no_row_ids_after_a_drop_of_row_tracking(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    tracked = "'delta.enableRowTracking' = 'true'"
    for statement in (
        f"create table {table} (id bigint) using delta tblproperties "
        f"({tracked}, 'delta.columnMapping.mode' = 'name')",
        f"insert into {table} select id from range(10)",
        f"insert into {table} values (44)",
        f"alter table {table} drop feature rowTracking",
    ):
        delta_spark.sql(statement)
    restore, update = f"{_RESTORE}2".format(t=table), f"update {table} set id = 5 where id = 4"
    parsed = parse_script(f"{restore}; {update}")
    given = with_restored_versions(planned(path), parsed, {}, SparkSettings())
    said = predict_statement(parsed[0].statement, given.table, RUNNING)
    agree(said, execute(delta_spark, path, restore))
    assert said.table.untracked is None
    later = predict_statement(parsed[1].statement, said.table, RUNNING)
    assert later.refusal is not None
    assert not later.refusal.sure

    for statement, sure in (
        (update, False),
        (f"optimize {table}", False),
        (_UNMAPPED.format(t=table), True),
        (f"alter table {table} drop feature columnMapping", True),
    ):
        before, said = predict(path, statement)
        assert before.untracked is True
        assert UNTRACKED_FILES in planned(path).needs.hazards
        assert said.refusal is not None, statement
        assert said.refusal.sure is sure, statement
        agree(said, execute(delta_spark, path, statement))
    for statement, left in (
        (f"insert overwrite {table} values (1)", None),
        (f"truncate table {table}", None),
        (f"replace table {table} (id bigint) using delta", False),
    ):
        assert predict(path, statement)[1].table.untracked is left
    enable = f"alter table {table} set tblproperties ({tracked})"
    before, said = predict(path, enable)
    ending = end_state_of(said.table, before)
    assert UNTRACKED_FILES not in requirements_after(planned(path).needs, ending).hazards
    for statement in (enable, update):
        _, said = predict(path, statement)
        agree(said, execute(delta_spark, path, statement))
        assert planned(path).table.untracked is False
        assert UNTRACKED_FILES not in planned(path).needs.hazards


def require_rewrite_by_reorg(delta_spark: DeltaSpark, path: str) -> None:
    """Require that REORG rewrites files, as it was predicted."""
    reorg = f"reorg table delta.`{path}` apply (purge)"
    _, said = predict(path, reorg)
    happened = execute(delta_spark, path, reorg)
    assert happened.operations == ["REORG"]
    agree(said, happened)


@needs_delta("4.4", "the drop of rowTracking")
def test_row_ids_stay_in_data_files_after_row_tracking_was_dropped(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    for statement in (
        f"create table {table} (id bigint) using delta "
        "tblproperties ('delta.enableRowTracking' = 'true')",
        f"insert into {table} select id from range(10)",
        f"update {table} set id = 22 where id = 2",
        f"alter table {table} drop feature rowTracking",
    ):
        delta_spark.sql(statement)
    require_rewrite_by_reorg(delta_spark, path)


@needs_delta("4.4", "row tracking of clones")
def test_the_files_of_a_clone_have_row_ids_in_columns_of_other_names(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path, source = str(tmp_path / "t"), f"delta.`{tmp_path / 'source'}`"
    for statement in (
        f"create table {source} (id bigint) using delta "
        "tblproperties ('delta.enableRowTracking' = 'true')",
        f"insert into {source} select id from range(10)",
        f"update {source} set id = 22 where id = 2",
        f"create table delta.`{path}` shallow clone {source}",
    ):
        delta_spark.sql(statement)
    require_rewrite_by_reorg(delta_spark, path)
