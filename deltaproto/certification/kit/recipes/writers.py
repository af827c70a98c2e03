"""The features that only writers must know."""

from __future__ import annotations

from deltaproto.certification.kit.recipe import Edit, Recipe, State
from deltaproto.certification.kit.recipes.common import (
    DELETE,
    LOST,
    MAPPED,
    PART,
    PART_IS,
    PARTITIONED,
)

WRITERS = (
    Recipe(
        "rowTracking.enabled",
        "rowTracking",
        State.ENABLED,
        "row tracking is on: files have row ids",
        properties={"delta.enableRowTracking": "true"},
    ),
    Recipe(
        "rowTracking.present",
        "rowTracking",
        State.PRESENT,
        "rows that were moved keep their ids in a column of the files",
        properties={"delta.enableRowTracking": "true"},
        then=(DELETE,),
        lost=LOST,
    ),
    Recipe(
        "domainMetadata.present",
        "domainMetadata",
        State.PRESENT,
        "somebody's metadata domain is in the log",
        edit=Edit((1, 7), None, ("domainMetadata",), domain=("example.app", '{"owner":"billing"}')),
    ),
    Recipe(
        "clustering.enabled",
        "clustering",
        State.ENABLED,
        "clustered by id, never optimized",
        clause="cluster by (id)",
    ),
    Recipe(
        "clustering.present",
        "clustering",
        State.PRESENT,
        "clustered by id, and optimized",
        clause="cluster by (id)",
        then=("optimize {t}",),
    ),
    Recipe(
        "allowColumnDefaults.enabled",
        "allowColumnDefaults",
        State.ENABLED,
        "a column has a default",
        columns=(("status", "string default 'open'", "'done'"),),
        properties={"delta.feature.allowColumnDefaults": "supported"},
        fill={"status": "done"},
        omitted={"status": "open"},
    ),
    Recipe(
        "materializePartitionColumns.present",
        "materializePartitionColumns",
        State.PRESENT,
        "partition columns are in the files as well",
        columns=PART,
        clause=PARTITIONED,
        properties={"delta.enableMaterializePartitionColumnsFeature": "true"},
        fill={"part": "even"},
        where=PART_IS,
    ),
    Recipe(
        "inCommitTimestamp.present",
        "inCommitTimestamp",
        State.PRESENT,
        "commits carry their own times",
        properties={"delta.enableInCommitTimestamps": "true"},
    ),
    Recipe(
        "checkpointProtection.present",
        "checkpointProtection",
        State.PRESENT,
        "what dropping a feature leaves behind",
        properties={"delta.feature.vacuumProtocolCheck": "supported"},
        then=("alter table {t} drop feature vacuumProtocolCheck",),
    ),
    *(
        Recipe(
            f"{name}.enabled",
            name,
            State.ENABLED,
            f"{name} is on, with column mapping",
            properties={f"delta.enable{name[0].upper()}{name[1:]}": "true", **MAPPED, **more},
        )
        for name, more in (
            ("icebergCompatV1", {}),
            ("icebergCompatV2", {}),
            ("icebergCompatV3", {"delta.enableRowTracking": "true"}),
        )
    ),
)
