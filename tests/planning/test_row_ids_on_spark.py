"""Scripts that enable row tracking, and then write rows or change the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.predict.table import ROW_ID_COLUMNS
from deltaproto.planning.search.prediction import predict_statement
from tests.planning.oracle import agree, came_true, execute, look, newest, planned, predict
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta

_ENABLE = "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')"
_ADD = "alter table {t} set tblproperties ('delta.feature.rowTracking' = 'supported')"
_INSERT, _UPDATE = "insert into {t} values (3, 'c')", "update {t} set id = 9 where id = 1"
_CONSTRAINT = "alter table {t} add constraint c check (id > 0)"

SCRIPTS = {
    "enabled": (_ENABLE, _INSERT, _UPDATE, "optimize {t}"),
    "supported, then enabled": (_ADD, _INSERT, _CONSTRAINT, _ENABLE, _UPDATE),
    "with a constraint": (_CONSTRAINT, _ENABLE, "alter table {t} drop constraint c", _INSERT),
    "unset": (_ENABLE, "alter table {t} unset tblproperties ('delta.enableRowTracking')", _INSERT),
    "dropped": (_ENABLE, "alter table {t} drop feature rowTracking", _INSERT, _ENABLE, _UPDATE),
    "suspended": (
        _ENABLE,
        "alter table {t} set tblproperties ('delta.enableRowTracking' = 'false', "
        "'delta.rowTrackingSuspended' = 'true')",
        _INSERT,
        "optimize {t}",
        "alter table {t} drop feature rowTracking",
    ),
    "replaced": (
        "replace table {t} using delta tblproperties ('delta.enableRowTracking' = 'true') "
        "as select 1L id, 'x' s",
        _INSERT,
        _UPDATE,
    ),
}


@needs_delta("4.4", "the drop of rowTracking")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    delta_spark.sql(f"create table delta.`{path}` (id bigint, s string) using delta")
    delta_spark.sql(f"insert into delta.`{path}` values (1, 'a'), (2, 'b')")
    script = [each.format(t=f"delta.`{path}`") for each in SCRIPTS[name]]
    table = planned(path).table._replace(version=newest(path))
    for statement, each in zip(script, parse_script(";".join(script)), strict=True):
        said = predict_statement(each.statement, table, RUNNING)
        happened = execute(delta_spark, path, statement)
        assert said.refusal is None, statement
        agree(said, happened)
        after, table = look(path), said.table
        came_true(said, after, statement)
        named = [{*ROW_ID_COLUMNS} & each.configuration.keys() for each in (table, after)]
        assert named[0] == named[1], statement


@needs_delta("4.4", "the drop of rowTracking")
def test_suspended_row_tracking_is_not_enabled_by_the_statement_that_resumes_it(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    suspended = "'delta.rowTrackingSuspended' = "
    delta_spark.sql(
        f"create table {table} (id bigint, s string) using delta tblproperties ({suspended} 'true')"
    )
    delta_spark.sql(_INSERT.format(t=table))
    both = (
        f"alter table {table} set tblproperties "
        f"({suspended} 'false', 'delta.enableRowTracking' = 'true')"
    )
    resume = f"alter table {table} set tblproperties ({suspended} 'false')"
    for statement in (both, resume, _ENABLE.format(t=table)):
        _, said = predict(path, statement)
        assert (said.refusal is None) is (statement != both)
        agree(said, execute(delta_spark, path, statement))
