"""Protocols in a higher form than their features need, and the statement that stores the lowest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.execution.goal_limits import TableUse, find_unrequested_change
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.plan import Plan
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.goals import TableClient
from deltaproto.policy.local_catalog import load_local_policy
from tests.planning.oracle import agree, execute, planned, predict
from tests.planning.predicted_needs import load
from tests.planning.random_tables import Place
from tests.planning.trial import carry_out
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta
from tests.support.logs import Log, column, commit_info, metadata, protocol, schema_string

LOWEST = (
    "ALTER TABLE {t} SET TBLPROPERTIES "
    "('delta.minReaderVersion' = '1', 'delta.minWriterVersion' = '1')"
)
PROTOCOLS = {
    "(2,3)": protocol(2, 3),
    "(1,5)": protocol(1, 5),
    "(2,1)": protocol(2, 1),
    "a pair as lists": protocol(1, 7, None, ["appendOnly", "invariants"]),
    "no features": protocol(3, 7, [], []),
    "reader version 2": protocol(2, 7, None, ["changeDataFeed"]),
    "mapping": protocol(3, 7, ["columnMapping"], ["columnMapping", "clustering", "domainMetadata"]),
    "the lowest": protocol(3, 7, ["timestampNtz"], ["timestampNtz", "appendOnly"]),
}
STATEMENTS = (
    LOWEST,
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "ALTER TABLE {t} CLUSTER BY (id)",
    "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.appendOnly' = 'supported')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.columnMapping' = 'supported')",
    "ALTER TABLE {t} ADD COLUMNS (b int)",
)
MAPPED = schema_string(
    column("id", delta__columnMapping__id=1, delta__columnMapping__physicalName="col-1")
)
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.columnMapping.maxColumnId": "1",
    "delta.enableChangeDataFeed": "true",
}


def make_table(root: Path) -> str:
    """A table as Databricks and older releases of Delta Spark leave it."""
    features = ["changeDataFeed", "columnMapping", "invariants"]
    log = Log(root)
    stored: dict[str, Any] = protocol(3, 7, ["columnMapping"], features)
    log.commit(0, commit_info("CREATE TABLE"), stored, metadata(PROPERTIES, MAPPED))
    return log.table


def plan_for(kind: str, given: PlanInput, folder: Path) -> Plan:
    old = TableClient(ClientCatalog().resolve("delta-spark@2.1.0"), (Access.READ,))
    requests = {
        "lowest": DowngradeRequest(lowest=True),
        "versions": DowngradeRequest(to=(2, 7)),
        "clients": DowngradeRequest(clients=(old,)),
    }
    if kind in requests:
        return plan_downgrade(given, requests[kind])
    policy = folder / "policy.yaml"
    policy.write_text('policy_version: 1\ntables: {"**": {protocol: lowest}}\n')
    scope = ClientScope(load_local_policy(str(policy)), (), ())
    return scope.plan_for_policy(scope.with_clients(given)).plan


@needs_delta("4.4", "the protocols of its statements")
@pytest.mark.parametrize("name", PROTOCOLS)
def test_statements_change_the_form_as_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    for number, statement in enumerate(STATEMENTS):
        log = Log(tmp_path / f"t{number}")
        log.commit(0, commit_info("CREATE TABLE"), PROTOCOLS[name], metadata())
        sql = statement.format(t=f"delta.`{log.table}`")
        _, said = predict(log.table, sql)
        agree(said, execute(delta_spark, log.table, sql))
        if statement == LOWEST:
            assert planned(log.table).table.protocol == said.table.protocol.lowest()


@needs_delta("4.4", "the protocols of its statements")
@pytest.mark.parametrize("kind", ["lowest", "versions", "clients", "policy"])
def test_a_plan_stores_the_lowest_form(kind: str, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t")
    given = planned(path)
    plan = plan_for(kind, given, tmp_path)
    assert [step.sql for step in plan.steps] == [LOWEST.format(t=given.sql)]
    assert (
        find_unrequested_change(plan, TableUse(given.states, given.needs, ClientCatalog())) is None
    )
    assert [*carry_out(delta_spark, Place(path, path), plan.steps, given)] == []
    after = planned(path)
    assert after.table.protocol.versions == (2, 7)
    assert plan_for(kind, after, tmp_path).steps == ()


def test_the_plan_lowers_nothing_with_an_engine_that_keeps_the_form(tmp_path: Path) -> None:
    given = load(make_table(tmp_path / "t"))
    older = given._replace(engine=given.engine._replace(version="3.2.0"))
    assert plan_downgrade(older, DowngradeRequest(lowest=True)).steps == ()
