"""Upgrades of random real tables do what their plans say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planning.upgrade_trial import tried
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

SEEDS = (3, 8, 21, 34)


@needs_delta("4.4", "every feature that the drafts use")
@pytest.mark.parametrize("seed", SEEDS)
def test_spark_does_what_the_plan_says(seed: int, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    trial = tried(delta_spark, seed, tmp_path)
    assert not trial.mismatches, (f"seed {seed}", trial.mismatches)
