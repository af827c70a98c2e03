"""The cases that everybody meets, each as the planner answers it.

That Spark does what is said here is what the oracle tests show.
"""

from __future__ import annotations

from typing import Any

import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.clients.requirements import table_requirements
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.enable import FeatureToEnable, disabling_statements
from deltaproto.planning.engine import Engine, EngineName, parse_engine
from deltaproto.planning.plan import Fingerprint, Plan
from deltaproto.planning.predict.schema import Atomic, Column, Struct
from deltaproto.planning.request import PlanInput, UpgradeRequest
from deltaproto.planning.search.goals import HistoryChoice, TableClient
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.feature_catalog import all_features
from deltaproto.protocol.layers import feature_states
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from tests.planning.bare import bare_table

BASIC = {"appendOnly", "invariants"}
DROP, WAIT = "drop-feature", "wait"


def given(
    protocol: Protocol, configuration: dict[str, str] | None = None, **seen: Any
) -> PlanInput:
    """A table whose files and history hold nothing but what is said."""
    plain = bare_table(protocol, configuration or {})
    metadata = Metadata("id", schema_string='{"fields": []}', configuration=configuration or {})
    states = feature_states(protocol, metadata, {}, {})
    states = tuple(
        state._replace(present=False) if state.present is None else state for state in states
    )
    usage = {state.name: bool(state.enabled or state.present) for state in states}
    return PlanInput(
        name="t",
        location="file:///t",
        sql="t",
        table=plain._replace(**seen),
        needs=table_requirements(protocol, usage, configuration or {}),
        states=states,
        fingerprint=Fingerprint("id", 0, protocol, None),
    )


def carrying(*names: str) -> Protocol:
    return Protocol.carrying(BASIC | {*names})


def use(client: str, *access: Access) -> TableClient:
    return TableClient(ClientCatalog().resolve(client), access or (Access.READ, Access.APPEND))


def actions(plan: Plan) -> list[str]:
    return [str(step.action) for step in plan.steps]


def statements(plan: Plan) -> list[str | None]:
    return [step.sql for step in plan.steps]


def test_2_5_with_column_mapping_leaves_checkpoint_protection_when_dropped_fast() -> None:
    table = given(Protocol(2, 5), {"delta.columnMapping.mode": "name"})
    plan = plan_downgrade(table, DowngradeRequest(drop=("columnMapping",)))
    (step,) = plan.steps
    assert step.commits == (5, 5)
    assert step.rewrites.which == "all"
    assert plan.protocol_after.min_reader_version == 1
    assert plan.protocol_after.writer_features == {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "generatedColumns",
        "invariants",
    }


def test_2_5_with_column_mapping_to_1_4_waits_once() -> None:
    table = given(Protocol(2, 5), {"delta.columnMapping.mode": "name"})
    plan = plan_downgrade(table, DowngradeRequest(to=(1, 4)))
    assert actions(plan) == [DROP, WAIT, DROP]
    assert plan.protocol_after == Protocol(1, 4)
    assert plan.point_of_no_return == "s3"


def test_deletion_vectors_for_delta_rs_writers_cost_the_history() -> None:
    table = given(
        carrying("deletionVectors"), {"delta.enableDeletionVectors": "true"}, vectors=True
    )
    plan = plan_downgrade(table, DowngradeRequest(clients=(use("deltalake/engine@0.25.0"),)))
    assert actions(plan) == [DROP, WAIT, DROP]
    assert plan.protocol_after == Protocol(1, 2)
    reading = plan_downgrade(
        table, DowngradeRequest(clients=(use("deltalake/pyarrow@0.25.0", Access.READ),))
    )
    assert actions(reading) == [DROP]
    assert "checkpointProtection" in reading.protocol_after.supported


def test_clustering_never_goes() -> None:
    table = given(carrying("clustering"), clustering=("id",))
    plan = plan_downgrade(table, DowngradeRequest(drop=("clustering",)))
    assert not plan.steps
    (blocked,) = plan.blocked
    assert blocked.feature == "clustering"
    assert blocked.error == "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"
    assert "new one" in blocked.remedy


def test_only_delta_spark_is_known_to_skip_clustered_files() -> None:
    table = given(carrying("clustering", "deletionVectors"), clustering=("id",), vectors=True)
    request = UpgradeRequest(enable=(FeatureToEnable("icebergCompatV2"),))
    assert actions(plan_upgrade(table, request)).count("cluster-by") == 2
    databricks = table._replace(engine=Engine(EngineName.DATABRICKS, "16.4"))
    assert "cluster-by" not in actions(plan_upgrade(databricks, request))


