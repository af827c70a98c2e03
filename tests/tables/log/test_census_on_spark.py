"""A census against what Spark really rewrites."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.planning.oracle import commit, execute, newest
from tests.recording.delta_spark import DeltaSpark, run
from tests.support.engines import needs_delta
from tests.support.stages import Stages, Step, Steps
from tests.support.surveys import survey_table
from tests.support.tables import recipes
from tests.tables.log.test_history_on_spark import checkpoint, forget_before_3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotating

FOUR_FILES = "insert into {t} select cast(id as int), 'x' from range(0, 100, 1, 4)"
WIDEN = "alter table {t} alter column id type bigint"
DELETE = "delete from {t} where id in (3, 30)"


@pytest.mark.spark
@pytest.mark.parametrize("name", recipes())
def test_the_census_of_real_tables(
    name: str, spark: SparkSession, real_tables: Mapping[str, str]
) -> None:
    path = real_tables[name]
    detail = spark.sql(f"describe detail delta.`{path}`").collect()[0]
    census = survey_table(path).census
    assert (census.files, census.bytes) == (detail["numFiles"], detail["sizeInBytes"])
    assert bool(census.files_with_row_ids) is (name in ("row_tracking", "everything"))


def rewritten(delta_spark: DeltaSpark, path: str, statement: str) -> tuple[int, int]:
    """How many files the statement's REORG removes, and their bytes."""
    before = newest(path)
    execute(delta_spark, path, statement.format(t=f"delta.`{path}`"))
    files = size = 0
    for version in range(before + 1, newest(path) + 1):
        actions = [json.loads(line) for line in commit(path, version).read_text().splitlines()]
        (info,) = [a["commitInfo"] for a in actions if "commitInfo" in a]
        if info["operation"] == "REORG":
            removed = [a["remove"] for a in actions if "remove" in a]
            files += len(removed)
            size += sum(r["size"] for r in removed)
    return files, size


VECTORS = {
    "one commit": (FOUR_FILES, DELETE),
    "a second deletion in a file": (FOUR_FILES, DELETE, "delete from {t} where id = 4"),
    "from a checkpoint": (FOUR_FILES, DELETE, checkpoint, FOUR_FILES, DELETE),
    "purged in between": (FOUR_FILES, DELETE, "optimize {t}", FOUR_FILES, DELETE),
    "overwritten": (FOUR_FILES, DELETE, "insert overwrite {t} values (1, 'a')"),
}


# With the number of files that count although they need no rewriting: the log does not tell.
WIDENED: dict[str, tuple[int, Steps]] = {
    "files before and after": (0, (FOUR_FILES, WIDEN, FOUR_FILES)),
    "only after": (0, (WIDEN, FOUR_FILES)),
    "widened twice": (
        0,
        (
            "insert into {t} values (1, 'a')",
            WIDEN,
            FOUR_FILES,
            "alter table {t} alter column id type decimal(30, 0)",
            FOUR_FILES,
        ),
    ),
    "vectors on old files later": (0, (FOUR_FILES, WIDEN, FOUR_FILES, DELETE)),
    "compacted since": (0, (FOUR_FILES, WIDEN, FOUR_FILES, "optimize {t}")),
    "a checkpoint since": (0, (FOUR_FILES, WIDEN, FOUR_FILES, checkpoint, FOUR_FILES)),
    "the change is no longer in the log": (
        4,
        (FOUR_FILES, WIDEN, FOUR_FILES, checkpoint, forget_before_3, FOUR_FILES),
    ),
    "restored to before": (0, (FOUR_FILES, WIDEN, FOUR_FILES, "restore {t} to version as of 1")),
    "old files restored, then widened": (
        4,
        (
            FOUR_FILES,
            WIDEN,
            FOUR_FILES,
            "insert overwrite {t} values (1, 'a')",
            "restore {t} to version as of 3",
        ),
    ),
    "never widened": (0, (FOUR_FILES,)),
    "a property set since": (
        0,
        (FOUR_FILES, WIDEN, FOUR_FILES, "alter table {t} set tblproperties ('x'='y')", FOUR_FILES),
    ),
}
POLICIES = ("classic", "v2")


def created(*properties: str) -> str:
    given = ",".join((*properties, "'delta.enableDeletionVectors'='true'"))
    return f"create table {{t}} (id int, s string) using delta tblproperties ({given})"


def with_vectors(policy: str, name: str) -> Steps:
    return (created(f"'delta.checkpointPolicy'='{policy}'"), *VECTORS[name])


def widened(name: str) -> Steps:
    return (created("'delta.enableTypeWidening'='true'"), *WIDENED[name][1])


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    def take(spark: SparkSession, path: str, step: Step) -> None:
        if callable(step):
            step(spark, path)
        else:
            run(spark, step.format(t=f"delta.`{path}`"))

    plans = [with_vectors(policy, name) for policy in POLICIES for name in VECTORS]
    plans += [widened(name) for name in WIDENED]
    return Stages(plans, tmp_path_factory.mktemp("stages"), take)


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("policy", POLICIES)
def test_files_with_vectors_are_those_that_are_rewritten(
    name: str, policy: str, delta_spark: DeltaSpark, stages: Stages, tmp_path: Path
) -> None:
    path = stages.make(delta_spark, with_vectors(policy, name), tmp_path / "t")
    census = survey_table(path).census
    found = rewritten(delta_spark, path, "reorg table {t} apply (purge)")
    assert (census.files_with_vectors, census.bytes_with_vectors) == found


@needs_delta("4.0", "typeWidening by its property")
@pytest.mark.parametrize("name", WIDENED)
def test_no_more_files_are_rewritten_for_their_types_than_counted(
    name: str, delta_spark: DeltaSpark, stages: Stages, tmp_path: Path
) -> None:
    path = stages.make(delta_spark, widened(name), tmp_path / "t")
    extra, _ = WIDENED[name]
    census = survey_table(path).census
    files, size = rewritten(delta_spark, path, "alter table {t} drop feature typeWidening")
    assert census.files_before_type_change == files + extra
    assert census.bytes_before_type_change >= size
    assert extra or census.bytes_before_type_change == size
