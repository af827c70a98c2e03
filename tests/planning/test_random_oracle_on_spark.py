"""Plans for random real tables do what they say. `benchmarks/plan_oracle.py` runs many more.

A failure names its seed; `benchmarks/plan_oracle.py --cases 1 --seed SEED` runs it alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.planning.random_tables import DELTALAKE, RESTORE, draft, drafted_with
from tests.planning.trial import tried
from tests.recording.delta_spark import DeltaSpark, LiveDeltaSpark
from tests.recording.sample import seed_of_files
from tests.support.catalog_managed import SCHEMA
from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Some once showed mistakes, of what clients may read, of vectors that Delta does not count, of what
# a table was before it was restored and of drops beside an interval; others nobody has seen yet.
SEEDS = (3012, 3021, 4005, 672938, 261874)
# Checkpoint at the newest version, and no checksum: whether timestamps are in use is in the commit.
# A drop deletes the commits that show who wrote the files. A refused drop purges vectors before.
# A drop rewrites the files that a clone's source wrote before a type change.
LIVE_SEEDS = (803668, 118611, 820539, 820520)
# These showed unpublished commits that get a new age, and type changes that no REORG rewrites.
MANAGED_SEEDS = (175295, 176005)
WAYS = (
    *("create table {t}", "shallow clone", "convert to delta", RESTORE, DELTALAKE),
    *("interval day to second", "void"),
)


@needs_delta("4.4", "every feature that the drafts use")
@pytest.mark.parametrize("seed", SEEDS)
def test_spark_does_what_the_plan_says(seed: int, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    trial = tried(delta_spark, seed, tmp_path)
    assert not trial.mismatches, (f"seed {seed}", trial.mismatches)


@pytest.mark.spark
@pytest.mark.slow
@needs_delta("4.4", "every feature that the drafts use")
@pytest.mark.parametrize("seed", LIVE_SEEDS)
def test_spark_does_what_plans_once_got_wrong(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    trial = tried(LiveDeltaSpark(spark), seed, tmp_path)
    assert not trial.mismatches, (f"seed {seed}", trial.mismatches)


@pytest.mark.spark
@needs_delta("4.4", "every feature that the drafts use")
@pytest.mark.parametrize(
    "way",
    [WAYS[0], *(pytest.param(way, marks=pytest.mark.slow) for way in WAYS[1:])],
)
def test_spark_does_what_a_new_plan_says(way: str, spark: SparkSession, tmp_path: Path) -> None:
    seed = next(drafted_with(way, 10_000 + seed_of_files()))
    trial = tried(LiveDeltaSpark(spark), seed, tmp_path)
    assert not trial.mismatches, (f"seed {seed}", trial.mismatches)


@pytest.mark.spark
@pytest.mark.slow
@needs_delta("4.4", "catalog-managed tables by this coordinator")
@pytest.mark.parametrize("seed", [*MANAGED_SEEDS, 10_000 + seed_of_files()])
def test_spark_does_what_the_plan_says_by_name(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    try:
        trial = tried(LiveDeltaSpark(spark), seed, tmp_path, managed=True)
    finally:
        spark.sql(f"drop schema if exists {SCHEMA} cascade")
    assert not trial.mismatches, (f"seed {seed}, of a managed table", trial.mismatches)


@pytest.mark.parametrize("way", WAYS)
def test_tables_come_about_in_every_way(way: str) -> None:
    assert any(drafted_with(way, 0, before=300))


def test_a_seed_is_a_table() -> None:
    assert draft(7) == draft(7)
    assert len({draft(seed).statements for seed in range(50)}) == 50
    for seed in range(50):
        created, *_ = draft(seed, managed=True).statements
        assert "'delta.feature.catalogManaged'='supported'" in created
