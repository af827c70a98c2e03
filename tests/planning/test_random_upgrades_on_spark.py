"""Upgrades of random real tables do what their plans say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.planning.upgrade_trial import tried
from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = (3, 8, 21, 34)


@pytest.mark.spark
@needs_delta("4.4", "every feature that the drafts use")
@pytest.mark.parametrize("seed", SEEDS)
def test_spark_does_what_the_plan_says(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    trial = tried(spark, seed, tmp_path)
    assert not trial.mismatches, (f"seed {seed}", trial.mismatches)
