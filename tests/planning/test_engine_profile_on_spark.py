"""The planner's profile of the engine that runs, against what that engine says and does.

The suite runs it on the pinned pair, and `make test-oldest` on the oldest one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaproto.execution.runner import StatementRunner
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.plan import Plan
from deltaproto.planning.request import PlanInput, UpgradeRequest
from deltaproto.planning.search.goals import HistoryChoice
from deltaproto.planning.statement import DropFeature
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.oracle import execute
from tests.planning.random_tables import Place
from tests.planning.trial import carry_out
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KNOWN = {feature.name for feature in feature_catalog.all_features() if RUNNING.knows(feature)}


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> Mapping[str, Any]:
    """The features that this Delta knows, as objects of its own."""
    delta: Any = spark._jvm.org.apache.spark.sql.delta  # type: ignore[union-attr]
    features = delta.TableFeature.allSupportedFeaturesMap().valuesIterator()
    found = {}
    while features.hasNext():
        feature = features.next()
        found[feature.name()] = feature
    return found


@pytest.mark.spark
class TestWhatItSaysOfItself:
    def test_the_jars_are_the_release_that_plans_are_for(self, spark: SparkSession) -> None:
        facts = StatementRunner(spark).facts()
        assert (facts.name, facts.version) == (RUNNING.name, RUNNING.version)

    def test_it_knows_the_features_of_its_profile(self, registered: Mapping[str, Any]) -> None:
        assert set(registered) == KNOWN

    def test_it_can_drop_those_of_its_profile(self, registered: Mapping[str, Any]) -> None:
        removable = {name for name, feature in registered.items() if feature.isRemovable()}
        # The trait says that a catalog's feature can go, the command always refuses.
        assert removable - CATALOG_MANAGED == {
            name for name in KNOWN if RUNNING.drops(feature_catalog.feature_record(name))
        }

    def test_they_are_carried_by_the_versions_of_the_catalogue(
        self, registered: Mapping[str, Any]
    ) -> None:
        for name, feature in registered.items():
            record = feature_catalog.feature_record(name)
            assert record.min_writer == feature.minWriterVersion(), name
            assert record.min_reader == max(1, feature.minReaderVersion()), name


def planned_for(path: str) -> PlanInput:
    return load_plan_input(path, {}, SparkSettings(), time.time())._replace(engine=RUNNING)


def make(delta_spark: DeltaSpark, path: str, properties: str) -> PlanInput:
    clause = f"tblproperties ({properties})" if properties else ""
    delta_spark.sql(f"create table delta.`{path}` (id bigint, s string) using delta {clause}")
    delta_spark.sql(f"insert into delta.`{path}` values (1, 'a'), (2, 'b')")
    return planned_for(path)


def wrong(delta_spark: DeltaSpark, path: str, given: PlanInput, plan: Plan) -> Iterator[str]:
    """How the engine's doing differs from the plan."""
    yield from carry_out(delta_spark, Place(path, path), plan.steps, given)
    protocol = planned_for(path).table.protocol
    if protocol != plan.protocol_after:
        yield f"{protocol} in the end, instead of {plan.protocol_after}"


UPGRADES = {
    "a legacy feature": ("", UpgradeRequest(enable=(FeatureToEnable("changeDataFeed"),))),
    "one after another": (
        "",
        UpgradeRequest(
            enable=tuple(
                map(FeatureToEnable, ("changeDataFeed", "columnMapping", "deletionVectors"))
            )
        ),
    ),
    "by property": (
        "",
        UpgradeRequest(set={"delta.checkpointPolicy": "v2", "delta.appendOnly": "true"}),
    ),
    "a legacy pair": ("", UpgradeRequest(to=(2, 5))),
    "table features, and then a pair": (
        "'delta.enableChangeDataFeed'='true'",
        UpgradeRequest(to=(1, 4)),
    ),
    "writer features": ("", UpgradeRequest(to=(1, 7))),
    "reader features": ("'delta.columnMapping.mode'='name'", UpgradeRequest(to=(3, 7))),
    "what requires another": (
        "'delta.columnMapping.mode'='name'",
        UpgradeRequest(enable=(FeatureToEnable("icebergCompatV2"),)),
    ),
    "of a mapped table": (
        "'delta.columnMapping.mode'='name','delta.minReaderVersion'='2',"
        "'delta.minWriterVersion'='5'",
        UpgradeRequest(enable=(FeatureToEnable("v2Checkpoint"),)),
    ),
}


