"""Capabilities of an executing engine at its version."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from deltaproto.clients import version_scheme
from deltaproto.errors import UsageError
from deltaproto.protocol.feature import EVERY_RUNTIME, Feature, FeatureStatus
from deltaproto.protocol.feature_catalog import feature_record

NEWEST_DELTA_SPARK = "4.4.0"
NEWEST_RUNTIME = "19"


class EngineName(StrEnum):
    """Engines that execute plans."""

    DELTA_SPARK = "delta-spark"
    DATABRICKS = "databricks"


# The first versions with DROP FEATURE.
OLDEST_VERSIONS = {EngineName.DELTA_SPARK: "3.0", EngineName.DATABRICKS: "14.1"}
CLUSTERS_EXISTING_SINCE = "3.3"


class Engine(NamedTuple):
    """An engine at a version: `delta-spark@4.4.0`, `databricks@16.4`."""

    name: EngineName = EngineName.DELTA_SPARK
    version: str = NEWEST_DELTA_SPARK

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def at_least(self, version: str) -> bool:
        """Return True if the engine is at this version or later."""
        return _parse_version(self.name, self.version) >= _parse_version(self.name, version)

    @property
    def newer_than_known(self) -> bool:
        """True if the minor version is newer than every version with known behavior."""
        newest = NEWEST_DELTA_SPARK if self.name is EngineName.DELTA_SPARK else NEWEST_RUNTIME
        found = _parse_version(self.name, self.version).numbers[:2]
        return found > _parse_version(self.name, newest).numbers[:2]

    @property
    def fast_drop(self) -> bool:
        """True if DROP FEATURE adds checkpointProtection (Delta 4.0, DBR 16.3)."""
        return self.at_least("4.0" if self.name is EngineName.DELTA_SPARK else "16.3")

    @property
    def drops_store_metadata(self) -> bool:
        """True if every drop commit stores the metadata again (Delta 4.1)."""
        return self.name is not EngineName.DELTA_SPARK or self.at_least("4.1")

    @property
    def leaves_checkpoint(self) -> bool:
        """True if truncating drops leave an empty commit and checkpoint (Delta 3.2)."""
        return self.name is not EngineName.DELTA_SPARK or self.at_least("3.2")

    @property
    def normalizes(self) -> bool:
        """True if changes store the lowest protocol (Delta 3.3, DBR 16.1).

        Source for Databricks: its page on the legacy DROP FEATURE, which describes the steps for
        legacy versions that 16.0 and earlier runtimes need.
        """
        return self.at_least("3.3" if self.name is EngineName.DELTA_SPARK else "16.1")

    @property
    def drops_need_lists(self) -> bool:
        """True if DROP FEATURE requires a protocol that lists its features (DBR 16.0)."""
        return self.name is EngineName.DATABRICKS and not self.normalizes

    @property
    def clusters_existing(self) -> bool:
        """True if CLUSTER BY accepts tables created without clustering."""
        return self.name is not EngineName.DELTA_SPARK or self.at_least(CLUSTERS_EXISTING_SINCE)

    @property
    def replaces_partitions(self) -> bool:
        """True if ALTER TABLE can replace partitions by clustering (DBR 18.1)."""
        return self.name is EngineName.DATABRICKS and self.at_least("18.1")

    @property
    def bad_value(self) -> str:
        """The error class for an invalid property value; empty for Spark 3.5."""
        named = self.name is not EngineName.DELTA_SPARK or self.at_least("4.0")
        return "UNSUPPORTED_TABLE_CHANGE" if named else ""

    def knows(self, feature: Feature) -> bool | None:
        """Return whether this version supports the feature; None if undocumented.

        Delta Spark no longer accepts a preview name once a release has the final name.
        """
        if self.name is EngineName.DELTA_SPARK:
            if feature.renamed_to is not None and self.knows(feature_record(feature.renamed_to)):
                return False
            since = feature.since.delta_spark
            return since is not None and self.at_least(since)
        runtime = feature.since.databricks
        if runtime is None:
            return None
        return runtime == EVERY_RUNTIME or self.at_least(runtime)

    def instead(self, feature: Feature) -> str:
        """Suggest an engine that supports the feature."""
        since = feature.since
        if feature.status is FeatureStatus.RETIRED:
            return "use an older engine that supported the feature"
        if self.name is EngineName.DELTA_SPARK and since.delta_spark is not None:
            return f"--engine {EngineName.DELTA_SPARK}@{since.delta_spark} or later"
        if since.databricks is not None:
            runtime = since.databricks.removesuffix(" LTS")
            return f"--engine {EngineName.DATABRICKS}@{runtime} or later"
        return "use an engine that supports the feature"

    def drops(self, feature: Feature) -> bool:
        """Return True if this version can drop the feature."""
        drop = feature.drop
        since = drop.delta_spark if self.name is EngineName.DELTA_SPARK else drop.databricks
        return since is not None and self.at_least(since) and self.knows(feature) is not False


DEFAULT_ENGINE = Engine()


@lru_cache(maxsize=256)
def _parse_version(name: EngineName, version: str) -> version_scheme.Version:
    kind = "dotted" if name is EngineName.DELTA_SPARK else "runtime"
    found = version_scheme.parse_version(kind, version)
    if found is None:
        newest = NEWEST_DELTA_SPARK if kind == "dotted" else NEWEST_RUNTIME
        raise UsageError(f"{version} is not a version of {name}", f"for example {name}@{newest}")
    return found


def parse_engine(text: str) -> Engine:
    """Parse an engine: `delta-spark@4.4`, `databricks@16.4`, `delta-spark`.

    Raises:
        UsageError: if the engine or version does not exist.
    """
    name, at, version = text.strip().partition("@")
    known = {each.value: each for each in EngineName}
    if name not in known or (at and not version):
        raise UsageError(
            f"unknown engine {text}",
            f"use {EngineName.DELTA_SPARK}@{NEWEST_DELTA_SPARK} or {EngineName.DATABRICKS}@16.4",
        )
    if not version:
        version = NEWEST_DELTA_SPARK if known[name] is EngineName.DELTA_SPARK else NEWEST_RUNTIME
    engine = Engine(known[name], version)
    if not engine.at_least(OLDEST_VERSIONS[engine.name]):
        raise UsageError(
            f"{engine} is older than DROP FEATURE",
            f"use {name}@{OLDEST_VERSIONS[engine.name]} or later",
        )
    return engine