def test_domain_metadata_is_pinned_by_clustering() -> None:
    table = given(carrying("clustering"), clustering=())
    (blocked,) = plan_downgrade(table, DowngradeRequest(drop=("domainMetadata",))).blocked
    assert blocked.feature == "domainMetadata"
    assert blocked.error == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"
    assert "clustering" in blocked.reason


def test_an_inactive_iceberg_compat_pins_column_mapping() -> None:
    table = given(carrying("icebergCompatV2"), {"delta.enableIcebergCompatV2": "false"})
    (blocked,) = plan_downgrade(table, DowngradeRequest(drop=("columnMapping",))).blocked
    assert "icebergCompatV2" in blocked.reason


def test_constraints_go_before_check_constraints() -> None:
    table = given(Protocol(1, 3), {"delta.constraints.positive": "id > 0"})
    plan = plan_downgrade(table, DowngradeRequest(drop=("checkConstraints",)))
    assert statements(plan) == [
        "ALTER TABLE t DROP CONSTRAINT `positive`",
        "ALTER TABLE t DROP FEATURE `checkConstraints`",
    ]
    assert plan.steps[0].undo == "ALTER TABLE t ADD CONSTRAINT `positive` CHECK (id > 0)"
    assert plan.protocol_after == Protocol(1, 2)


def test_row_tracking_goes_before_domain_metadata() -> None:
    table = given(carrying("rowTracking"), {"delta.enableRowTracking": "true"}, row_ids=True)
    plan = plan_downgrade(table, DowngradeRequest(drop=("domainMetadata", "rowTracking")))
    assert [step.feature for step in plan.steps] == ["rowTracking", "domainMetadata"]
    assert plan.protocol_after == Protocol(1, 2)
    assert not plan.steps[0].reversible


def test_a_required_feature_takes_its_dependent_with_it() -> None:
    table = given(carrying("rowTracking"), {"delta.enableRowTracking": "true"}, row_ids=True)
    plan = plan_downgrade(table, DowngradeRequest(drop=("domainMetadata",)))
    assert [step.feature for step in plan.steps] == ["rowTracking", "domainMetadata"]


def test_a_client_of_writer_4_is_let_in_by_filling_the_gaps() -> None:
    table = given(carrying("changeDataFeed"), {"delta.enableChangeDataFeed": "true"})
    plan = plan_downgrade(table, DowngradeRequest(to=(1, 4)))
    (step,) = plan.steps
    assert step.action == "raise-versions"
    assert plan.protocol_after == Protocol(1, 4)
    assert any("generatedColumns" in loss for loss in step.losses)


def test_uniform_switches_vectors_off_and_purges_them_first() -> None:
    table = given(
        carrying("deletionVectors"), {"delta.enableDeletionVectors": "true"}, vectors=True
    )
    plan = plan_upgrade(table, UpgradeRequest(enable=(FeatureToEnable("icebergCompatV2"),)))
    assert [str(step.action) for step in plan.steps][:2] == ["set-properties", "reorg"]
    assert {"columnMapping", "icebergCompatV2"} <= plan.protocol_after.supported
    assert any("icebergCompatV2" in loss for step in plan.steps for loss in step.losses)


def test_unused_type_widening_goes_at_once_with_truncate_history() -> None:
    table = given(carrying("typeWidening"), {"delta.enableTypeWidening": "true"})
    plan = plan_downgrade(table, DowngradeRequest(to=(1, 2)))
    (step,) = plan.steps
    assert step.sql == "ALTER TABLE t DROP FEATURE `typeWidening` TRUNCATE HISTORY"
    assert step.expects is None
    assert plan.protocol_after == Protocol(1, 2)


def test_used_type_widening_rewrites_and_waits() -> None:
    table = given(carrying("typeWidening"), {"delta.enableTypeWidening": "true"}, widened=True)
    plan = plan_downgrade(table, DowngradeRequest(to=(1, 2)))
    assert actions(plan) == [DROP, WAIT, DROP]
    assert plan.steps[0].rewrites.which == "widened"


def test_v2_checkpoints_go_fast_where_history_is_to_be_kept() -> None:
    table = given(carrying("v2Checkpoint"), {"delta.checkpointPolicy": "v2"})
    plan = plan_downgrade(
        table, DowngradeRequest(drop=("v2Checkpoint",), history=HistoryChoice.KEEP)
    )
    (step,) = plan.steps
    assert step.operations[0] == "SET TBLPROPERTIES"
    assert plan.protocol_after == carrying("checkpointProtection")


