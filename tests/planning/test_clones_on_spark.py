"""A clone of a table with checkpointProtection: what was predicted, and what Spark does."""

from __future__ import annotations

import time
from pathlib import Path

from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.predict.table import PROTECTED_BEFORE
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.oracle import agree, execute
from tests.planning.oracle import look as seen
from tests.planning.random_tables import age
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta

pytestmark = needs_delta("4.1", "fast drops, and the protection that a clone inherits")


def test_a_clone_keeps_the_protection_that_it_inherits(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "clone")
    delta_spark.sql(
        f"create table delta.`{source}` (id bigint) using delta "
        "tblproperties ('delta.feature.vacuumProtocolCheck' = 'supported')"
    )
    delta_spark.sql(f"insert into delta.`{source}` values (1)")
    delta_spark.sql(f"alter table delta.`{source}` drop feature vacuumProtocolCheck")
    delta_spark.sql(f"create table delta.`{path}` shallow clone delta.`{source}`")
    age(path, 72)
    given = load_plan_input(path, {}, SparkSettings(), time.time())._replace(engine=RUNNING)
    plan = plan_downgrade(given, DowngradeRequest(to=(1, 2)))
    assert not plan.steps
    assert "UNSET TBLPROPERTIES" in plan.blocked[0].remedy
    drop = f"alter table delta.`{path}` drop feature checkpointProtection truncate history"
    (each,) = parse_script(drop)
    agree(each.statement.outcome(given.table, RUNNING), execute(delta_spark, path, drop))
    for statement in (
        f"alter table delta.`{path}` unset tblproperties ('{PROTECTED_BEFORE}')",
        drop,
    ):
        (each,) = parse_script(statement)
        said = each.statement.outcome(seen(path), RUNNING)
        agree(said, execute(delta_spark, path, statement))
    assert "checkpointProtection" not in seen(path).protocol.supported
