"""One random table, one random upgrade: what Spark makes of the plan, against what it said."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from deltaproto.drafting.live import look
from deltaproto.planning.enable import Wanted
from deltaproto.planning.given import Given
from deltaproto.planning.plan import Plan
from deltaproto.planning.upgrade import Upgrade, plan_upgrade
from deltaproto.protocol import catalogue
from deltaproto.tables.interface import SparkSettings
from tests.planning.random_tables import draft, make
from tests.planning.trial import carry_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Made by a catalog alone, or by a coordinator.
_ELSEWHERE = {"catalogManaged", "adaptiveMetadata-preview", "coordinatedCommits-preview"}
FEATURES = sorted(
    feature.name
    for feature in catalogue.all_features()
    if catalogue.registered(feature.name) and feature.name not in _ELSEWHERE
)
_PAIRS = ((1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 6), (1, 7), (3, 7), (1, 1), (2, 3))
_PROPERTIES = (
    {"delta.enableChangeDataFeed": "true"},
    {"delta.appendOnly": "true", "team": "a"},
    {"delta.enableDeletionVectors": "false"},
    {"delta.checkpointPolicy": "classic"},
    {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"},
    {"delta.enableRowTracking": "true"},
    {"delta.logRetentionDuration": "interval 40 days"},
)


def random_upgrade(random: Random) -> Upgrade:
    """Some features, properties or versions to ask for."""
    kind = random.random()
    if kind < 0.15:
        return Upgrade(to=random.choice(_PAIRS))
    if kind < 0.35:
        return Upgrade(set=random.choice(_PROPERTIES))
    if kind < 0.4:
        return Upgrade(isolation="Serializable")
    names = random.sample(FEATURES, random.randint(1, 3))
    columns = {"clustering": ("id",)}
    return Upgrade(enable=tuple(Wanted(name, None, columns.get(name, ())) for name in names))


def tried(spark: SparkSession, seed: int, folder: Path) -> tuple[Plan, list[str]]:
    """The plan for a seed's table, and what Spark did otherwise."""
    random = Random(f"upgrade {seed}")
    path = make(spark, draft(seed), folder / f"upgraded-{seed}")
    given = look(path, {}, SparkSettings(), 0.0)
    asked = random_upgrade(random)
    plan = plan_upgrade(given, asked)
    found = [*carry_out(spark, path, plan.steps, given)]
    after = look(path, {}, SparkSettings(), 0.0)
    if after.table.protocol != plan.protocol_after:
        found.append(f"{after.table.protocol} instead of {plan.protocol_after}")
    if plan.steps and plan_upgrade(after, asked).steps:
        found.append("planned again, there is more to do")
    found += _missing(after, asked) if not plan.blocked else []
    if found:
        found.insert(0, str(asked))
    return plan, found


def _missing(after: Given, asked: Upgrade) -> list[str]:
    supported = after.table.protocol.supported
    return [f"{w.feature} is not there" for w in asked.enable if w.feature not in supported]
