"""The kit's tables show the hazards that they are about, to the reader that `check` uses."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.certification.entry import known_tables
from deltaproto.certification.fixtures.make import make_kit
from deltaproto.certification.fixtures.recipe import FeatureEvidence
from deltaproto.certification.fixtures.recipes import recipes
from deltaproto.clients.measurement import MeasuredOutcome, ResultColumn
from deltaproto.clients.requirements import (
    KNOWN_HAZARDS,
    OF_FILTERED_READS,
    OF_PARTITION_VALUES,
    UNBOUNDED_LATER_COLUMNS,
)
from tests.certification.test_misread_statistics import measure, shipped
from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAYOUTS = [each for each in recipes() if each.state is FeatureEvidence.LAYOUT]
FILTERED = [each for each in LAYOUTS if each.hazard in OF_FILTERED_READS]
PARTITIONED = [each for each in LAYOUTS if each.hazard in OF_PARTITION_VALUES]


def test_hazards_of_partition_values_and_of_filters_have_a_table() -> None:
    named = {each.hazard for each in LAYOUTS}
    assert named >= OF_PARTITION_VALUES | OF_FILTERED_READS
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


@pytest.mark.spark
@pytest.mark.slow
@needs_delta("4.4", "the tables of the kit")
def test_the_tables_about_filters_tell_right_clients_from_wrong_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    kit = make_kit(spark, tmp_path / "kit", only=["plain", *(each.name for each in FILTERED)])
    found = {each.case.name: each.needs.hazards for each in known_tables(kit)}
    assert [each for each in FILTERED if each.hazard not in found[each.name]] == []
    wrong = {
        name: {
            cell.case
            for cell in measure(kit, shipped(name), tmp_path).cells
            if (cell.operation, cell.outcome) == (ResultColumn.FILTER, MeasuredOutcome.WRONG)
        }
        for name in ("deltalake/pyarrow", "deltalake/engine")
    }
    # Releases since 1.1 count the columns in a struct as Delta does.
    lost = {each.name for each in FILTERED if each.hazard != UNBOUNDED_LATER_COLUMNS}
    assert wrong == {"deltalake/pyarrow": lost, "deltalake/engine": set()}
