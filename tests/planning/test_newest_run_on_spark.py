"""Old history becomes young again with the next commit, unless a checkpoint comes before that."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from deltaproto.plan_inputs import from_log
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.search.goals import HistoryChoice
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.statement import DropFeature, SetProperties
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.oracle import agree, execute
from tests.planning.random_tables import Place, age
from tests.planning.trial import carry_out
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING


def make(delta_spark: DeltaSpark, path: Path, *, interval: int) -> str:
    """A table whose history of three versions shows V2 checkpoints, and is old."""
    name = f"delta.`{path}`"
    delta_spark.sql(
        f"create table {name} (id bigint) using delta tblproperties "
        f"('delta.checkpointPolicy'='v2', 'delta.enableInCommitTimestamps'='true', "
        f"'delta.checkpointInterval'='{interval}')"
    )
    delta_spark.sql(f"insert into {name} values (1)")
    delta_spark.sql(f"alter table {name} unset tblproperties ('delta.checkpointPolicy')")
    age(str(path), 72)
    return str(path)


@pytest.mark.parametrize(
    ("interval", "first", "at_once"), [(10, False, True), (10, True, False), (3, True, True)]
)
def test_a_commit_before_the_truncation(
    delta_spark: DeltaSpark, tmp_path: Path, interval: int, first: bool, at_once: bool
) -> None:
    path = make(delta_spark, tmp_path / "t", interval=interval)
    table = from_log.load_plan_input(path, {}, SparkSettings(), time.time()).table
    assert (table.traced, table.aged_in_newest_run) == (frozenset(), {"v2Checkpoint"})
    if first:
        before = SetProperties({"delta.appendOnly": "false"})
        said = predict_statement(before, table, RUNNING)
        agree(said, execute(delta_spark, path, before.sql(f"delta.`{path}`")))
        table = said.table
    drop = DropFeature("v2Checkpoint", truncate=True)
    said = predict_statement(drop, table, RUNNING)
    assert (said.refusal is None) is at_once
    agree(said, execute(delta_spark, path, drop.sql(f"delta.`{path}`")))


def test_the_plan_takes_first_what_would_have_to_wait_later(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = make(delta_spark, tmp_path / "t", interval=10)
    given = from_log.load_plan_input(path, {}, SparkSettings(), time.time())._replace(
        engine=RUNNING
    )
    asked = DowngradeRequest(
        drop=("inCommitTimestamp", "v2Checkpoint"), history=HistoryChoice.TRUNCATE
    )
    plan = plan_downgrade(given, asked)
    assert [step.feature for step in plan.steps] == ["v2Checkpoint", "inCommitTimestamp"]
    assert list(carry_out(delta_spark, Place(path, path), plan.steps, given)) == []
