"""Statements that enable a feature in an existing table, or disable it without dropping it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.plan import Blocked, Plan
from deltaproto.planning.predict.auto_enable import adds_preview
from deltaproto.planning.predict.before_drop import may_skip_files
from deltaproto.planning.predict.collations import COLLATION_FEATURES
from deltaproto.planning.predict.table import MAPPING_MODE, ROW_TRACKING, Table
from deltaproto.planning.predict.validation import validate_catalog_only, versions_for_mapping
from deltaproto.planning.statement import (
    ClusterBy,
    Purge,
    SetProperties,
    Statement,
    drop_constraints,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import Feature, FeatureStatus, PropertyIs, RequirementKind
from deltaproto.protocol.feature_catalog import FEATURE_PREFIX
from deltaproto.sql.quoting import quote_literal


class FeatureToEnable(NamedTuple):
    """A feature to enable."""

    feature: str
    mode: str | None = None
    """column mapping: name or id"""
    columns: tuple[str, ...] = ()
    """clustering: its columns"""


def enabling_statements(
    wanted: FeatureToEnable, table: Table, engine: Engine
) -> list[Statement] | Blocked:
    """Return the statements that enable a feature and its requirements; empty if enabled."""
    name = wanted.feature
    record = feature_catalog.find_feature(name)
    if name in COLLATION_FEATURES and engine.name is EngineName.DATABRICKS:
        return Blocked(
            name,
            "it is enabled with the collation of a column, not with a property",
            "ALTER TABLE … ALTER COLUMN … TYPE STRING COLLATE …",
        )
    if record is None or record.status not in (FeatureStatus.STABLE, FeatureStatus.PREVIEW):
        return Blocked(
            name,
            "no released Delta Spark supports it"
            if engine.name is EngineName.DELTA_SPARK
            else "neither a released Delta Spark nor the documentation of Databricks has it",
            "see `deltaproto features`",
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        )
    refusal = validate_catalog_only(name, table.protocol.supported, engine)
    if refusal is not None:
        return Blocked(name, refusal.message, refusal.remedy, refusal.error)
    if name not in table.protocol.supported and engine.knows(record) is False:
        # The engine would refuse its property as unknown, or store it without effect.
        return Blocked(name, f"{engine} does not support it", engine.instead(record))
    if name == "clustering":
        return _clustering_statements(wanted, table)
    statements = list(_disable_conflicting(record, table, engine))
    properties = _missing_properties(record, wanted, table, engine)
    if properties:
        statements.append(SetProperties(properties, name))
    return statements


def _clustering_statements(wanted: FeatureToEnable, table: Table) -> list[Statement] | Blocked:
    if not wanted.columns:
        return Blocked(
            "clustering",
            "it is enabled with clustering columns, not with a property",
            "--cluster-by COLUMN...",
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        )
    return [] if table.clustering == wanted.columns else [ClusterBy(wanted.columns)]


def _disable_conflicting(record: Feature, table: Table, engine: Engine) -> Iterator[Statement]:
    """Yield statements that disable conflicting features."""
    for requirement in record.requires:
        if requirement.need in (RequirementKind.NOT_ENABLED, RequirementKind.NOT_SUPPORTED):
            yield from _disable_if_supported(requirement.feature, table, engine)


def _disable_if_supported(name: str, table: Table, engine: Engine) -> list[Statement]:
    # A feature that cannot be disabled makes enabling the other one fail.
    return (
        disabling_statements(name, table, engine)
        if name in DISABLEABLE_FEATURES & table.protocol.supported
        else []
    )


def _missing_properties(
    record: Feature, wanted: FeatureToEnable, table: Table, engine: Engine
) -> Mapping[str, str]:
    """Return the properties to set, except those that are already set.

    Row tracking is set again if files have no row ids, which gives them ids.
    """
    found: dict[str, str] = {}
    for requirement in record.requires:
        if requirement.need is RequirementKind.ENABLED:
            other = feature_catalog.feature_record(requirement.feature)
            found |= _missing_properties(other, FeatureToEnable(other.name), table, engine)
    name, rule = record.name, record.enablement
    # If the final feature or its preview exists, the property refers to that one.
    final = name.removesuffix("-preview")
    twin = {final, f"{final}-preview"} - {name}
    by_name = not isinstance(rule, PropertyIs) or bool(twin & table.protocol.supported)
    if isinstance(rule, PropertyIs) and not by_name:
        chosen = f"{final}-preview" if adds_preview(rule.key, engine) else final
        by_name = name != chosen
    if by_name and name not in table.protocol.supported:
        found[f"{FEATURE_PREFIX}{name}"] = "supported"
    if isinstance(rule, PropertyIs):
        value = wanted.mode or rule.values[0]
        now = table.configuration.get(rule.key_in(table.configuration), "").strip().lower()
        again = rule.key == ROW_TRACKING and table.untracked
        if again or not rule.holds(now) or (wanted.mode is not None and now != wanted.mode):
            found[rule.key] = value
            if rule.key == MAPPING_MODE and not engine.normalizes:
                found |= versions_for_mapping(table, {})
        elif name not in table.protocol.supported:
            found[f"{FEATURE_PREFIX}{name}"] = "supported"
    return found


_VECTORS = "delta.enableDeletionVectors"
DISABLING_PROPERTIES: dict[str, tuple[str, str]] = {
    "appendOnly": ("delta.appendOnly", "false"),
    "changeDataFeed": ("delta.enableChangeDataFeed", "false"),
    "columnMapping": (MAPPING_MODE, "none"),
    "deletionVectors": (_VECTORS, "false"),
    "icebergCompatV1": ("delta.enableIcebergCompatV1", "false"),
    "icebergCompatV2": ("delta.enableIcebergCompatV2", "false"),
    "inCommitTimestamp": ("delta.enableInCommitTimestamps", "false"),
}
"""feature to the property and value that disable it"""
DISABLEABLE_FEATURES = frozenset({*DISABLING_PROPERTIES, "checkConstraints", "clustering"})
"""features that statements can disable"""


def find_disabled(plan: Plan) -> tuple[str, ...]:
    """Return the features that the plan disables with a property, but keeps, sorted."""
    found = {
        name
        for name, pair in DISABLING_PROPERTIES.items()
        if any(_sets(step.sql or "", *pair) for step in plan.steps)
    }
    return tuple(sorted(found & plan.protocol_before.supported & plan.protocol_after.supported))


def _sets(sql: str, key: str, value: str) -> bool:
    return f"{quote_literal(key)} = {quote_literal(value)}" in sql


def sort_for_disabling(names: Iterable[str]) -> list[str]:
    """Sort features for disabling: dependents of column mapping come before it."""
    return sorted(names, key=lambda name: (name == "columnMapping", name))


def find_disableable(table: Table, names: Iterable[str], engine: Engine) -> frozenset[str]:
    """Return the features that the engine can disable, in the order of `sort_for_disabling`."""
    found = []
    for name in sort_for_disabling(names):
        after, refused = table, False
        for statement in disabling_statements(name, table, engine):
            outcome = statement.outcome(after, engine)
            after, refused = outcome.table, refused or outcome.refusal is not None
        if not refused:
            found.append(name)
            table = after
    return frozenset(found)


def is_kept_disabled(name: str, off: Iterable[str]) -> bool:
    """Return True if the feature cannot be in use while the others are disabled."""
    needs = (
        each
        for each in feature_catalog.feature_record(name).requires
        if each.need is RequirementKind.ENABLED
    )
    return any(each.feature in off for each in needs)


def disabling_statements(name: str, table: Table, engine: Engine) -> list[Statement]:
    """Return the statements that disable the feature."""
    found: list[Statement] = []
    if name == "checkConstraints":
        return [*drop_constraints(table)]
    if name == "clustering":
        return [ClusterBy(())] if table.clustering != () else []
    key, value = DISABLING_PROPERTIES[name]
    rule = feature_catalog.feature_record(name).enablement
    counting = rule.key_in(table.configuration) if isinstance(rule, PropertyIs) else key
    current = table.configuration.get(counting, value).strip().lower()
    if current != value:
        found.append(SetProperties({key: value}, name))
    if name == "deletionVectors" and table.vectors is not False:
        columns = (table.clustering or ()) if may_skip_files(table, engine) else ()
        found += [ClusterBy(()), Purge(), ClusterBy(columns)] if columns else [Purge()]
    return found
