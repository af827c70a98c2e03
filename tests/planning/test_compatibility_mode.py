"""Compatibility Mode of Databricks in plans: documented, so that nothing here runs on an engine."""

from __future__ import annotations

import pytest

from deltaproto.planning.engine import parse_engine
from deltaproto.planning.predict.properties import normalize_properties
from deltaproto.planning.predict.set_properties import set_properties
from deltaproto.planning.predict.table import Table
from deltaproto.protocol.compatibility_mode import FORMATS, INTERVAL, LOCATION
from deltaproto.protocol.properties import suggest_property
from deltaproto.protocol.protocol import Protocol

TABLE = Table(Protocol.carrying({"deletionVectors", "appendOnly", "invariants"}))
COPY = {FORMATS: "compatibility", LOCATION: "s3://exports/orders"}


@pytest.mark.parametrize("engine", ["databricks@14.3", "databricks@16.4", "databricks@19"])
def test_databricks_takes_it_and_leaves_the_protocol(engine: str) -> None:
    done = set_properties(TABLE, {**COPY, INTERVAL: "0 MINUTES"}, parse_engine(engine))
    assert done.refusal is None
    assert [commit.protocol for commit in done.commits] == [TABLE.protocol]
    assert done.table.configuration[FORMATS] == "compatibility"
    assert any("managed Unity Catalog table" in warning for warning in done.warnings)


@pytest.mark.parametrize("value", ["compatibility,hudi", "hudi,compatibility"])
def test_it_goes_beside_other_formats(value: str) -> None:
    done = set_properties(TABLE, {**COPY, FORMATS: value}, parse_engine("databricks@19"))
    assert done.refusal is None


@pytest.mark.parametrize("value", ["compat", "compatibility,compatibility", "Compatibility", ""])
def test_other_words_are_as_before(value: str) -> None:
    done = set_properties(TABLE, {FORMATS: value}, parse_engine("databricks@19"))
    assert (done.refusal is None) is (value == "")


@pytest.mark.parametrize("properties", [COPY, {FORMATS: "compatibility"}, {LOCATION: "s3://a"}])
@pytest.mark.parametrize("engine", ["delta-spark@3.3", "delta-spark@4.4"])
def test_delta_spark_refuses_it(engine: str, properties: dict[str, str]) -> None:
    done = set_properties(TABLE, properties, parse_engine(engine))
    assert done.refusal is not None
    assert done.refusal.sure
    if FORMATS in properties and LOCATION not in properties:
        assert "--engine databricks" in done.refusal.remedy


@pytest.mark.parametrize("location", [None, "", " "])
def test_it_needs_a_location(location: str | None) -> None:
    properties = {FORMATS: "compatibility"} | ({} if location is None else {LOCATION: location})
    done = set_properties(TABLE, properties, parse_engine("databricks@19"))
    assert done.refusal is not None
    assert done.refusal.error == "DELTA_UNIFORM_COMPATIBILITY_MISSING_OR_INVALID_LOCATION"
    there = TABLE.with_properties({LOCATION: "s3://exports/orders"})
    again = set_properties(there, {FORMATS: "compatibility"}, parse_engine("databricks@19"))
    assert again.refusal is None


def test_its_properties_are_known_in_any_case() -> None:
    assert suggest_property(LOCATION) is None
    assert suggest_property(INTERVAL) is None
    assert normalize_properties({LOCATION.lower(): "s3://a"}) == {LOCATION: "s3://a"}
