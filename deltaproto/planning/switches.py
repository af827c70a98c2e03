"""How a feature is no longer used while it stays in the protocol."""

from __future__ import annotations

from deltaproto.planning.statement import (
    ClusterBy,
    DropConstraint,
    Purge,
    SetProperties,
    Statement,
)
from deltaproto.planning.table import MODE, Table

_VECTORS = "delta.enableDeletionVectors"
_PROPERTIES: dict[str, tuple[str, str]] = {
    "appendOnly": ("delta.appendOnly", "false"),
    "changeDataFeed": ("delta.enableChangeDataFeed", "false"),
    "columnMapping": (MODE, "none"),
    "deletionVectors": (_VECTORS, "false"),
    "icebergCompatV1": ("delta.enableIcebergCompatV1", "false"),
    "icebergCompatV2": ("delta.enableIcebergCompatV2", "false"),
    "icebergCompatV3": ("delta.enableIcebergCompatV3", "false"),
    "inCommitTimestamp": ("delta.enableInCommitTimestamps", "false"),
}
SWITCHES = frozenset({*_PROPERTIES, "checkConstraints", "clustering"})
"""features that statements can take out of use"""


def switched_off(name: str, table: Table) -> list[Statement]:
    """The statements after which nothing uses the feature."""
    found: list[Statement] = []
    if name == "checkConstraints":
        return [DropConstraint(each) for each in table.constraints]
    if name == "clustering":
        return [ClusterBy(())] if table.clustering != () else []
    key, value = _PROPERTIES[name]
    current = table.configuration.get(key, value).strip().lower()
    if current != value:
        found.append(SetProperties({key: value}, name))
    if name == "deletionVectors" and table.vectors is not False:
        found.append(Purge())
    return found
