"""Shallow clones: what was predicted, and what Spark does."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.requirements import ABSOLUTE_PATHS
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.predict.table import PROTECTED_BEFORE
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.goals import TableClient
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.oracle import agree, execute
from tests.planning.oracle import look as seen
from tests.planning.random_tables import Place, age
from tests.planning.trial import carry_out, other_verdicts
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


@pytest.mark.parametrize(
    ("later", "moved", "verdict"),
    [
        pytest.param("widen", True, Verdict.OK, id="files from before the type change"),
        pytest.param("insert", False, Verdict.UNKNOWN, id="files from after the type change"),
    ],
)
def test_a_clone_may_or_may_not_leave_the_files_of_its_source(
    later: str, moved: bool, verdict: Verdict, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "clone")
    insert = f"insert into delta.`{source}` values (1)"
    delta_spark.sql(
        f"create table delta.`{source}` (id int) using delta "
        "tblproperties ('delta.enableTypeWidening' = 'true')"
    )
    if later == "widen":
        delta_spark.sql(insert)
    delta_spark.sql(f"alter table delta.`{source}` alter column id type bigint")
    if later == "insert":
        delta_spark.sql(insert)
    delta_spark.sql(f"create table delta.`{path}` shallow clone delta.`{source}`")
    given = _cloned(path)
    plan = plan_downgrade(given, DowngradeRequest(drop=("typeWidening",)))
    (change,) = plan.clients
    assert change.after is Verdict.UNKNOWN
    assert not [*carry_out(delta_spark, Place(path, path), plan.steps, given)]
    after = _cloned(path)
    assert (ABSOLUTE_PATHS in after.needs.hazards) is not moved
    # Only a verdict for absolute paths is left open, and only where they are gone.
    assert not [*other_verdicts(plan, given, after.needs)]
    for other in {Verdict.OK, Verdict.REFUSED, Verdict.WRONG} - {verdict}:
        wrong = plan._replace(clients=(change._replace(after=other),))
        assert [*other_verdicts(wrong, given, after.needs)]


def _cloned(path: str) -> PlanInput:
    """A clone as the planner reads it, used by a client whose handling of paths is unknown."""
    trino = TableClient(ClientCatalog().resolve("trino@476"), (Access.READ,))
    given = load_plan_input(path, {}, SparkSettings(), time.time())
    return given._replace(engine=RUNNING, clients=(trino,))
