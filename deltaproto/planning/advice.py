"""What to warn of before a plan is carried out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deltaproto.planning.engine import EngineName
from deltaproto.planning.given import Given
from deltaproto.planning.plan import Step
from deltaproto.protocol import catalogue
from deltaproto.protocol.catalogue import CHECKPOINT_PROTECTION
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.protocol import Protocol

# Switched on by a workspace setting, a runtime's defaults or a pipeline, without being asked for.
_BY_DEFAULT = {
    "deletionVectors": "the workspace setting for deletion vectors, SQL warehouses, and pipelines",
    "rowTracking": "pipelines and predictive optimisation",
    "v2Checkpoint": "liquid clustering on Databricks Runtime 14.1 and later",
    "columnMapping": "UniForm, and pipelines that rename columns",
}
_DEFAULTS = "spark.databricks.delta.properties.defaults."


def advice(given: Given, steps: Sequence[Step], after: Protocol) -> Iterator[str]:
    """Warnings for these steps, the gravest first."""
    if not steps:
        return
    before = given.table.protocol.supported
    gained, lost = after.supported - before, before - after.supported
    for step in steps:
        yield from step.warnings
    yield (
        "Every step is a change of metadata or protocol: stop or pause writers that run longer "
        "than a moment, and streams as the steps say."
    )
    if CHECKPOINT_PROTECTION in gained:
        yield (
            "checkpointProtection joins the protocol: writers that do not know it are shut out "
            "until it is dropped with TRUNCATE HISTORY."
        )
    if any(step.truncates for step in steps):
        yield (
            "History is truncated: time travel, RESTORE and streams that lag behind lose what is "
            "older than the retention."
        )
    for name in sorted(lost):
        yield from _comes_back(name)
    if given.table.protocol.min_reader_version < after.min_reader_version:
        yield "Reader features join: whoever does not know them can no longer read the table."
    if given.engine.name is EngineName.DATABRICKS and steps:
        yield (
            "Predictions for Databricks follow its documentation; they are measured with Delta "
            "Spark only."
        )


def _comes_back(name: str) -> Iterator[str]:
    rule = catalogue.record(name).enablement
    source = _BY_DEFAULT.get(name)
    key = rule.key if isinstance(rule, PropertyIs) else ""
    default = f"{_DEFAULTS}{key.removeprefix('delta.')}" if key.startswith("delta.") else ""
    if source is not None:
        also = f", and {default} for new and replaced tables" if default else ""
        yield (
            f"{name} may come back by itself on Databricks ({source}{also}): switch that off first."
        )
