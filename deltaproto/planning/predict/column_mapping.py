"""Removing column mapping: by property, or by DROP FEATURE.

Source: Delta Spark 4.4's `RemoveColumnMappingCommand` and `DeltaColumnMapping`; measured with Delta
Spark 4.4.0, source code read for older versions.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.counts import first_names
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.consistency import validate_change
from deltaproto.planning.predict.outcome import (
    REMOVE_MAPPING,
    Outcome,
    PredictedCommit,
    Refusal,
    Rewrite,
)
from deltaproto.planning.predict.table import MAPPING_MODE, Table
from deltaproto.protocol import feature_catalog

MODE_NONE = "none"
_MOST_NAMES = 10
# Measured with Delta Spark 4.4.0: NoSuchElementException in ClusteringColumnInfo.
CLUSTERED = (
    "the clustering columns keep their physical names, so OPTIMIZE, REORG, DESCRIBE DETAIL "
    "and even CLUSTER BY fail afterwards: run ALTER TABLE … CLUSTER BY NONE first"
)
MISSPELLED_NONE = (
    "only lowercase 'none' removes column mapping correctly: with this spelling, the columns keep "
    "their physical names and every existing value reads as NULL"
)
_CHANGE = "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"


def validate_mapping_mode(properties: Mapping[str, str]) -> Refusal | None:
    """Return a refusal for an invalid mode."""
    wanted = properties.get(MAPPING_MODE, MODE_NONE)
    if wanted.lower() in (MODE_NONE, "name", "id"):
        return None
    return Refusal("", f"{wanted or 'empty'} is not a mapping mode", "use name, id or none")


def validate_mode_change(
    table: Table, properties: Mapping[str, str], engine: Engine
) -> Refusal | None:
    """Return why the mapping mode cannot change, or None if it can or stays."""
    before = table.configuration.get(MAPPING_MODE, MODE_NONE).lower()
    after = properties.get(MAPPING_MODE, before).lower()
    if after == MODE_NONE:
        return None if can_remove_mapping(engine) or before == MODE_NONE else _unsupported(engine)
    if after != before and not (before == MODE_NONE and after == "name"):
        return Refusal(
            _CHANGE,
            f"the mapping mode cannot change from {before} to {after}",
            "an existing table can only use name",
        )
    return None


def can_remove_mapping(engine: Engine) -> bool:
    """Return True if the engine can remove column mapping."""
    return engine.drops(feature_catalog.feature_record("columnMapping"))


def remove_mapping(table: Table, engine: Engine, *, keep_mode: bool) -> Outcome:
    """Predict setting the mode to none (`keep_mode`) or unsetting it.

    If the engine supports this, it rewrites every file, even without mapping.
    """
    if not can_remove_mapping(engine):
        return Outcome(table, refusal=_unsupported(engine) if table.mapped else None)
    after = table.without_mapping()
    after = after.with_properties({MAPPING_MODE: MODE_NONE}) if keep_mode else after
    refusal = validate_unmapped_names(table) or validate_change(table, after, engine)
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    commit = PredictedCommit(REMOVE_MAPPING, table.protocol)
    return Outcome(after, (commit,), Rewrite.ALL, warnings=removal_warnings(table))


def validate_unmapped_names(table: Table) -> Refusal | None:
    """Return a refusal for column names that require column mapping."""
    if not table.unmappable:
        return None
    names = first_names([f'"{name}"' for name in table.unmappable], _MOST_NAMES)
    return Refusal(
        "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
        f"these column names need column mapping: {names}",
        "rename these columns first",
    )


def removal_warnings(table: Table) -> tuple[str, ...]:
    """Warn about a mapped table whose clustering was not removed first."""
    return (CLUSTERED,) if table.mapped and table.clustering != () else ()


def _unsupported(engine: Engine) -> Refusal:
    since = feature_catalog.feature_record("columnMapping").drop
    return Refusal(
        _CHANGE,
        f"{engine} cannot remove column mapping",
        f"use delta-spark@{since.delta_spark} or databricks@{since.databricks}, or later",
    )
