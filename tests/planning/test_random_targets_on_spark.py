"""Plans that bring random real tables to random policies do what they say, and fix what they say.

A failure names its seed; `benchmarks/plan_oracle.py --policies --cases 1 --seed SEED` repeats it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.planning.target_trial import tried
from tests.recording.delta_spark import LiveDeltaSpark
from tests.recording.sample import seed_of_files
from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NEW = 20_000 + seed_of_files()


@needs_delta("4.4", "every feature that the drafts use")
@pytest.mark.parametrize("seed", [1, 2, 3, 4, NEW, NEW + 1])
def test_spark_does_what_the_plan_says(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    trial = tried(LiveDeltaSpark(spark), seed, tmp_path)
    assert not trial.mismatches, (f"seed {seed}", trial.mismatches)
