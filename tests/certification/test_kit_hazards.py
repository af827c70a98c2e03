"""The kit's tables show the hazards that they are about, to the reader that `check` uses."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.certification.cross_check import known_tables
from deltaproto.certification.fixtures.make import make_kit
from deltaproto.certification.fixtures.recipe import FeatureEvidence
from deltaproto.certification.fixtures.recipes import recipes
from deltaproto.clients.requirements import KNOWN_HAZARDS, OF_PARTITION_VALUES
from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAYOUTS = [each for each in recipes() if each.state is FeatureEvidence.LAYOUT]
PARTITIONED = [each for each in LAYOUTS if each.hazard in OF_PARTITION_VALUES]


def test_every_hazard_of_partition_values_has_a_table() -> None:
    named = {each.hazard for each in LAYOUTS}
    assert named >= OF_PARTITION_VALUES
    assert named <= KNOWN_HAZARDS


@pytest.mark.spark
@pytest.mark.slow
@needs_delta("4.4", "the tables of the kit")
def test_the_tables_have_their_hazards_whatever_the_time_zone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        kit = make_kit(spark, tmp_path / "kit", only=[each.name for each in PARTITIONED])
    finally:
        monkeypatch.undo()
        time.tzset()
    found = {each.case.name: each.needs.hazards for each in known_tables(kit)}
    assert [each for each in PARTITIONED if each.hazard not in found[each.name]] == []
    times = {
        case.name: {row["at"] for row in case.rows} for case in kit.cases if "at" in case.rows[0]
    }
    assert len(times) == 3
    assert {frozenset(values) for values in times.values()} == {
        frozenset({"2026-02-03T04:05:06+00:00", "2026-02-03T20:30:00.123456+00:00"})
    }
