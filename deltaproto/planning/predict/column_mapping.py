"""How column mapping leaves a table: by property, as the first part of DROP FEATURE, or not at all.

Source: Delta Spark 4.4's `RemoveColumnMappingCommand` and `DeltaColumnMapping`; measured with Delta
Spark 4.4.0, older ones read.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.consistency import broken
from deltaproto.planning.predict.outcome import (
    REMOVE_MAPPING,
    Outcome,
    PredictedCommit,
    Refusal,
    Rewrite,
)
from deltaproto.planning.predict.table import MODE, Table
from deltaproto.protocol import feature_catalog

NONE = "none"
# Measured with Delta Spark 4.4.0: NoSuchElementException in ClusteringColumnInfo.
CLUSTERED = (
    "the clustering columns keep their physical names, so that OPTIMIZE, REORG, DESCRIBE DETAIL "
    "and CLUSTER BY itself fail from then on: run ALTER TABLE … CLUSTER BY NONE first"
)
MISREAD = (
    "only 'none' in small letters takes column mapping away: so written, the columns keep their "
    "physical names and every value that is in the table reads as NULL"
)
_CHANGE = "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"


def invalid_mapping_mode(properties: Mapping[str, str]) -> Refusal | None:
    """What is no mode."""
    wanted = properties.get(MODE, NONE)
    if wanted.lower() in (NONE, "name", "id"):
        return None
    return Refusal("", f"no mapping mode is called {wanted or 'nothing'}", "name, id or none")


def changed(table: Table, properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    """Why the mapping mode cannot become another; None when it can, or stays."""
    before = table.configuration.get(MODE, NONE).lower()
    after = properties.get(MODE, before).lower()
    if after == NONE:
        return None if removes(engine) or before == NONE else _not_yet(engine)
    if after != before and not (before == NONE and after == "name"):
        return Refusal(
            _CHANGE,
            f"the mapping mode cannot go from {before} to {after}",
            "an existing table takes name only",
        )
    return None


def removes(engine: Engine) -> bool:
    """Whether the engine takes column mapping away from a table."""
    return engine.drops(feature_catalog.record("columnMapping"))


def removed(table: Table, engine: Engine, *, keep_mode: bool) -> Outcome:
    """What becomes of a table whose mode is set to none (`keep_mode`) or unset.

    Where the engine knows how, it rewrites every file, whether there was a mapping or not.
    """
    if not removes(engine):
        return Outcome(table, refusal=_not_yet(engine) if table.mapped else None)
    after = table.without_mapping()
    after = after.with_properties({MODE: NONE}) if keep_mode else after
    refusal = unnameable(table) or broken(table, after, engine)
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    commit = PredictedCommit(REMOVE_MAPPING, table.protocol)
    return Outcome(after, (commit,), Rewrite.ALL, warnings=harm(table))


def unnameable(table: Table) -> Refusal | None:
    """What columns are called that cannot be called so without column mapping."""
    if not table.unmappable:
        return None
    return Refusal(
        "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
        f"without mapping the columns {', '.join(table.unmappable)} cannot be named so",
        "rename these columns first",
    )


def harm(table: Table) -> tuple[str, ...]:
    """What becomes of a table, mapped up to now, that nobody unclustered before."""
    return (CLUSTERED,) if table.mapped and table.clustering != () else ()


def _not_yet(engine: Engine) -> Refusal:
    since = feature_catalog.record("columnMapping").drop
    return Refusal(
        _CHANGE,
        f"{engine} cannot take column mapping away",
        f"delta-spark@{since.delta_spark} or databricks@{since.databricks}, or later, can",
    )
