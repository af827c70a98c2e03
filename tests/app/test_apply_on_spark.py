"""A plan from a function, carried out by a function."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto import UsageError, apply, inspect_table, plan_downgrade, plan_upgrade, to_dict
from tests.support.engines import RUNNING, needs_drop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BY = str(RUNNING)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    path = tmp_path / "visits to Köln"
    spark.sql(
        f"create table delta.`{path}` (id int, place string) using delta "
        "tblproperties ('delta.enableDeletionVectors'='true')"
    )
    spark.sql(f"insert into delta.`{path}` values (1, 'a'), (2, 'b')")
    return str(path)


@needs_drop("deletionVectors")
@pytest.mark.slow
def test_a_plan_is_tried_dry_then_carried_out_and_then_done(table: str, tmp_path: Path) -> None:
    journal = tmp_path / "record"
    plan = plan_downgrade(table, drop=["deletionVectors"], history="keep", engine=BY)
    dry = apply(plan, journal=journal, dry_run=True, allow_irreversible=True)
    assert (dry.status, inspect_table(table).state.version) == ("ready", 1)
    assert dry.warning is not None
    done = apply(plan, journal=journal, allow_irreversible=True)
    assert (done.status, int(done.code)) == ("done", 0), done
    found = inspect_table(table)
    assert found.state.protocol == plan.protocol_after
    assert to_dict(done)["status"] == "done"
    again = apply(plan, journal=journal, allow_irreversible=True)
    assert (again.status, again.version) == ("done", found.state.version)
    lines = [json.loads(line) for line in (journal / "audit.jsonl").read_text().splitlines()]
    assert lines


@pytest.mark.slow
def test_a_gate_is_a_result_and_no_exception(table: str, tmp_path: Path) -> None:
    plan = plan_upgrade(table, enable=["v2Checkpoint"], engine=BY)
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy_version: 1\nclients:\n- client: deltalake@1.1.4\n  access: [read]\n")
    refused = apply(plan, journal=tmp_path / "j", policy=policy)
    assert (refused.status, int(refused.code) != 0) == ("refused", True)
    assert inspect_table(table).state.version == 1


@pytest.mark.slow
def test_a_stale_plan_changes_nothing(spark: SparkSession, table: str, tmp_path: Path) -> None:
    plan = plan_upgrade(table, enable=["changeDataFeed"], engine=BY)
    spark.sql(f"alter table delta.`{table}` add columns (more string)")
    refused = apply(plan, journal=tmp_path / "j")
    assert (refused.status, int(refused.code)) == ("refused", 4)
    assert inspect_table(table).state.version == 2


@pytest.mark.slow
def test_a_plan_that_was_changed_is_refused(table: str, tmp_path: Path) -> None:
    plan = plan_upgrade(table, enable=["changeDataFeed"], engine=BY)
    apply(plan, journal=tmp_path, dry_run=True)
    (file,) = tmp_path.glob("*.json")
    file.write_text(file.read_text().replace("enableChangeDataFeed", "enableRowTracking"))
    with pytest.raises(UsageError, match="was changed"):
        apply(plan, journal=tmp_path)
