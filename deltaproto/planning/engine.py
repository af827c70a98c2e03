"""What an executing engine can do at its version."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from deltaproto.clients import version_scheme
from deltaproto.errors import UsageError
from deltaproto.protocol.feature import EVERY_RUNTIME, Feature, FeatureStatus
from deltaproto.protocol.feature_catalog import record

NEWEST = "4.4.0"
NEWEST_RUNTIME = "19"


class EngineName(StrEnum):
    """Engines that execute plans."""

    DELTA_SPARK = "delta-spark"
    DATABRICKS = "databricks"


# DROP FEATURE came with them.
OLDEST = {EngineName.DELTA_SPARK: "3.0", EngineName.DATABRICKS: "14.1"}
CLUSTERS_EXISTING = "3.3"


class Engine(NamedTuple):
    """An engine at a version: `delta-spark@4.4.0`, `databricks@16.4`."""

    name: EngineName = EngineName.DELTA_SPARK
    version: str = NEWEST

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def at_least(self, version: str) -> bool:
        """Whether the engine is at this version or later."""
        return _parsed(self.name, self.version) >= _parsed(self.name, version)

    @property
    def newer_than_known(self) -> bool:
        """Whether the minor version is newer than every one that predictions are known for."""
        newest = NEWEST if self.name is EngineName.DELTA_SPARK else NEWEST_RUNTIME
        found = _parsed(self.name, self.version).numbers[:2]
        return found > _parsed(self.name, newest).numbers[:2]

    @property
    def fast_drop(self) -> bool:
        """DROP FEATURE leaves checkpointProtection instead of waiting: Delta 4.0, runtime 16.3."""
        return self.at_least("4.0" if self.name is EngineName.DELTA_SPARK else "16.3")

    @property
    def leaves_checkpoint(self) -> bool:
        """A truncating drop always leaves an empty commit and its checkpoint: Delta 3.2."""
        return self.name is not EngineName.DELTA_SPARK or self.at_least("3.2")

    @property
    def normalises(self) -> bool:
        """Every change stores the lowest protocol for its features: Delta 3.3, runtime 16.0."""
        return self.at_least("3.3" if self.name is EngineName.DELTA_SPARK else "16.0")

    @property
    def clusters_existing(self) -> bool:
        """CLUSTER BY takes tables that were made without clustering, too."""
        return self.name is not EngineName.DELTA_SPARK or self.at_least(CLUSTERS_EXISTING)

    @property
    def bad_value(self) -> str:
        """The error class for a value that a property cannot have; Spark 3.5 names none."""
        named = self.name is not EngineName.DELTA_SPARK or self.at_least("4.0")
        return "UNSUPPORTED_TABLE_CHANGE" if named else ""

    def knows(self, feature: Feature) -> bool | None:
        """Whether this version knows the feature; None where nothing is documented.

        Delta Spark forgets a feature's old name with the release that has the new one.
        """
        if self.name is EngineName.DELTA_SPARK:
            if feature.renamed_to is not None and self.knows(record(feature.renamed_to)):
                return False
            since = feature.since.delta_spark
            return since is not None and self.at_least(since)
        runtime = feature.since.databricks
        if runtime is None:
            return None
        return runtime == EVERY_RUNTIME or self.at_least(runtime)

    def instead(self, feature: Feature) -> str:
        """What to run a plan with where this engine does not know the feature."""
        since = feature.since
        if feature.status is FeatureStatus.RETIRED:
            return "an engine of the time when it was known has to run the plan"
        if self.name is EngineName.DELTA_SPARK and since.delta_spark is not None:
            return f"--engine {EngineName.DELTA_SPARK}@{since.delta_spark} or later"
        if since.databricks is not None:
            runtime = since.databricks.removesuffix(" LTS")
            return f"--engine {EngineName.DATABRICKS}@{runtime} or later"
        return "an engine that knows it has to run the plan"

    def drops(self, feature: Feature) -> bool:
        """Whether this version can drop the feature."""
        drop = feature.drop
        since = drop.delta_spark if self.name is EngineName.DELTA_SPARK else drop.databricks
        return since is not None and self.at_least(since) and self.knows(feature) is not False


DEFAULT = Engine()


@lru_cache(maxsize=256)
def _parsed(name: EngineName, version: str) -> version_scheme.Version:
    kind = "dotted" if name is EngineName.DELTA_SPARK else "runtime"
    found = version_scheme.parse(kind, version)
    if found is None:
        newest = NEWEST if kind == "dotted" else NEWEST_RUNTIME
        raise UsageError(f"{version} is no version of {name}", f"for example {name}@{newest}")
    return found


def parse_engine(text: str) -> Engine:
    """An engine as people write it: `delta-spark@4.4`, `databricks@16.4`, `delta-spark`.

    Raises:
        UsageError: when there is no such engine, or no such version.
    """
    name, at, version = text.strip().partition("@")
    known = {each.value: each for each in EngineName}
    if name not in known or (at and not version):
        raise UsageError(
            f"no engine {text}",
            f"{EngineName.DELTA_SPARK}@{NEWEST} or {EngineName.DATABRICKS}@16.4",
        )
    if not version:
        version = NEWEST if known[name] is EngineName.DELTA_SPARK else NEWEST_RUNTIME
    engine = Engine(known[name], version)
    if not engine.at_least(OLDEST[engine.name]):
        raise UsageError(
            f"{engine} is older than DROP FEATURE",
            f"{name}@{OLDEST[engine.name]} or later executes plans",
        )
    return engine
