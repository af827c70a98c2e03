"""How a feature is no longer used while it stays in the protocol."""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.planning.engine import Engine
from deltaproto.planning.statement import (
    ClusterBy,
    DropConstraint,
    Purge,
    SetProperties,
    Statement,
)
from deltaproto.planning.table import MODE, Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Need, PropertyIs

_VECTORS = "delta.enableDeletionVectors"
OFF: dict[str, tuple[str, str]] = {
    "appendOnly": ("delta.appendOnly", "false"),
    "changeDataFeed": ("delta.enableChangeDataFeed", "false"),
    "columnMapping": (MODE, "none"),
    "deletionVectors": (_VECTORS, "false"),
    "icebergCompatV1": ("delta.enableIcebergCompatV1", "false"),
    "icebergCompatV2": ("delta.enableIcebergCompatV2", "false"),
    "inCommitTimestamp": ("delta.enableInCommitTimestamps", "false"),
}
"""the property and value that take each feature out of use"""
SWITCHES = frozenset({*OFF, "checkConstraints", "clustering"})
"""features that statements can take out of use"""


def in_order(names: Iterable[str]) -> list[str]:
    """The order in which features are switched off: who requires column mapping comes before it."""
    return sorted(names, key=lambda name: (name == "columnMapping", name))


def switchable(table: Table, names: Iterable[str], engine: Engine) -> frozenset[str]:
    """Those of the features that the engine takes out of use, one after the other."""
    found = []
    for name in in_order(names):
        after, refused = table, False
        for statement in switched_off(name, table):
            outcome = statement.outcome(after, engine)
            after, refused = outcome.table, refused or outcome.refusal is not None
        if not refused:
            found.append(name)
            table = after
    return frozenset(found)


def held_off(name: str, off: Iterable[str]) -> bool:
    """Whether a feature cannot be in use while the others are not."""
    needs = (each for each in catalogue.record(name).requires if each.need is Need.ENABLED)
    return any(each.feature in off for each in needs)


def switched_off(name: str, table: Table) -> list[Statement]:
    """The statements after which nothing uses the feature."""
    found: list[Statement] = []
    if name == "checkConstraints":
        return [DropConstraint(each) for each in table.constraints]
    if name == "clustering":
        return [ClusterBy(())] if table.clustering != () else []
    key, value = OFF[name]
    rule = catalogue.record(name).enablement
    counting = rule.key_in(table.configuration) if isinstance(rule, PropertyIs) else key
    current = table.configuration.get(counting, value).strip().lower()
    if current != value:
        found.append(SetProperties({key: value}, name))
    if name == "deletionVectors" and table.vectors is not False:
        found.append(Purge())
    return found
