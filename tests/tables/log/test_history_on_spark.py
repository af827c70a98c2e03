"""What history shows of a feature, against what TRUNCATE HISTORY makes of it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from deltaproto.plan_inputs.from_log import LogSurvey
from deltaproto.planning.predict.drop_feature import drop_feature
from deltaproto.tables.log.traces import needs_checkpoint_first
from tests.planning.oracle import agree, execute, look
from tests.recording.delta_spark import DeltaSpark, StatementError, run
from tests.support.engines import RUNNING, needs_delta, needs_drop
from tests.support.stages import Stages, Step, Steps
from tests.support.surveys import survey_table
from tests.tables.log.clean_up import first_left

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR_MS = 3_600_000


def age(_: SparkSession, path: str) -> None:
    """Make the log as it is three days older."""
    for file in Path(path, "_delta_log").rglob("*"):
        os.utime(file, ns=(0, file.stat().st_mtime_ns - 72 * HOUR_MS * 1_000_000))


def age_to_one_moment(_: SparkSession, path: str) -> None:
    """As a copy of the log with one time for all of its files."""
    then = time.time_ns() - 72 * HOUR_MS * 1_000_000
    for file in Path(path, "_delta_log").rglob("*"):
        os.utime(file, ns=(then, then))


def checkpoint(spark: SparkSession, path: str) -> None:
    jvm = spark._jvm
    assert jvm is not None
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    log.checkpoint(log.update(False, none, none), none)


def forget_before_3(_: SparkSession, path: str) -> None:
    """Delete the files of the first versions, as a clean-up does."""
    for file in Path(path, "_delta_log").glob("0000000000000000000[012].*"):
        file.unlink()


class Case(NamedTuple):
    """A table, and the feature that is dropped from it in the end."""

    feature: str
    properties: str
    steps: tuple[Step, ...]
    expected: str | None
    """what the traces must say: the error class, or None for success"""


WRITE = "insert into {t} values (1, 'a')"
MANY = "insert into {t} select cast(id as int), 'x' from range(0, 100, 1, 1)"
DELETE = "delete from {t} where id = 3"
WIDEN = "alter table {t} alter column id type bigint"
WAIT = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
HISTORY = "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
PROTECTED = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
VECTORS, VECTORS_OFF = (
    "'delta.enableDeletionVectors'='true'",
    "alter table {t} set tblproperties ('delta.enableDeletionVectors'='false')",
)
V2, CLASSIC = (
    "'delta.checkpointPolicy'='v2'",
    "alter table {t} set tblproperties ('delta.checkpointPolicy'='classic')",
)
WIDENING = "'delta.enableTypeWidening'='true'"
MAPPING = "'delta.columnMapping.mode'='name'"


def supported(feature: str) -> str:
    return f"'delta.feature.{feature}'='supported'"


def truncate(feature: str) -> str:
    return f"alter table {{t}} drop feature {feature} truncate history"


CASES = {
    "vectors only supported": Case("deletionVectors", supported("deletionVectors"), (WRITE,), None),
    "vectors in use": Case("deletionVectors", VECTORS, (MANY, DELETE, age), WAIT),
    "vectors purged, nothing old": Case(
        "deletionVectors",
        VECTORS,
        (MANY, DELETE, VECTORS_OFF, "reorg table {t} apply (purge)", WRITE, checkpoint),
        HISTORY,
    ),
    # The statement commits tombstones of its own before its checkpoint, and they are young.
    "vectors purged, all old, no checkpoint since": Case(
        "deletionVectors",
        VECTORS,
        (MANY, DELETE, VECTORS_OFF, "reorg table {t} apply (purge)", WRITE, age),
        HISTORY,
    ),
    "vectors purged, all old, a checkpoint since": Case(
        "deletionVectors",
        VECTORS,
        (MANY, DELETE, VECTORS_OFF, "reorg table {t} apply (purge)", WRITE, checkpoint, age),
        None,
    ),
    "vectors purged, the checkpoint itself shows it": Case(
        "deletionVectors",
        VECTORS,
        (MANY, DELETE, VECTORS_OFF, "reorg table {t} apply (purge)", checkpoint, age),
        HISTORY,
    ),
    "vectors dropped a second time": Case(
        "deletionVectors", VECTORS, (MANY, DELETE, truncate("deletionVectors"), age, WRITE), None
    ),
    "mapping in use": Case("columnMapping", MAPPING, (WRITE, age), WAIT),
    "mapping dropped a second time, at once": Case(
        "columnMapping", MAPPING, (WRITE, truncate("columnMapping")), HISTORY
    ),
    "mapping dropped a second time, later": Case(
        "columnMapping", MAPPING, (WRITE, truncate("columnMapping"), age, WRITE), None
    ),
    "mapping with in-commit timestamps": Case(
        "columnMapping",
        MAPPING + ",'delta.enableInCommitTimestamps'='true'",
        (WRITE, truncate("columnMapping"), age, WRITE),
        None,
    ),
    "V2 only ever a setting, and long ago": Case("v2Checkpoint", V2, (WRITE, CLASSIC, age), None),
    # Old commits go only together with all that come before the next checkpoint.
    "V2 long ago, but young commits before the next checkpoint": Case(
        "v2Checkpoint", V2, (WRITE, CLASSIC, age, WRITE), HISTORY
    ),
    "V2 long ago, a checkpoint, young commits": Case(
        "v2Checkpoint", V2, (WRITE, CLASSIC, WRITE, checkpoint, age, WRITE), None
    ),
    # Then the checkpoint is no place to stop.
    "V2 long ago, a checkpoint, young commits, one time for all": Case(
        "v2Checkpoint", V2, (WRITE, CLASSIC, WRITE, checkpoint, age_to_one_moment, WRITE), HISTORY
    ),
    "one time for all, and all old": Case(
        "v2Checkpoint", V2, (WRITE, CLASSIC, WRITE, checkpoint, age_to_one_moment), None
    ),
    "V2 checkpoint in use": Case("v2Checkpoint", V2, (WRITE, checkpoint, age), WAIT),
    "only a checkpoint's state shows V2": Case(
        "v2Checkpoint",
        V2,
        (WRITE, WRITE, WRITE, checkpoint, forget_before_3, WRITE, CLASSIC, WRITE, checkpoint),
        HISTORY,
    ),
    "only a checkpoint's state shows V2, and it is old": Case(
        "v2Checkpoint",
        V2,
        (WRITE, WRITE, WRITE, checkpoint, forget_before_3, WRITE, CLASSIC, WRITE, checkpoint, age),
        None,
    ),
    "no commit and no state shows V2 any more": Case(
        "v2Checkpoint",
        V2,
        (CLASSIC, WRITE, WRITE, checkpoint, forget_before_3, WRITE),
        None,
    ),
    "widening enabled, never used": Case("typeWidening", WIDENING, (WRITE,), None),
    "widening in use": Case("typeWidening", WIDENING, (WRITE, WIDEN, age), WAIT),
    "widening dropped a second time": Case(
        "typeWidening", WIDENING, (WRITE, WIDEN, truncate("typeWidening"), age), None
    ),
    # The property is taken away by a young commit before the checkpoint.
    "a widened column is gone, the property is not": Case(
        "typeWidening",
        f"{WIDENING},{MAPPING}",
        (WRITE, WIDEN, "alter table {t} drop column id", age),
        HISTORY,
    ),
    "a widened column is gone, and the property": Case(
        "typeWidening",
        f"{WIDENING},{MAPPING}",
        (
            WRITE,
            WIDEN,
            "alter table {t} drop column id",
            "alter table {t} unset tblproperties ('delta.enableTypeWidening')",
            age,
        ),
        None,
    ),
    "vacuumProtocolCheck": Case(
        "vacuumProtocolCheck", supported("vacuumProtocolCheck"), (WRITE,), None
    ),
    "geospatial": Case("geospatial", supported("geospatial"), (WRITE,), None),
    "protected history": Case(
        "checkpointProtection",
        supported("vacuumProtocolCheck"),
        (WRITE, "alter table {t} drop feature vacuumProtocolCheck"),
        PROTECTED,
    ),
    "protected history, old": Case(
        "checkpointProtection",
        supported("vacuumProtocolCheck"),
        (WRITE, "alter table {t} drop feature vacuumProtocolCheck", age, WRITE),
        None,
    ),
    "nothing is protected": Case(
        "checkpointProtection", supported("checkpointProtection"), (WRITE,), None
    ),
}


def steps(case: Case) -> Steps:
    made = f"create table {{t}} (id int, s string) using delta tblproperties ({case.properties})"
    return (made, *case.steps)


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    def take(spark: SparkSession, path: str, step: Step) -> None:
        if callable(step):
            step(spark, path)
            return
        try:
            run(spark, step.format(t=f"delta.`{path}`"))
        except StatementError as error:
            if error.error_class != WAIT:
                raise

    plans = [steps(case) for case in CASES.values()]
    return Stages(plans, tmp_path_factory.mktemp("stages"), take)


def is_old(seen: LogSurvey, feature: str) -> bool:
    """Whether a truncation that runs now deletes every trace of the feature."""
    found = seen.traces.seen.get(feature)
    if found is None or found.decides is None:
        return False
    return found.decides.removable_ms(24 * HOUR_MS) <= time.time_ns() // 1_000_000


def needed(case: Case) -> pytest.MarkDecorator:
    """What the engine must be able to do for the case."""
    if case.expected is PROTECTED or case.feature == "checkpointProtection":
        return needs_delta("4.0", "protection by a drop")
    if case.feature == "typeWidening":
        return needs_delta("4.0", "typeWidening by its property")
    return needs_drop(case.feature)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needed(case)) for name, case in CASES.items()]
)
def test_truncation_does_what_the_traces_say(
    name: str, delta_spark: DeltaSpark, stages: Stages, tmp_path: Path
) -> None:
    case = CASES[name]
    path = stages.make(delta_spark, steps(case), tmp_path / "t")
    before = survey_table(path)
    assert not before.traces.unknown
    seen = frozenset(before.traces.seen)
    old = seen & {case.feature} if is_old(before, case.feature) else frozenset()
    traced = look(path)._replace(traced=seen - old, aged=old)
    said = drop_feature(traced, case.feature, RUNNING, truncate=True)
    assert (said.refusal.error if said.refusal else None) == case.expected
    agree(said, execute(delta_spark, path, truncate(case.feature).format(t=f"delta.`{path}`")))
    if case.expected is None:
        first = needs_checkpoint_first(case.feature, before.metadata)
        cutoff = time.time_ns() // 1_000_000 - 24 * HOUR_MS
        left = first_left(before.aging, cutoff, checkpoint_first=first)
        assert survey_table(path).aging.oldest == left
