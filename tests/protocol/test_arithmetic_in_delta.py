"""The arithmetic against Delta's own JVM code, for hundreds of random protocols at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind, FeatureStatus
from deltaproto.protocol.protocol import Protocol
from tests.protocol.strategies import REGISTERED, protocols
from tests.support.engines import RUNNING, needs_delta
from tests.support.examples import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SAMPLES = examples(600)
KNOWN = [name for name in REGISTERED if RUNNING.knows(feature_catalog.feature_record(name))]
NORMALIZED = needs_delta("3.3", "protocols in their lowest form")


@pytest.fixture(scope="module")
def delta(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.spark.sql.delta  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def to_scala(spark: SparkSession, delta: Any) -> Any:
    jvm: Any = spark._jvm

    def convert(protocol: Protocol) -> Any:
        text = json.dumps({"protocol": protocol.to_action()})
        return delta.actions.Action.fromJson(text)

    def many(items: list[Any]) -> Any:
        return jvm.org.apache.spark.api.python.PythonUtils.toSeq(items)

    convert.many = many  # type: ignore[attr-defined]
    return convert


def from_scala(protocol: Any) -> Protocol:
    return Protocol.parse(json.loads(protocol.json())["protocol"])


def names(features: Any) -> set[str]:
    joined = features.mkString("\n")
    # A Scala object's text is its class name; ask each for its own name instead.
    iterator, found = features.iterator(), set()
    while iterator.hasNext():
        found.add(iterator.next().name())
    assert bool(joined) == bool(found)
    return found


def sample(draws: st.SearchStrategy[Any], count: int) -> list[Any]:
    """At least `count` different values.

    Each round has its own seed: where Hypothesis is derandomized (as it makes itself in CI), an
    unseeded second round would draw what the first one drew.
    """
    collected: dict[Any, None] = {}
    for number in range(20):

        @seed(number)
        @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
        @given(draws)
        def collect(value: Any) -> None:
            collected[value] = None

        collect()
        if len(collected) >= count:
            return list(collected)
    raise AssertionError(f"only {len(collected)} different values in 20 rounds")


def test_the_catalog_knows_what_delta_registers(delta: Any) -> None:
    registered: dict[str, Any] = {}
    iterator = delta.TableFeature.allSupportedFeaturesMap().valuesIterator()
    while iterator.hasNext():
        feature = iterator.next()
        registered[feature.name()] = feature
    ours = {f.name: f for f in feature_catalog.all_features() if f.name in registered}
    assert set(ours) == set(registered)
    assert set(registered) <= set(REGISTERED)
    for name, feature in registered.items():
        record = ours[name]
        assert record.min_writer == feature.minWriterVersion(), name
        assert record.min_reader == max(1, feature.minReaderVersion()), name
        assert (record.kind is FeatureKind.READER_WRITER) == feature.isReaderWriterFeature(), name
        assert record.legacy == feature.isLegacyFeature(), name
        # The trait says that catalogManaged can go, the command always refuses.
        if name != "catalogManaged":
            assert RUNNING.drops(record) == feature.isRemovable(), name
        assert names(feature.requiredFeatures()) <= set(record.required_features), name


def test_unregistered_names_are_marked_as_such(delta: Any) -> None:
    for feature in feature_catalog.all_features():
        known = delta.TableFeature.featureNameToFeature(feature.name).isDefined()
        in_use = feature.status in (FeatureStatus.STABLE, FeatureStatus.PREVIEW)
        if not in_use:
            assert not known, feature.name


@NORMALIZED
def test_forms_equal_deltas_for_random_protocols(to_scala: Any) -> None:
    samples = sample(protocols(KNOWN, closed=True), SAMPLES)
    assert len(samples) >= SAMPLES * 5 // 6
    for protocol in samples:
        scala = to_scala(protocol)
        assert from_scala(scala) == protocol
        assert from_scala(scala.normalized()) == protocol.normalized(), protocol
        assert from_scala(scala.denormalized()) == protocol.denormalized(), protocol
        assert from_scala(scala.denormalizedNormalized()) == protocol.lowest(), protocol
        supported = names(scala.implicitlyAndExplicitlySupportedFeatures())
        assert supported == protocol.supported, protocol


@NORMALIZED
def test_pairs_of_protocols_combine_as_in_delta(to_scala: Any) -> None:
    one = protocols(KNOWN, closed=True)
    for left, right in sample(st.tuples(one, one), SAMPLES):
        a, b = to_scala(left), to_scala(right)
        merged = a.merge(to_scala.many([b]))
        assert from_scala(merged) == left.merge(right), (left, right)


@NORMALIZED
def test_removing_a_feature_lands_where_delta_lands(delta: Any, to_scala: Any) -> None:
    removable = [n for n in KNOWN if RUNNING.drops(feature_catalog.feature_record(n))]
    draws = st.tuples(protocols(KNOWN, closed=True), st.sampled_from(removable))
    removed = 0
    for drawn, name in sample(draws, SAMPLES):
        protocol = drawn.with_feature(name)
        dependents = [
            other
            for other in protocol.supported
            if name in feature_catalog.feature_record(other).required_features
        ]
        if name not in protocol.supported or dependents:
            continue
        feature = delta.TableFeature.featureNameToFeature(name).get()
        after = from_scala(to_scala(protocol).removeFeature(feature))
        assert after == protocol.without_feature(name), (protocol, name)
        removed += 1
    assert removed > 50


@NORMALIZED
def test_adding_a_feature_equals_a_merge_in_delta(delta: Any, to_scala: Any) -> None:
    draws = st.tuples(protocols(KNOWN, closed=True), st.sampled_from(KNOWN))
    for protocol, name in sample(draws, SAMPLES):
        base = to_scala(Protocol.carrying(feature_catalog.with_required_features({name})))
        merged = to_scala(protocol).merge(to_scala.many([base]))
        assert from_scala(merged) == protocol.with_feature(name), (protocol, name)
