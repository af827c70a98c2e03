"""Check whether the engine can change the table at all."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.requirements import (
    PARTITION_NOT_IN_SCHEMA,
    TYPE_PREFIX,
    UNKNOWN_MEMBERS,
    TableRequirements,
)
from deltaproto.clients.verdicts import path_verdicts
from deltaproto.counts import all_names
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.plan import Blocked
from deltaproto.planning.predict.pending import UNLISTED, used_features
from deltaproto.planning.predict.table import TIMESTAMPS, Table
from deltaproto.planning.request import PlanInput
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureStatus
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.protocol import Protocol

_LOWEST = Protocol(1, 2)
_GEOSPATIAL = "geospatial"
_OF_SCHEMA = (UNKNOWN_MEMBERS, PARTITION_NOT_IN_SCHEMA)


def find_engine_blockers(inputs: PlanInput) -> Iterator[Blocked]:
    """Yield blockers that prevent the engine from writing the table."""
    protocol = inputs.table.protocol
    for name in sorted(protocol.listed):
        record = feature_catalog.feature_record(name)
        unsupported_status = record.status in (
            FeatureStatus.UNKNOWN,
            FeatureStatus.RETIRED,
            FeatureStatus.RFC,
            FeatureStatus.KERNEL,
        )
        spark = inputs.engine.name is EngineName.DELTA_SPARK
        if inputs.engine.knows(record) is False or (spark and unsupported_status):
            yield Blocked(
                name,
                f"{inputs.engine} does not support it, so it cannot write the table",
                inputs.engine.instead(record),
                "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            )
    for name in _unlisted_features(inputs.table, inputs.engine):
        yield Blocked(
            name,
            "the table or another of its features needs it, but the protocol does not list it, so "
            f"{inputs.engine} refuses every statement, even SELECT",
            feature_catalog.add_unlisted(name),
            UNLISTED,
        )
    if inputs.table.unstamped and inputs.engine.name is EngineName.DELTA_SPARK:
        yield Blocked(
            "inCommitTimestamp",
            "in-commit timestamps are enabled, but another engine wrote the newest commit without "
            f"one, so {inputs.engine} refuses every write",
            f"SET TBLPROPERTIES ('{TIMESTAMPS}' = 'false'): Delta Spark raises the same error, but "
            "its commit is made; then plan again",
            inputs.table.unstamped,
        )
    yield from _unreadable_metadata(inputs)
    managed = sorted(CATALOG_MANAGED & protocol.supported)
    if managed and not inputs.needs.by_name:
        yield Blocked(
            managed[0],
            "the catalog manages its commits, so the table cannot be changed by path",
            "use the table's catalog name",
            "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
        )


def _unreadable_metadata(inputs: PlanInput) -> Iterator[Blocked]:
    """Yield why Delta Spark refuses every statement: it parses the metadata before any of them.

    For what a schema contains, the client catalog decides, as in `check`.
    """
    if inputs.engine.name is not EngineName.DELTA_SPARK:
        return
    reasons = [inputs.table.unreadable] if inputs.table.unreadable else []
    if inputs.table.geospatial and _GEOSPATIAL not in inputs.table.protocol.listed:
        names = all_names(inputs.table.geospatial)
        reasons.append(f"it does not know the geospatial types of {names}")
    hazards = frozenset(filter(_is_of_schema, inputs.needs.hazards))
    if hazards:
        nothing: frozenset[str] = frozenset()
        needs = TableRequirements(_LOWEST, nothing, nothing, hazards=hazards)
        client = ClientCatalog().resolve(str(inputs.engine))
        reasons += [
            judged.reason
            for _, judged in path_verdicts(client, Access.READ, needs)
            if judged.verdict is Verdict.REFUSED
        ]
    for reason in reasons:
        yield Blocked(
            None,
            f"{inputs.engine} cannot read the metadata, so it refuses every statement: {reason}",
            "find the commit that stored the metadata and the client that wrote it",
        )


def _is_of_schema(hazard: str) -> bool:
    return hazard.startswith(TYPE_PREFIX) or hazard in _OF_SCHEMA


def _unlisted_features(table: Table, engine: Engine) -> list[str]:
    """Return the features that a protocol with a feature list lacks, sorted.

    These are the features in use, and the features that others require.

    Source: Delta Spark's `DeltaLog.assertTableFeaturesMatchMetadata`, which every snapshot and
    commit calls; measured with Delta Spark 4.4.0.
    """
    protocol = table.protocol
    if protocol.writer_features is None:
        return []
    listed = (
        name
        for name in protocol.writer_features
        if engine.knows(feature_catalog.feature_record(name)) is not False
    )
    needed = feature_catalog.with_required_features({*used_features(table, engine), *listed})
    return sorted(needed - protocol.supported)
