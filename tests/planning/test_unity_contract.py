"""What Unity Catalog refuses on the tables that it manages.

The expectations are what Delta Spark 4.4.0 did on tables of Unity Catalog's open-source server and
its connector 0.6, in this order, on 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.droppable import find_droppable
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.protocol.protocol import Protocol
from tests.conftest import Ran
from tests.planning.test_classics import given
from tests.support.logs import Log, commit_info, metadata, protocol

CREATED = Table(
    Protocol.carrying(
        {
            *("appendOnly", "invariants", "catalogManaged", "inCommitTimestamp", "v2Checkpoint"),
            *("vacuumProtocolCheck", "deletionVectors", "columnMapping", "rowTracking"),
            "domainMetadata",
        }
    ),
    {
        "io.unitycatalog.tableId": "b6a0e38e-a96d-483e-95f2-155f7b4f1d2a",
        "delta.enableInCommitTimestamps": "true",
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
        "delta.checkpointPolicy": "v2",
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.checkpoint.writeStatsAsJson": "true",
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "3",
    },
    vectors=False,
    widened=False,
    row_ids=True,
    v2_checkpoint=False,
    domains=("delta.rowTracking",),
    traced=frozenset(),
    aged=frozenset(),
)
"""a managed table as the connector creates it"""
SET, DROP = "alter table t set tblproperties", "alter table t drop feature"
OUT_OF_CONTRACT = "Unity Catalog manages the table, and refuses to change its protocol while"
WITHOUT = "Unity Catalog manages the table, and refuses a protocol without"


IN_ORDER: tuple[tuple[str, str | None], ...] = (
    ("alter table t rename column extra to extra2", "Unity Catalog manages the table, and its"),
    (f"{DROP} v2Checkpoint", f"{WITHOUT} v2Checkpoint"),
    (f"{SET} ('delta.checkpointPolicy' = 'classic')", None),
    (f"{SET} ('delta.enableTypeWidening' = 'true')", f"{OUT_OF_CONTRACT} delta.checkpointPol"),
    (f"{SET} ('delta.checkpointPolicy' = 'v2')", None),
    (f"{SET} ('delta.enableTypeWidening' = 'true')", None),
    (f"{DROP} typeWidening", None),
    ("alter table t unset tblproperties ('delta.checkpoint.writeStatsAsJson')", None),
    (
        f"{SET} ('delta.enableChangeDataFeed' = 'true')",
        f"{OUT_OF_CONTRACT} delta.checkpoint.writeStatsAsJson is not true",
    ),
    (f"{SET} ('delta.checkpoint.writeStatsAsJson' = 'true')", None),
    (f"{SET} ('delta.enableChangeDataFeed' = 'true')", None),
    (f"{DROP} rowTracking", None),
    (
        f"{SET} ('delta.enableDeletionVectors' = 'false', "
        "'delta.feature.allowColumnDefaults' = 'supported')",
        f"{OUT_OF_CONTRACT} delta.enableDeletionVectors is not true",
    ),
    (f"{SET} ('delta.feature.allowColumnDefaults' = 'supported')", None),
    (f"{SET} ('delta.enableDeletionVectors' = 'false')", None),
    (f"{SET} ('my.own' = 'x')", None),
    (
        f"{SET} ('delta.enableRowTracking' = 'true')",
        f"{OUT_OF_CONTRACT} delta.enableDeletionVectors is not true",
    ),
    (f"{DROP} columnMapping", f"{OUT_OF_CONTRACT} delta.enableDeletionVectors is not true"),
)
"""statements, and how the refusal of each begins; `benchmarks/unity_oracle.py` executes them"""


def predict(sql: str, table: Table, engine: Engine | None = None) -> Outcome:
    (parsed,) = parse_script(sql)
    return predict_statement(parsed.statement, table, engine or Engine())


def test_statements_in_the_order_in_which_spark_ran_them() -> None:
    table = CREATED
    for sql, message in IN_ORDER:
        outcome = predict(sql, table)
        found = None if outcome.refusal is None else outcome.refusal.message
        assert (found or "").startswith(message or ""), sql
        assert (found is None) == (message is None), (sql, found)
        table = outcome.table


@pytest.mark.parametrize(
    "sql",
    [
        f"{SET} ('io.unitycatalog.tableId' = 'x')",
        "alter table t unset tblproperties ('io.unitycatalog.tableId')",
    ],
)
def test_an_id_whose_change_would_lock_out_all_clients_stays(sql: str) -> None:
    refusal = predict(sql, CREATED).refusal
    assert refusal is not None
    assert "io.unitycatalog.tableId" in refusal.message
    assert "cannot open the table" in refusal.message
    assert predict(f"{SET} ('a' = 'b')", CREATED).refusal is None


def test_features_that_the_catalog_requires_are_not_droppable() -> None:
    undroppable = find_droppable(CREATED, Engine()).undroppable
    assert undroppable["v2Checkpoint"].reason == f"{WITHOUT} v2Checkpoint"
    assert {"rowTracking", "columnMapping"}.isdisjoint(undroppable)
    given_ = given(CREATED.protocol)
    table = given_._replace(table=CREATED, needs=given_.needs._replace(by_name=True))
    plan = plan_downgrade(table, DowngradeRequest(drop=("v2Checkpoint",)))
    assert plan.steps == ()
    assert [each.feature for each in plan.blocked] == ["v2Checkpoint"]


def test_the_remedy_sets_what_is_missing() -> None:
    table = CREATED.with_properties({"delta.checkpointPolicy": "classic"}).without_properties(
        "delta.checkpoint.writeStatsAsStruct"
    )
    add = f"{SET} ('delta.enableTypeWidening' = 'true')"
    refusal = predict(add, table).refusal
    assert refusal is not None
    assert refusal.remedy == (
        "first SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', "
        "'delta.checkpoint.writeStatsAsStruct' = 'true')"
    )
    first = refusal.remedy.removeprefix("first SET TBLPROPERTIES ")
    assert predict(add, predict(f"{SET} {first}", table).table).refusal is None


def test_other_tables_and_engines_have_no_such_contract() -> None:
    off = f"{SET} ('delta.enableDeletionVectors' = 'false', 'delta.enableTypeWidening' = 'true')"
    assert predict(off, CREATED).refusal is not None
    databricks = Engine(EngineName.DATABRICKS)
    assert predict(off, CREATED, databricks).refusal is None
    elsewhere = CREATED.without_properties("io.unitycatalog.tableId")
    assert predict(off, elsewhere).refusal is None
    external = CREATED._replace(
        protocol=Protocol.carrying(CREATED.protocol.supported - {"catalogManaged"})
    )
    assert predict(off, external).refusal is None


@pytest.mark.parametrize(
    ("configuration", "droppable", "hint"),
    [
        ({}, "3.1.0", "DROP FEATURE removes it (delta-spark 3.1.0 or later)"),
        (
            {"io.unitycatalog.tableId": "b6a0e38e"},
            None,
            "keep it: catalogManaged prevents its removal",
        ),
    ],
)
def test_inspect_names_what_keeps_a_required_feature(
    log: Log,
    cli: Callable[..., Ran],
    configuration: dict[str, str],
    droppable: str | None,
    hint: str,
) -> None:
    names = ["catalogManaged", "v2Checkpoint", "vacuumProtocolCheck"]
    log.commit(
        0,
        commit_info(inCommitTimestamp=1_700_000_000_000),
        protocol(3, 7, names, [*names, "inCommitTimestamp"]),
        metadata({"delta.enableInCommitTimestamps": "true", **configuration}),
    )
    (table,) = cli("inspect", log.table, "--format", "json").json["tables"]
    (feature,) = (each for each in table["features"] if each["name"] == "v2Checkpoint")
    assert feature["droppable"]["delta_spark"] == droppable
    (finding,) = (each for each in table["findings"] if each["rule"] == "DP110")
    assert finding["hint"] == hint
