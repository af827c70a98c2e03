"""DROP FEATURE as it was once measured with Delta Spark 4.4.0, against what is predicted.

Each line of a case is `statement: commits [!error] [> protocol]`. Commits are named as in
`OPERATIONS`, `empty*3` is three of them; without `> protocol` it stays as it was. `base` stands for
the two features of writer version 2. No Spark is needed: what it did is written down here.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.drop_feature import drop_feature
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.table import Table
from deltaproto.planning.statement import ClusterBy, DropConstraint, SetProperties
from deltaproto.protocol.protocol import Protocol
from tests.planning.oracle import Happened, agree

OPERATIONS = {
    "empty": "Empty Commit",
    "unmap": "REMOVE COLUMN MAPPING",
    "unset": "UNSET TBLPROPERTIES",
    "set": "SET TBLPROPERTIES",
    "reorg": "REORG",
    "tombstones": "Deletion Vector Tombstones",
    "unfill": "ROW TRACKING UNBACKFILL",
    "types": "DROP FEATURE",
    "drop": "DROP FEATURE",
    "constraint": "DROP CONSTRAINT",
    "cluster": "CLUSTER BY",
}
BASE = "appendOnly invariants"
PROTECTED = "1,7 base checkpointProtection"
WAIT = "!DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
STILL = "!DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
NEVER = "!DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"
NO_TRUNCATION = "!DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
DEPENDENT = "!DELTA_FEATURE_DROP_DEPENDENT_FEATURE"
ABSENT = "!DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"
ONLY_TRUNCATING = "!DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"
PROTECTION_WAITS = "!DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
MAPPED = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
VECTORS = {"delta.enableDeletionVectors": "true"}
WIDENING = {"delta.enableTypeWidening": "true"}
TRACKED = {"delta.enableRowTracking": "true"}


class Case(NamedTuple):
    """A table, and statements one after the other."""

    protocol: str
    lines: tuple[str, ...]
    configuration: dict[str, str] = {}  # noqa: RUF012
    more: dict[str, Any] = {}  # noqa: RUF012
    """what else is known of the table"""
    traced: str = ""
    """what history shows"""


def unremovable(protocol: str, feature: str) -> Case:
    return Case(protocol, (f"drop {feature}: {NEVER}", f"truncate {feature}: {NEVER}"))


CASES: dict[str, Case] = {
    "append-only": unremovable("1,2 base", "appendOnly"),
    "append-only-alone": unremovable("1,7 appendOnly", "appendOnly"),
    "invariants": unremovable("1,2 base", "invariants"),
    "change-data-feed": unremovable("1,7 base changeDataFeed", "changeDataFeed"),
    "generated": unremovable("1,7 base generatedColumns", "generatedColumns"),
    "identity": unremovable("1,7 base identityColumns", "identityColumns"),
    "ntz": unremovable("3,7 base timestampNtz", "timestampNtz"),
    "variant": unremovable("3,7 base variantType", "variantType"),
    "variant-preview": unremovable("3,7 base variantType-preview", "variantType-preview"),
    "shredding": unremovable("3,7 base variantShredding variantType", "variantShredding"),
    "shredding-preview": unremovable(
        "3,7 base variantShredding-preview variantType", "variantShredding-preview"
    ),
    "clustering": unremovable("1,7 base clustering domainMetadata", "clustering"),
    "defaults": unremovable("1,7 base allowColumnDefaults", "allowColumnDefaults"),
    "iceberg-1": unremovable("2,7 base columnMapping icebergCompatV1", "icebergCompatV1"),
    "iceberg-2": unremovable("2,7 base columnMapping icebergCompatV2", "icebergCompatV2"),
    "iceberg-3": unremovable(
        "2,7 base columnMapping domainMetadata icebergCompatV3 rowTracking", "icebergCompatV3"
    ),
    "constraint-there": Case(
        "1,3 base checkConstraints",
        (
            "drop checkConstraints: !DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            f"truncate checkConstraints: {NO_TRUNCATION}",
            "constraint c: constraint",
            "drop checkConstraints: drop > 1,2 base",
        ),
        {"delta.constraints.c": "id > 0"},
    ),
    "mapping": Case(
        "2,7 base columnMapping",
        (f"drop columnMapping: unmap empty*3 drop > {PROTECTED}",),
        MAPPED,
    ),
    "mapping-truncating": Case(
        "2,7 base columnMapping",
        (
            f"truncate columnMapping: unmap empty {WAIT}",
            "wait",
            "truncate columnMapping: empty drop > 1,2 base",
        ),
        MAPPED,
        traced="columnMapping",
    ),
    "mapping-and-odd-names": Case(
        "2,7 base columnMapping",
        (
            "drop columnMapping: !DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
            "truncate columnMapping: !DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
        ),
        MAPPED,
        {"unmappable": ("a b",)},
    ),
    "vectors-enabled": Case(
        "3,7 base deletionVectors",
        (f"drop deletionVectors: unset tombstones empty*3 drop > {PROTECTED}",),
        VECTORS,
    ),
    "vectors-enabled-truncating": Case(
        "3,7 base deletionVectors",
        (
            f"truncate deletionVectors: unset tombstones empty {WAIT}",
            f"truncate deletionVectors: tombstones empty {STILL}",
            "wait",
            "truncate deletionVectors: tombstones empty drop > 1,2 base",
        ),
        VECTORS,
        traced="deletionVectors",
    ),
    "vectors-there": Case(
        "3,7 base deletionVectors",
        (f"drop deletionVectors: unset reorg tombstones empty*3 drop > {PROTECTED}",),
        VECTORS,
        {"vectors": True},
    ),
    "vectors-there-truncating": Case(
        "3,7 base deletionVectors",
        (
            f"truncate deletionVectors: unset reorg tombstones empty {WAIT}",
            "wait",
            "truncate deletionVectors: tombstones empty drop > 1,2 base",
        ),
        VECTORS,
        {"vectors": True},
        "deletionVectors",
    ),
    "vectors-first-truncating-then-fast": Case(
        "3,7 base deletionVectors",
        (
            f"truncate deletionVectors: unset tombstones empty {WAIT}",
            f"truncate deletionVectors: tombstones empty {STILL}",
            f"drop deletionVectors: tombstones empty*3 drop > {PROTECTED}",
        ),
        VECTORS,
        traced="deletionVectors",
    ),
    "row-tracking": Case(
        "1,7 base domainMetadata rowTracking",
        (
            f"truncate rowTracking: {NO_TRUNCATION}",
            f"drop domainMetadata: {DEPENDENT}",
            "drop rowTracking: set unfill drop > 1,7 base domainMetadata",
            "drop domainMetadata: drop > 1,2 base",
        ),
        TRACKED,
        {"row_ids": True, "domains": ("delta.rowTracking",)},
    ),
    "row-tracking-switched-off": Case(
        "1,7 base domainMetadata rowTracking",
        ("drop rowTracking: set unfill drop > 1,7 base domainMetadata",),
        {"delta.enableRowTracking": "false"},
        {"row_ids": True, "domains": ("delta.rowTracking",)},
    ),
    "domains": Case(
        "1,7 base domainMetadata",
        (f"truncate domainMetadata: {NO_TRUNCATION}", "drop domainMetadata: drop > 1,2 base"),
    ),
    "v2-checkpoint": Case(
        "3,7 base v2Checkpoint",
        (f"drop v2Checkpoint: set empty*3 drop > {PROTECTED}",),
        {"delta.checkpointPolicy": "v2"},
        {"v2_checkpoint": True},
    ),
    "v2-checkpoint-truncating": Case(
        "3,7 base v2Checkpoint",
        (
            f"truncate v2Checkpoint: set empty {WAIT}",
            "wait",
            "truncate v2Checkpoint: empty drop > 1,2 base",
        ),
        {"delta.checkpointPolicy": "v2"},
        traced="v2Checkpoint",
    ),
    "timestamps": Case(
        "1,7 base inCommitTimestamp",
        (
            f"truncate inCommitTimestamp: {NO_TRUNCATION}",
            f"drop rowTracking: {ABSENT}",
            "drop inCommitTimestamp: unset drop > 1,2 base",
        ),
        {"delta.enableInCommitTimestamps": "true"},
    ),
    "vacuum-check": Case(
        "3,7 base vacuumProtocolCheck",
        (f"drop vacuumProtocolCheck: empty*3 drop > {PROTECTED}",),
    ),
    "vacuum-check-truncating": Case(
        "3,7 base vacuumProtocolCheck",
        ("truncate vacuumProtocolCheck: empty drop > 1,2 base",),
    ),
    "widening-enabled": Case(
        "3,7 base typeWidening",
        (f"drop typeWidening: unset empty*3 drop > {PROTECTED}",),
        WIDENING,
    ),
    "widening-enabled-truncating": Case(
        "3,7 base typeWidening",
        ("truncate typeWidening: unset empty drop > 1,2 base",),
        WIDENING,
    ),
    "widening-preview-truncating": Case(
        "3,7 base typeWidening-preview",
        ("truncate typeWidening-preview: unset empty drop > 1,2 base",),
        WIDENING,
    ),
    "widened": Case(
        "3,7 base typeWidening",
        (f"drop typeWidening: unset reorg types empty*3 drop > {PROTECTED}",),
        WIDENING,
        {"widened": True},
    ),
    "widened-truncating": Case(
        "3,7 base typeWidening",
        (
            f"truncate typeWidening: unset reorg types empty {WAIT}",
            f"truncate typeWidening: empty {STILL}",
            "wait",
            "truncate typeWidening: empty drop > 1,2 base",
        ),
        WIDENING,
        {"widened": True},
        "typeWidening",
    ),
    "materialised": Case(
        "1,7 base materializePartitionColumns",
        (
            f"truncate materializePartitionColumns: {NO_TRUNCATION}",
            "drop materializePartitionColumns: drop > 1,2 base",
        ),
        {"delta.enableMaterializePartitionColumnsFeature": "true"},
    ),
    "coordinated": Case(
        "3,7 base coordinatedCommits-preview inCommitTimestamp vacuumProtocolCheck",
        (
            f"drop inCommitTimestamp: {DEPENDENT}",
            f"drop vacuumProtocolCheck: {DEPENDENT}",
            f"truncate coordinatedCommits-preview: {NO_TRUNCATION}",
            "drop coordinatedCommits-preview: drop > "
            "3,7 base inCommitTimestamp vacuumProtocolCheck",
        ),
    ),
    "protection-by-name": Case(
        PROTECTED,
        (
            f"drop checkpointProtection: {ONLY_TRUNCATING}",
            "truncate checkpointProtection: unset drop > 1,2 base",
        ),
    ),
    "protection": Case(
        "3,7 base deletionVectors",
        (
            f"drop deletionVectors: unset reorg tombstones empty*3 drop > {PROTECTED}",
            f"drop checkpointProtection: {ONLY_TRUNCATING}",
            f"truncate checkpointProtection: empty {PROTECTION_WAITS}",
            "wait",
            "truncate checkpointProtection: empty unset drop > 1,2 base",
        ),
        VECTORS,
        {"vectors": True},
        "deletionVectors",
    ),
    "geospatial": Case("3,7 base geospatial", (f"drop geospatial: empty*3 drop > {PROTECTED}",)),
    "geospatial-truncating": Case(
        "3,7 base geospatial", ("truncate geospatial: empty drop > 1,2 base",)
    ),
    "geospatial-dev": Case(
        "3,7 base geospatial-dev", (f"drop geospatial-dev: empty*3 drop > {PROTECTED}",)
    ),
    "many": Case(
        "3,7 base changeDataFeed columnMapping deletionVectors domainMetadata rowTracking "
        "v2Checkpoint",
        (
            f"drop domainMetadata: {DEPENDENT}",
            "drop rowTracking: set unfill drop > 3,7 base changeDataFeed columnMapping "
            "deletionVectors domainMetadata v2Checkpoint",
            "drop domainMetadata: drop > 3,7 base changeDataFeed columnMapping deletionVectors "
            "v2Checkpoint",
            "drop deletionVectors: unset tombstones empty*3 drop > 3,7 base changeDataFeed "
            "checkpointProtection columnMapping v2Checkpoint",
            "drop v2Checkpoint: set empty*3 drop > 2,7 base changeDataFeed checkpointProtection "
            "columnMapping",
            "drop columnMapping: unmap empty*3 drop > 1,7 base changeDataFeed checkpointProtection",
            f"drop checkpointProtection: {ONLY_TRUNCATING}",
            f"drop changeDataFeed: {NEVER}",
        ),
        {**MAPPED, **VECTORS, **TRACKED, "delta.checkpointPolicy": "v2"},
        {"row_ids": True, "domains": ("delta.rowTracking",)},
    ),
    "iceberg-needs-mapping": Case(
        "2,7 base columnMapping icebergCompatV2",
        (
            f"drop columnMapping: {DEPENDENT}",
            "set delta.enableIcebergCompatV2=false: set",
            f"drop columnMapping: {DEPENDENT}",
        ),
        {**MAPPED, "delta.enableIcebergCompatV2": "true"},
    ),
    "iceberg-3-needs-row-tracking": Case(
        "2,7 base columnMapping domainMetadata icebergCompatV3 rowTracking",
        (
            f"drop rowTracking: {DEPENDENT}",
            f"drop columnMapping: {DEPENDENT}",
            f"drop domainMetadata: {DEPENDENT}",
        ),
        {**MAPPED, **TRACKED, "delta.enableIcebergCompatV3": "true"},
    ),
    "clustering-needs-domains": Case(
        "1,7 base clustering domainMetadata",
        (
            f"drop domainMetadata: {DEPENDENT}",
            "unclustered: cluster",
            f"drop clustering: {NEVER}",
            f"drop domainMetadata: {DEPENDENT}",
        ),
        more={"clustering": ("id",), "domains": ("delta.clustering",)},
    ),
    "pair-2-5": Case(
        "2,5 base changeDataFeed checkConstraints columnMapping generatedColumns",
        (
            "drop columnMapping: empty*3 drop > 1,7 base changeDataFeed checkConstraints "
            "checkpointProtection generatedColumns",
            f"truncate checkpointProtection: empty {PROTECTION_WAITS}",
            "drop checkConstraints: drop > 1,7 base changeDataFeed checkpointProtection "
            "generatedColumns",
        ),
        traced="columnMapping",
    ),
    "pair-2-5-mapped-truncating": Case(
        "2,5 base changeDataFeed checkConstraints columnMapping generatedColumns",
        (
            f"truncate columnMapping: unmap empty {WAIT}",
            "wait",
            "truncate columnMapping: empty drop > "
            "1,4 base changeDataFeed checkConstraints generatedColumns",
        ),
        MAPPED,
        traced="columnMapping",
    ),
    "pair-2-5-switched-off": Case(
        "2,5 base changeDataFeed checkConstraints columnMapping generatedColumns",
        (
            "set delta.columnMapping.mode=none: unmap",
            "drop columnMapping: empty*3 drop > 1,7 base changeDataFeed checkConstraints "
            "checkpointProtection generatedColumns",
        ),
        MAPPED,
    ),
    "pair-1-4": Case(
        "1,4 base changeDataFeed checkConstraints generatedColumns",
        (
            "drop checkConstraints: drop > 1,7 base changeDataFeed generatedColumns",
            f"drop changeDataFeed: {NEVER}",
            f"drop generatedColumns: {NEVER}",
            "set delta.feature.checkConstraints=supported: set > "
            "1,4 base changeDataFeed checkConstraints generatedColumns",
        ),
    ),
    "pair-2-6": Case(
        "2,6 base changeDataFeed checkConstraints columnMapping generatedColumns identityColumns",
        (
            f"drop identityColumns: {NEVER}",
            "drop checkConstraints: drop > "
            "2,7 base changeDataFeed columnMapping generatedColumns identityColumns",
            "drop columnMapping: empty*3 drop > 1,7 base changeDataFeed checkpointProtection "
            "generatedColumns identityColumns",
        ),
    ),
    "raised-step-by-step": Case(
        "1,2 base",
        (
            "set delta.enableChangeDataFeed=true: set > 1,7 base changeDataFeed",
            "set delta.columnMapping.mode=name: set > 2,7 base changeDataFeed columnMapping",
            "set delta.enableDeletionVectors=true: set > "
            "3,7 base changeDataFeed columnMapping deletionVectors",
            "drop deletionVectors: unset tombstones empty*3 drop > "
            "2,7 base changeDataFeed checkpointProtection columnMapping",
        ),
    ),
    "supported-vectors-truncating": Case(
        "3,7 base checkConstraints columnMapping deletionVectors icebergCompatV2",
        (
            f"drop DELETIONVECTORS: {ABSENT}",
            "truncate deletionVectors: tombstones empty drop > "
            "2,7 base checkConstraints columnMapping icebergCompatV2",
        ),
    ),
    "timestamps-after-a-fast-drop": Case(
        "3,7 base deletionVectors inCommitTimestamp",
        (
            "drop deletionVectors: unset tombstones empty*3 drop > "
            "1,7 base checkpointProtection inCommitTimestamp",
            f"drop inCommitTimestamp: unset drop > {PROTECTED}",
        ),
        {**VECTORS, "delta.enableInCommitTimestamps": "true"},
    ),
    "two-fast-drops": Case(
        "3,7 base deletionVectors typeWidening v2Checkpoint",
        (
            "drop deletionVectors: unset tombstones empty*3 drop > "
            "3,7 base checkpointProtection typeWidening v2Checkpoint",
            "drop typeWidening: unset empty*3 drop > 3,7 base checkpointProtection v2Checkpoint",
            f"drop v2Checkpoint: set empty*3 drop > {PROTECTED}",
        ),
        {**VECTORS, **WIDENING, "delta.checkpointPolicy": "v2"},
    ),
    "append-only-hinders-nothing": Case(
        "3,7 base columnMapping deletionVectors typeWidening",
        (
            "drop columnMapping: unmap empty*3 drop > "
            "3,7 base checkpointProtection deletionVectors typeWidening",
            "drop deletionVectors: unset tombstones empty*3 drop > "
            "3,7 base checkpointProtection typeWidening",
            f"drop typeWidening: unset empty*3 drop > {PROTECTED}",
        ),
        {**MAPPED, **VECTORS, **WIDENING, "delta.appendOnly": "true"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_was_measured_is_predicted(name: str) -> None:
    case = CASES[name]
    known = {"vectors": False, "widened": False, "v2_checkpoint": False, "row_ids": False}
    table = Table(protocol(case.protocol), case.configuration)._replace(
        **{**known, "traced": frozenset(case.traced.split()), "aged": frozenset(), **case.more}
    )
    for line in case.lines:
        if line == "wait":
            table = table.ended(24).waited()
            continue
        statement, _, happened = line.partition(": ")
        said = outcome(table, statement)
        agree(said, measured(happened, table.protocol))
        after = happened.partition(" > ")[2]
        assert said.table.protocol == (protocol(after) if after else table.protocol), line
        table = said.table


def outcome(table: Table, statement: str) -> Outcome:
    verb, _, rest = statement.partition(" ")
    if verb in ("drop", "truncate"):
        return drop_feature(table, rest, Engine(), truncate=verb == "truncate")
    if verb == "set":
        key, _, value = rest.partition("=")
        return SetProperties({key: value}).outcome(table, Engine())
    if verb == "constraint":
        return DropConstraint(rest).outcome(table, Engine())
    return ClusterBy(()).outcome(table, Engine())


def measured(text: str, before: Protocol) -> Happened:
    commits, _, after = text.partition(" > ")
    operations: list[str] = []
    error = None
    for word in commits.split():
        name, _, times = word.partition("*")
        if name.startswith("!"):
            error = name[1:]
        else:
            operations += [OPERATIONS[name]] * int(times or 1)
    protocols = [before] * len(operations)
    if after:
        protocols[-1] = protocol(after)
    return Happened(operations, protocols, error)


def protocol(text: str) -> Protocol:
    versions, names = re.sub(r"\bbase\b", BASE, text).split(" ", 1)
    found = Protocol.carrying(names.split())
    assert f"{found.min_reader_version},{found.min_writer_version}" == versions, text
    return found
