"""How a feature is switched on in an existing table.

Source: Delta Spark 4.4's `TableFeature` (what enables each by metadata), `IcebergCompat` and the
errors of `AlterTableSetPropertiesDeltaCommand`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from deltaproto.planning.engine import Engine
from deltaproto.planning.pulled import chooses_preview
from deltaproto.planning.refused import BY_CATALOG, FEATURE, versions_for_mapping
from deltaproto.planning.statement import ClusterBy, SetProperties, Statement
from deltaproto.planning.switches import SWITCHES, switched_off
from deltaproto.planning.table import MODE, Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Feature, Need, PropertyIs, Status


class Impossible(NamedTuple):
    """Why a feature cannot be switched on here."""

    feature: str
    reason: str
    remedy: str
    error: str = ""


class Wanted(NamedTuple):
    """A feature to switch on."""

    feature: str
    mode: str | None = None
    """column mapping: name or id"""
    columns: tuple[str, ...] = ()
    """clustering: its columns"""


def enabling(wanted: Wanted, table: Table, engine: Engine) -> list[Statement] | Impossible:
    """The statements that switch a feature on, after whatever it needs; empty when it is on."""
    name = wanted.feature
    record = catalogue.find(name)
    if record is None or record.status not in (Status.STABLE, Status.PREVIEW):
        return Impossible(
            name,
            "no released Delta Spark knows it",
            "see `deltaproto features`",
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        )
    if name in BY_CATALOG:
        return Impossible(
            name,
            "a table gets it only when a catalog creates it",
            "create a new table in a catalog that manages commits, and copy the data",
        )
    if name not in table.protocol.supported and engine.knows(record) is False:
        # Its property would be refused as unknown, or be stored and do nothing.
        return Impossible(name, f"{engine} does not know it", engine.instead(record))
    if name == "clustering":
        return _clustered(wanted, table)
    statements = list(_made_room(record, table))
    properties = _properties(record, wanted, table, engine)
    if properties:
        statements.append(SetProperties(properties, name))
    return statements


def _clustered(wanted: Wanted, table: Table) -> list[Statement] | Impossible:
    if not wanted.columns:
        return Impossible(
            "clustering",
            "it comes with the columns to cluster by, not with a property",
            "--cluster-by COLUMN...",
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        )
    return [] if table.clustering == wanted.columns else [ClusterBy(wanted.columns)]


def _made_room(record: Feature, table: Table) -> Iterator[Statement]:
    """What must be off before the feature is on."""
    for requirement in record.requires:
        if requirement.need in (Need.NOT_ENABLED, Need.NOT_SUPPORTED):
            yield from _off(requirement.feature, table)


def _off(name: str, table: Table) -> list[Statement]:
    # What nothing switches off is refused when the other one is switched on.
    return switched_off(name, table) if name in SWITCHES & table.protocol.supported else []


def _properties(record: Feature, wanted: Wanted, table: Table, engine: Engine) -> Mapping[str, str]:
    """The properties that are to be set, without those that are set already."""
    found: dict[str, str] = {}
    for requirement in record.requires:
        if requirement.need is Need.ENABLED:
            other = catalogue.record(requirement.feature)
            found |= _properties(other, Wanted(other.name), table, engine)
    name, rule = record.name, record.enablement
    # Where the final feature or its preview is there, the property stands for that one.
    final = name.removesuffix("-preview")
    twin = {final, f"{final}-preview"} - {name}
    by_name = not isinstance(rule, PropertyIs) or bool(twin & table.protocol.supported)
    if isinstance(rule, PropertyIs) and not by_name:
        chosen = f"{final}-preview" if chooses_preview(rule.key, engine) else final
        by_name = name != chosen
    if by_name and name not in table.protocol.supported:
        found[f"{FEATURE}{name}"] = "supported"
    if isinstance(rule, PropertyIs):
        value = wanted.mode or rule.values[0]
        now = table.configuration.get(rule.key_in(table.configuration), "").strip().lower()
        if not rule.holds(now) or (wanted.mode is not None and now != wanted.mode):
            found[rule.key] = value
            if rule.key == MODE and not engine.normalises:
                found |= versions_for_mapping(table, {})
        elif name not in table.protocol.supported:
            found[f"{FEATURE}{name}"] = "supported"
    return found
