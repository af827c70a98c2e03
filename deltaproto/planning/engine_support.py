"""Check whether the engine can change the table at all."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.plan import Blocked
from deltaproto.planning.predict.auto_enable import features_of_columns, features_of_properties
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureStatus
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED


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
            "the table uses it, but the protocol does not list it, so "
            f"{inputs.engine} refuses every statement, even SELECT",
            feature_catalog.add_unlisted(name),
            "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH",
        )
    managed = sorted(CATALOG_MANAGED & protocol.supported)
    if managed and not inputs.needs.by_name:
        yield Blocked(
            managed[0],
            "the catalog manages its commits, so the table cannot be changed by path",
            "use the table's catalog name",
            "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
        )


def _unlisted_features(table: Table, engine: Engine) -> list[str]:
    """Return the used features that a protocol with a feature list lacks, sorted.

    Source: Delta Spark's `DeltaLog.assertTableFeaturesMatchMetadata`, which every snapshot and
    commit calls; measured with Delta Spark 4.4.0.
    """
    protocol = table.protocol
    if protocol.writer_features is None:
        return []
    used = features_of_properties(table.configuration, protocol, engine)
    if table.schema is not None:
        used |= features_of_columns(table.schema, protocol)
    return sorted(used - protocol.supported)
