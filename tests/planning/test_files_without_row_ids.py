"""Plans for tables with row tracking, some of whose data files have no row ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.clients.requirements import UNTRACKED_FILES
from deltaproto.execution.goal_limits import TableUse, find_unrequested_change
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.plan import Plan
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.goals import TableClient
from deltaproto.policy.local_catalog import load_local_policy
from tests.planning.oracle import planned
from tests.planning.predicted_needs import load
from tests.planning.random_tables import Place
from tests.planning.trial import carry_out
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

FEATURES = ["appendOnly", "columnMapping", "deletionVectors", "domainMetadata", "rowTracking"]
PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
    "delta.columnMapping.maxColumnId": "1",
    "delta.enableDeletionVectors": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
SCHEMA = schema_string(
    column("id", delta__columnMapping__id=1, delta__columnMapping__physicalName="col-1")
)
COUNTED = {"stats": json.dumps({"numRecords": 1})}
ADD_IDS = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
DROP = "ALTER TABLE {t} DROP FEATURE `%s`"
CHANGES_ROWS = DowngradeRequest(
    clients=(
        TableClient(ClientCatalog().resolve("delta-spark@4.4.0"), (Access.DML,)),
        TableClient(ClientCatalog().resolve("delta-spark@4.4.0"), (Access.MAINTAIN,)),
    )
)
# By name: the request, and the statements of the plan.
PLANS: dict[str, tuple[DowngradeRequest, list[str]]] = {
    "clients": (CHANGES_ROWS, [ADD_IDS]),
    "clients at the lowest protocol": (CHANGES_ROWS._replace(lowest=True), [ADD_IDS]),
    "mapping": (
        DowngradeRequest(drop=("columnMapping",)),
        [ADD_IDS, DROP % "columnMapping"],
    ),
    "vectors": (
        DowngradeRequest(drop=("deletionVectors",)),
        [ADD_IDS, DROP % "deletionVectors"],
    ),
    "row ids": (DowngradeRequest(drop=("rowTracking",)), [DROP % "rowTracking"]),
    "row ids and mapping": (
        DowngradeRequest(drop=("rowTracking", "columnMapping")),
        [DROP % "rowTracking", DROP % "columnMapping"],
    ),
}


def make_table(root: Path, **of_file: Any) -> PlanInput:
    log = Log(root)
    modern = protocol(3, 7, ["columnMapping", "deletionVectors"], FEATURES)
    log.commit(0, commit_info("CREATE TABLE"), modern, metadata(PROPERTIES, SCHEMA))
    log.commit(1, commit_info(), add(**of_file))
    found = load(log.table)
    assert UNTRACKED_FILES in found.needs.hazards
    return found


def statements(plan: Plan, table: PlanInput) -> list[str]:
    return [step.sql.replace(table.sql, "{t}") for step in plan.steps if step.sql is not None]


@pytest.mark.parametrize("name", PLANS)
def test_files_get_row_ids_where_that_suffices(name: str, tmp_path: Path) -> None:
    request, expected = PLANS[name]
    table = make_table(tmp_path / "t", **COUNTED)
    plan = plan_downgrade(table, request)
    assert statements(plan, table) == expected
    assert [step.expects for step in plan.steps] == [None] * len(expected)
    assert not plan.blocked
    assert table.facts is not None
    use = TableUse(table.states, table.needs, ClientCatalog())
    assert find_unrequested_change(plan, use) is None


@pytest.mark.parametrize("name", ["mapping", "vectors"])
def test_a_drop_that_cannot_read_the_files_is_blocked(name: str, tmp_path: Path) -> None:
    """Delta Spark gives no row ids to files without a number of rows."""
    plan = plan_downgrade(make_table(tmp_path / "t"), PLANS[name][0])
    assert plan.steps == ()
    (blocked,) = plan.blocked
    assert blocked.feature in PLANS[name][0].drop
    assert "some data files have no row ids" in blocked.reason
    assert "DROP FEATURE rowTracking" in blocked.remedy


def test_row_tracking_is_dropped_where_files_cannot_get_row_ids(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t")
    assert statements(plan_downgrade(table, CHANGES_ROWS), table) == [DROP % "rowTracking"]


def test_a_policy_keeps_row_tracking(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", **COUNTED)
    scope = policy_scope(tmp_path)
    found = scope.plan_for_policy(scope.with_clients(table)).plan
    assert statements(found, table) == [ADD_IDS]
    assert found.protocol_after == found.protocol_before
    use = TableUse(table.states, table.needs, ClientCatalog())
    assert find_unrequested_change(found, use) is None


def policy_scope(folder: Path) -> ClientScope:
    policy = folder / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients: [{client: delta-spark@4.4.0, access: [read, dml, maintain]}]\n"
    )
    return ClientScope(load_local_policy(str(policy)), (), ())


@needs_delta("4.4", "the drop of rowTracking")
@pytest.mark.parametrize("name", [*PLANS, "policy"])
def test_spark_does_what_is_planned(name: str, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    tracked = "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'"
    for statement in (
        f"create table {table} (id bigint) using delta tblproperties "
        f"({tracked}, 'delta.columnMapping.mode' = 'name')",
        f"insert into {table} select id from range(10)",
        f"delete from {table} where id = 3",
        f"alter table {table} drop feature rowTracking",
        f"restore table {table} to version as of 2",
    ):
        delta_spark.sql(statement)
    given = planned(path)
    if name == "policy":
        scope = policy_scope(tmp_path)
        plan = scope.plan_for_policy(scope.with_clients(given)).plan
    else:
        plan = plan_downgrade(given, PLANS[name][0])
    assert plan.steps
    assert [*carry_out(delta_spark, Place(path, path), plan.steps, given)] == []
    delta_spark.sql(f"update {table} set id = 5 where id = 4")
    assert UNTRACKED_FILES not in planned(path).needs.hazards
