"""Row ids for data files whose number of rows the log does not have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.plan_inputs.from_log import with_restored_versions
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.restore import ROW_IDS_MAY_BE_REFUSED
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.predict.set_properties import UNCOUNTED
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.oracle import agree, came_true, execute, look, newest, planned
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = needs_delta("4.4", "the drop of rowTracking")

_ENABLE = "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')"
_ADD = "alter table {t} set tblproperties ('delta.feature.rowTracking' = 'supported')"
_OVERWRITE = "insert overwrite {t} values (3)"
_RESTORE = "restore table {t} to version as of 0"

# By name: what was done after CONVERT TO DELTA, and a script.
SCRIPTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "enabled": ((), (_ENABLE,)),
    "enabled again": ((_ADD,), (_ENABLE,)),
    "enabled beside others": (
        (),
        ("alter table {t} set tblproperties ('team' = 'a', 'delta.enableRowTracking' = 'true')",),
    ),
    "supported only": ((), (_ADD, "insert into {t} values (3)")),
    "after more rows": (("insert into {t} values (3)",), (_ENABLE,)),
    "after a checkpoint": (
        (
            "alter table {t} set tblproperties ('delta.checkpointInterval' = '1')",
            "insert into {t} values (3)",
        ),
        (_ENABLE,),
    ),
    "after deletion vectors": (
        (
            "alter table {t} set tblproperties ('delta.enableDeletionVectors' = 'true')",
            "delete from {t} where id = 1",
        ),
        (_ENABLE,),
    ),
    "written again": ((_OVERWRITE,), (_ENABLE,)),
    "replaced by the script": ((), ("replace table {t} (id bigint) using delta", _ENABLE)),
    "restored": ((_OVERWRITE, _ENABLE), (_RESTORE,)),
    "restored where row ids are supported": ((_OVERWRITE, _ADD), (_RESTORE,)),
    "restored without row ids": ((_OVERWRITE,), (_RESTORE, _ENABLE)),
}


def convert(delta_spark: DeltaSpark, path: Path) -> str:
    """A table of one file whose rows Delta did not count."""

    def write(spark: SparkSession) -> None:
        spark.range(5).coalesce(1).write.parquet(str(path))

    delta_spark.run(f"write five rows to {path}", write)
    delta_spark.sql(f"convert to delta parquet.`{path}` no statistics")
    return str(path)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = convert(delta_spark, tmp_path / "t")
    before, script = ([each.format(t=f"delta.`{path}`") for each in part] for part in SCRIPTS[name])
    for statement in before:
        delta_spark.sql(statement)
    parsed = tuple(parse_script(";".join(script)))
    table = with_restored_versions(planned(path), parsed, {}, SparkSettings()).table
    table = table._replace(version=newest(path))
    for statement, each in zip(script, parsed, strict=True):
        said = predict_statement(each.statement, table, RUNNING)
        agree(said, execute(delta_spark, path, statement))
        came_true(said, look(path), statement)
        table = said.table


@pytest.mark.parametrize(
    "statement", ["optimize {t}", "update {t} set id = 9 where id = 1", "delete from {t}"]
)
def test_it_is_unknown_which_files_are_written_again(
    statement: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = convert(delta_spark, tmp_path / "t")
    start = planned(path).table._replace(version=newest(path))
    assert start.uncounted_files
    for each in parse_script(statement.format(t=f"delta.`{path}`")):
        after = predict_statement(each.statement, start, RUNNING).table
        assert after.uncounted_files is None
        (enabled,) = parse_script(_ENABLE.format(t=f"delta.`{path}`"))
        refusal = predict_statement(enabled.statement, after, RUNNING).refusal
        assert refusal is not None
        assert (refusal.error, refusal.sure) == (UNCOUNTED, False)


def test_some_of_several_files_may_come_back(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = convert(delta_spark, tmp_path / "t")
    for each in ("insert into {t} values (7)", _ADD):
        delta_spark.sql(each.format(t=f"delta.`{path}`"))
    parsed = parse_script(_RESTORE.format(t=f"delta.`{path}`"))
    given = with_restored_versions(planned(path), parsed, {}, SparkSettings())
    said = predict_statement(parsed[0].statement, given.table, RUNNING)
    assert ROW_IDS_MAY_BE_REFUSED in said.warnings
    agree(said, execute(delta_spark, path, _RESTORE.format(t=f"delta.`{path}`")))


@pytest.mark.parametrize(
    "asked",
    [
        UpgradeRequest(set={"delta.enableRowTracking": "true"}),
        UpgradeRequest(enable=(FeatureToEnable("rowTracking", None, ()),)),
    ],
    ids=["property", "feature"],
)
def test_a_plan_is_blocked(asked: UpgradeRequest, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    plan = plan_upgrade(planned(convert(delta_spark, tmp_path / "t")), asked)
    assert not plan.steps
    assert [each.error for each in plan.blocked] == [UNCOUNTED]