@pytest.mark.parametrize("name", UPGRADES)
def test_an_upgrade_ends_where_it_was_planned_to(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    properties, asked = UPGRADES[name]
    path = str(tmp_path / "t")
    given = make(delta_spark, path, properties)
    plan = plan_upgrade(given, asked)
    assert not plan.blocked
    assert list(wrong(delta_spark, path, given, plan)) == []


VECTORS = "'delta.enableDeletionVectors'='true'"
V2 = "'delta.checkpointPolicy'='v2'"
FEED = "'delta.enableChangeDataFeed'='true'"
TRUNCATE = HistoryChoice.TRUNCATE
DOWNGRADES = {
    "a feature that needs a wait": (V2, DowngradeRequest(drop=("v2Checkpoint",), history=TRUNCATE)),
    "beside a legacy feature": (
        f"{V2},{FEED}",
        DowngradeRequest(drop=("v2Checkpoint",), history=TRUNCATE),
    ),
    "beside named legacy features": (
        f"{V2},'delta.feature.appendOnly'='supported','delta.feature.changeDataFeed'='supported'",
        DowngradeRequest(drop=("v2Checkpoint",), history=TRUNCATE),
    ),
    "to the lowest": (f"{V2},{FEED}", DowngradeRequest(lowest=True, include_enabled=True)),
}
NEWER_DOWNGRADES = {
    "fast": ("4.0", f"{VECTORS},{FEED}", DowngradeRequest(drop=("deletionVectors",))),
    "mapping": (
        "3.3",
        "'delta.columnMapping.mode'='name'",
        DowngradeRequest(drop=("columnMapping",), history=TRUNCATE),
    ),
    "row tracking": (
        "4.1",
        "'delta.enableRowTracking'='true'",
        DowngradeRequest(lowest=True, include_enabled=True),
    ),
}
CASES = [
    *(pytest.param(*case, id=name) for name, case in DOWNGRADES.items()),
    *(
        pytest.param(*case, id=name, marks=needs_delta(release, f"this drop: {name}"))
        for name, (release, *case) in NEWER_DOWNGRADES.items()
    ),
]


@pytest.mark.parametrize(("properties", "asked"), CASES)
def test_a_downgrade_ends_where_it_was_planned_to(
    properties: str, asked: DowngradeRequest, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    given = make(delta_spark, path, properties)
    plan = plan_downgrade(given, asked)
    assert not plan.blocked
    assert plan.steps
    assert list(wrong(delta_spark, path, given, plan)) == []


@pytest.mark.parametrize("feature", ["changeDataFeed", "deletionVectors", "columnMapping"])
def test_what_it_cannot_drop_blocks_the_plan_and_is_refused(
    feature: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    given = make(delta_spark, path, f"'delta.feature.{feature}'='supported'")
    plan = plan_downgrade(given, DowngradeRequest(drop=(feature,)))
    can = RUNNING.drops(feature_catalog.feature_record(feature))
    assert bool(plan.blocked) is not can
    if not can:
        happened = execute(delta_spark, path, DropFeature(feature).sql(given.sql))
        assert [happened.error] == [blocked.error for blocked in plan.blocked]
        assert happened.operations == []


def test_a_new_table_has_the_protocol_that_is_taken_for_granted(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    assert make(delta_spark, str(tmp_path / "t"), "").table.protocol == Protocol(1, 2)