def test_a_v2_checkpoint_is_gone_with_the_checkpoint_of_another_drop() -> None:
    table = given(
        carrying("v2Checkpoint", "columnMapping"),
        {"delta.checkpointPolicy": "classic", "delta.columnMapping.mode": "name"},
        v2_checkpoint=True,
        traced=frozenset({"v2Checkpoint", "columnMapping"}),
    )
    asked = DowngradeRequest(drop=("v2Checkpoint", "columnMapping"), history=HistoryChoice.TRUNCATE)
    plan = plan_downgrade(table, asked)
    for step in plan.steps:
        assert step.feature != "v2Checkpoint" or "SET TBLPROPERTIES" not in step.operations
    alone = plan_downgrade(table, asked._replace(drop=("v2Checkpoint",)))
    assert alone.steps[0].operations == ("SET TBLPROPERTIES", "Empty Commit")


def test_several_fast_drops_share_one_removal_of_checkpoint_protection() -> None:
    table = given(
        carrying("deletionVectors", "v2Checkpoint", "columnMapping"),
        {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
    )
    plan = plan_downgrade(table, DowngradeRequest(to=(1, 2)))
    (shared,) = [each for each in plan.alternatives if each.name == "fast-then-truncate"]
    assert [step.feature for step in shared.steps] == [
        "columnMapping",
        "deletionVectors",
        "v2Checkpoint",
        None,
        "checkpointProtection",
    ]
    assert shared.protocol_after == plan.protocol_after == Protocol(1, 2)


def test_everything_at_once_to_1_2() -> None:
    names = ("deletionVectors", "columnMapping", "typeWidening", "rowTracking", "v2Checkpoint")
    more = ("inCommitTimestamp", "vacuumProtocolCheck", "checkConstraints")
    table = given(
        carrying(*names, *more),
        {
            "delta.enableDeletionVectors": "true",
            "delta.columnMapping.mode": "name",
            "delta.enableTypeWidening": "true",
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.checkpointPolicy": "v2",
            "delta.constraints.c": "id > 0",
        },
        vectors=True,
        widened=True,
        row_ids=True,
    )
    plan = plan_downgrade(table, DowngradeRequest(to=(1, 2)))
    assert not plan.blocked
    assert plan.protocol_after == Protocol(1, 2)
    assert actions(plan).count(WAIT) == 1
    # Mapping rewrites every file, so nothing is left for the others to rewrite.
    assert [s.feature for s in plan.steps if s.rewrites.which != "none"] == ["columnMapping"]


def test_what_nothing_uses_goes_and_what_is_used_stays() -> None:
    table = given(
        carrying("deletionVectors", "vacuumProtocolCheck"),
        {"delta.enableDeletionVectors": "true"},
    )
    plan = plan_downgrade(table, DowngradeRequest(lowest=True))
    assert [step.feature for step in plan.steps] == ["vacuumProtocolCheck"]
    assert "deletionVectors" in {each.feature for each in plan.kept}
    every = plan_downgrade(table, DowngradeRequest(lowest=True, include_enabled=True))
    assert every.protocol_after == Protocol(1, 2)


def test_nothing_to_do_is_an_empty_plan() -> None:
    for asked in (
        DowngradeRequest(lowest=True),
        DowngradeRequest(to=(1, 2)),
        DowngradeRequest(drop=("typeWidening",)),
    ):
        plan = plan_downgrade(given(Protocol(1, 2)), asked)
        assert not plan.steps
        assert not plan.blocked
        assert plan.protocol_after == Protocol(1, 2)


def test_a_goal_out_of_reach_names_each_reason_and_the_nearest_protocol() -> None:
    table = given(
        carrying("changeDataFeed", "deletionVectors"), {"delta.enableDeletionVectors": "true"}
    )
    plan = plan_downgrade(table, DowngradeRequest(to=(1, 2)))
    assert not plan.steps
    assert [each.feature for each in plan.blocked] == ["changeDataFeed"]
    (nearest,) = plan.alternatives
    assert nearest.name == "nearest"
    assert not nearest.reaches_goal
    assert nearest.protocol_after == Protocol(1, 4)


def test_an_engine_before_fast_drops_waits_for_every_protected_feature() -> None:
    table = given(carrying("v2Checkpoint"), {"delta.checkpointPolicy": "v2"})
    old = table._replace(engine=parse_engine("delta-spark@3.3"))
    plan = plan_downgrade(old, DowngradeRequest(drop=("v2Checkpoint",)))
    assert actions(plan) == [DROP, WAIT, DROP]
    older = table._replace(engine=parse_engine("delta-spark@3.0"))
    (blocked,) = plan_downgrade(older, DowngradeRequest(drop=("v2Checkpoint",))).blocked
    assert "3.1" in blocked.remedy


def test_a_name_that_nobody_knows_is_no_plan_with_nothing_to_do() -> None:
    (blocked,) = plan_downgrade(
        given(Protocol(1, 2)), DowngradeRequest(drop=("nobodysFeature",))
    ).blocked
    assert blocked.error == "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"
    assert not plan_downgrade(given(Protocol(1, 2)), DowngradeRequest(drop=("collations",))).blocked


def test_an_engine_that_does_not_know_the_table_blocks() -> None:
    table = given(carrying("rowTracking", "typeWidening"), {"delta.enableRowTracking": "true"})
    old = table._replace(engine=parse_engine("delta-spark@3.2"))
    plan = plan_downgrade(old, DowngradeRequest(drop=("rowTracking",)))
    assert [each.feature for each in plan.blocked] == ["typeWidening"]
    assert not plan_downgrade(old, DowngradeRequest(drop=("clustering",))).blocked


def test_an_isolation_level_comes_with_what_it_means() -> None:
    plan = plan_upgrade(given(Protocol(1, 2)), UpgradeRequest(isolation="serializable"))
    assert plan.steps[0].sql == (
        "ALTER TABLE t SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')"
    )
    assert any("appends" in warning for warning in plan.warnings)


def test_what_only_a_catalog_makes_is_refused() -> None:
    for name in ("catalogManaged", "adaptiveMetadata-preview"):
        asked = UpgradeRequest(set={f"delta.feature.{name}": "supported"})
        (blocked,) = plan_upgrade(given(Protocol(1, 2)), asked).blocked
        assert name in blocked.reason
        (blocked,) = plan_upgrade(
            given(Protocol(1, 2)), UpgradeRequest(enable=(FeatureToEnable(name),))
        ).blocked
        assert blocked.feature == name


def test_what_the_engine_refuses_is_no_way_back() -> None:
    plan = plan_upgrade(
        given(carrying()), UpgradeRequest(enable=(FeatureToEnable("icebergCompatV3"),))
    )
    assert [step.undo for step in plan.steps] == [None]
    plan = plan_upgrade(
        given(carrying()), UpgradeRequest(enable=(FeatureToEnable("icebergCompatV2"),))
    )
    (step,) = plan.steps
    assert step.undo is not None
    assert "UNSET TBLPROPERTIES ('delta.enableIcebergCompatV2')" in step.undo
    assert "DROP FEATURE" not in step.undo


def test_iceberg_compat_v3_is_refused_while_row_tracking_is_on() -> None:
    table = given(
        carrying("rowTracking", "columnMapping"),
        {"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"},
    )
    (blocked,) = plan_upgrade(
        table, UpgradeRequest(enable=(FeatureToEnable("icebergCompatV3"),))
    ).blocked
    assert "row tracking" in blocked.reason


def test_an_engine_that_does_not_know_a_feature_does_not_enable_it() -> None:
    """Its property would be set, and the protocol would stay without the feature."""
    table = given(Protocol(1, 2))._replace(engine=parse_engine("delta-spark@3.1"))
    for name in ("typeWidening", "inCommitTimestamp", "variantShredding-preview"):
        plan = plan_upgrade(table, UpgradeRequest(enable=(FeatureToEnable(name),)))
        assert not plan.steps
        (blocked,) = plan.blocked
        assert (blocked.feature, blocked.reason) == (name, "delta-spark@3.1 does not support it")
        assert blocked.remedy.startswith("--engine delta-spark@")


def test_a_feature_that_never_goes_is_a_point_of_no_return_whatever_brings_it() -> None:
    columns = Struct((Column("id", Atomic("long")),))
    table = given(Protocol(1, 2), schema=columns)
    clustered = plan_upgrade(
        table, UpgradeRequest(enable=(FeatureToEnable("clustering", columns=("id",)),))
    )
    assert clustered.point_of_no_return == "s1"
    for sql, feature in (
        ("ALTER TABLE t CLUSTER BY (id)", "clustering"),
        ("ALTER TABLE t ADD COLUMN v VARIANT", "variantType"),
    ):
        (step,) = plan_upgrade(table, UpgradeRequest(statements=tuple(parse_script(sql)))).steps
        assert any(loss.startswith(f"{feature} is added to the protocol") for loss in step.losses)
        assert not step.reversible


def test_statements_of_ones_own_follow_the_engine() -> None:
    """Before Delta 3.3 lists stay lists, and only tables made with clustering are clustered."""
    listed = given(Protocol(1, 7, None, frozenset(BASIC)))
    constrained = UpgradeRequest(
        statements=tuple(parse_script("ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0)"))
    )
    for version, after in (
        ("3.2", Protocol(1, 7, None, frozenset(BASIC | {"checkConstraints"}))),
        ("3.3", Protocol(1, 3)),
    ):
        engine = parse_engine(f"delta-spark@{version}")
        plan = plan_upgrade(listed._replace(engine=engine), constrained)
        assert plan.protocol_after == after
    old = listed._replace(engine=parse_engine("delta-spark@3.2"))
    plan = plan_upgrade(
        old, UpgradeRequest(enable=(FeatureToEnable("clustering", columns=("id",)),))
    )
    assert [each.error for each in plan.blocked] == ["DELTA_ALTER_TABLE_CLUSTER_BY_NOT_ALLOWED"]


def test_a_property_adds_what_it_does_in_that_release() -> None:
    widening = UpgradeRequest(set={"delta.enableTypeWidening": "true"})
    for version, name in (("3.2", "typeWidening-preview"), ("4.0", "typeWidening")):
        old = given(carrying())._replace(engine=parse_engine(f"delta-spark@{version}"))
        assert name in plan_upgrade(old, widening).protocol_after.supported
    before = given(carrying())._replace(engine=parse_engine("delta-spark@3.1"))
    (blocked,) = plan_upgrade(before, widening).blocked
    assert blocked.error == "DELTA_UNKNOWN_CONFIGURATION"


@pytest.mark.parametrize("engine", ["delta-spark@3.0", "delta-spark@3.3", "databricks@15.4"])
def test_what_is_enabled_is_there_afterwards_or_nothing_is_done(engine: str) -> None:
    table = given(carrying())._replace(engine=parse_engine(engine))
    for feature in all_features():
        columns = ("id",) if feature.name == "clustering" else ()
        plan = plan_upgrade(
            table, UpgradeRequest(enable=(FeatureToEnable(feature.name, columns=columns),))
        )
        assert bool(plan.blocked) is (feature.name not in plan.protocol_after.supported)


def test_the_change_feed_has_a_former_name() -> None:
    old = {"delta.enableChangeDataCapture": "true"}
    plan = plan_upgrade(given(Protocol(1, 2)), UpgradeRequest(set=old))
    assert "changeDataFeed" in plan.protocol_after.supported
    assert not plan_upgrade(
        given(Protocol(1, 4), old), UpgradeRequest(enable=(FeatureToEnable("changeDataFeed"),))
    ).steps
    table = given(Protocol(1, 4), old)
    (off,) = disabling_statements("changeDataFeed", table.table, table.engine)
    assert (
        off.sql("t") == "ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')"
    )


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.minReaderVersion": "1"},
        {"delta.minWriterVersion": "2"},
        {"DELTA.minreaderversion": "1", "delta.minWriterVersion": "7"},
    ],
)
def test_setting_lower_versions_is_warned_of(properties: dict[str, str]) -> None:
    plan = plan_upgrade(given(carrying("deletionVectors")), UpgradeRequest(set=properties))
    assert not plan.steps
    assert any("plan-downgrade" in warning for warning in plan.warnings)
    same = plan_upgrade(given(Protocol(1, 2)), UpgradeRequest(set={"delta.minWriterVersion": "2"}))
    assert not any("plan-downgrade" in warning for warning in same.warnings)


def test_every_reader_feature_is_warned_of_not_only_the_first() -> None:
    for protocol in (Protocol(1, 2), carrying("deletionVectors")):
        plan = plan_upgrade(
            given(protocol), UpgradeRequest(enable=(FeatureToEnable("v2Checkpoint"),))
        )
        assert any(warning.startswith("Adds reader features") for warning in plan.warnings)
    for feature in ("changeDataFeed", "inCommitTimestamp"):
        plan = plan_upgrade(
            given(carrying("deletionVectors")), UpgradeRequest(enable=(FeatureToEnable(feature),))
        )
        assert plan.steps
        assert not any(warning.startswith("Adds reader features") for warning in plan.warnings)
