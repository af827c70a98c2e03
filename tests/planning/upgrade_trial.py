"""One random table, one random upgrade: what Spark makes of the plan, against what it said."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.plan import Plan
from deltaproto.planning.request import PlanInput, UpgradeRequest
from deltaproto.planning.statement import SetProperties
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.oracle import execute
from tests.planning.random_goals import random_clients
from tests.planning.random_tables import Place, draft, make
from tests.planning.trial import Trial, carry_out, other_verdicts
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING

# Made by a catalog alone, or by a coordinator.
_ELSEWHERE = {"catalogManaged", "adaptiveMetadata-preview", "coordinatedCommits-preview"}
FEATURES = sorted(
    feature.name
    for feature in feature_catalog.all_features()
    if feature_catalog.is_registered(feature.name) and feature.name not in _ELSEWHERE
)
_PAIRS = ((1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 6), (1, 7), (3, 7), (1, 1), (2, 3))
_BOTH = ("true", "false")
_PROPERTIES = {
    "delta.enableChangeDataFeed": _BOTH,
    "delta.appendOnly": _BOTH,
    "delta.enableDeletionVectors": _BOTH,
    "delta.enableInCommitTimestamps": _BOTH,
    "delta.enableRowTracking": _BOTH,
    "delta.enableTypeWidening": _BOTH,
    "delta.enableIcebergCompatV1": _BOTH,
    "delta.enableIcebergCompatV2": _BOTH,
    "delta.enableIcebergCompatV3": _BOTH,
    "delta.columnMapping.mode": ("name", "name", "id", "none"),
    "delta.checkpointPolicy": ("classic", "v2"),
    "delta.logRetentionDuration": ("interval 40 days",),
    "delta.feature.timestampNtz": ("supported",),
    "delta.minReaderVersion": ("1", "2", "3"),
    "delta.minWriterVersion": ("2", "4", "5", "6", "7"),
    "team": ("a",),
}


def random_upgrade(random: Random) -> UpgradeRequest:
    """Some features, properties or versions to ask for."""
    kind = random.random()
    if kind < 0.15:
        return UpgradeRequest(to=random.choice(_PAIRS))
    if kind < 0.5:
        keys = random.sample(sorted(_PROPERTIES), random.randint(1, 3))
        return UpgradeRequest(set={key: random.choice(_PROPERTIES[key]) for key in keys})
    if kind < 0.52:
        return UpgradeRequest(isolation="Serializable")
    names = random.sample(FEATURES, random.randint(1, 3))
    columns = {"clustering": ("id",)}
    wanted = (FeatureToEnable(name, None, columns.get(name, ())) for name in names)
    return UpgradeRequest(
        enable=tuple(wanted), isolation=random.choice((None, None, "Serializable"))
    )


def tried(
    delta_spark: DeltaSpark, seed: int, folder: Path, *, managed: bool = False, stored: bool = False
) -> Trial:
    """Make the table of a seed in `folder`, plan an upgrade of it, and let Spark do it."""
    started = time.monotonic()
    random = Random(f"upgrade {seed}")
    place = make(
        delta_spark, draft(seed, managed=managed, stored=stored), folder / f"upgraded-{seed}"
    )
    given = load_plan_input(place.name, {}, SparkSettings(), 0.0)._replace(
        engine=RUNNING, clients=random_clients(Random(f"clients {seed}"))
    )
    asked = random_upgrade(random)
    plan = plan_upgrade(given, asked)
    found = [*carry_out(delta_spark, place, plan.steps, given)]
    after = load_plan_input(place.name, {}, SparkSettings(), 0.0)._replace(engine=RUNNING)
    if after.table.protocol != plan.protocol_after:
        found.append(f"{after.table.protocol} instead of {plan.protocol_after}")
    if plan.steps and plan_upgrade(after, asked).steps:
        found.append("planned again, there is more to do")
    if plan.steps:
        found += other_verdicts(plan, given, after.needs)
    if plan.blocked:
        found += _refused(delta_spark, place, given, asked, plan)
    else:
        found += _missing(after, asked)
    if found:
        found.insert(0, str(asked))
    return Trial(seed, (plan,), tuple(found), len(plan.steps), time.monotonic() - started)


def _refused(
    delta_spark: DeltaSpark, place: Place, given: PlanInput, asked: UpgradeRequest, plan: Plan
) -> Iterator[str]:
    """What is said to be refused is refused, and so."""
    if asked.set:
        statement = SetProperties(asked.set)
        said = statement.outcome(given.table, given.engine)
        happened = execute(delta_spark, place.path, statement.sql(given.sql))
        if happened.error != plan.blocked[0].error:
            yield f"{happened.error} instead of {plan.blocked[0].error}"
        least = [commit.operation for commit in said.commits if commit.sure]
        if happened.operations not in (least, [commit.operation for commit in said.commits]):
            yield f"{happened.operations} instead of {said.commits}"


def _missing(after: PlanInput, asked: UpgradeRequest) -> list[str]:
    supported = after.table.protocol.supported
    return [f"{w.feature} is not there" for w in asked.enable if w.feature not in supported]
