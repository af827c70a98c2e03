"""What ALTER TABLE … DROP FEATURE does, commit by commit.

Source: Delta Spark 4.4's `AlterTableDropFeatureDeltaCommand` (the checks and their order) and
`PreDowngradeTableFeatureCommand` (what each feature does first); measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import REMOVE_MAPPING, Commit, Outcome, Refusal, Rewrite
from deltaproto.planning.table import MODE, Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.catalogue import CHECKPOINT_PROTECTION

_BARRIERS = 3
_EMPTY, _SET, _UNSET, _REORG = "Empty Commit", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "REORG"
_DROP = "DROP FEATURE"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
_COORDINATED = (
    "delta.coordinatedCommits.commitCoordinator-preview",
    "delta.coordinatedCommits.commitCoordinatorConf-preview",
    "delta.coordinatedCommits.tableConf-preview",
)
_TIMESTAMPS = "delta.enableInCommitTimestamps"
_PROVENANCE = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
# Removed by the commit that drops the feature itself.
_AT_DROP = {
    "rowTracking": (
        "delta.enableRowTracking",
        "delta.rowTrackingSuspended",
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    ),
    "inCommitTimestamp": (_TIMESTAMPS,),
    "materializePartitionColumns": ("delta.enableMaterializePartitionColumnsFeature",),
}


# Measured with Delta Spark 4.4.0: NoSuchElementException in ClusteringColumnInfo.
_CLUSTERED = (
    "the clustering columns keep their physical names, so that OPTIMIZE, REORG, DESCRIBE DETAIL "
    "and CLUSTER BY itself fail from then on: run ALTER TABLE … CLUSTER BY NONE first"
)


class _Prepared(NamedTuple):
    """What happened before the drop itself."""

    table: Table
    operations: tuple[tuple[str, bool], ...] = ()
    """each with whether it is sure"""
    rewrites: Rewrite = Rewrite.NONE
    changed: bool | None = False
    """traces were removed, so that history still holds some; None: not known"""
    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()


def drop_feature(
    table: Table, name: str, engine: Engine, *, truncate: bool = False, aged: bool = False
) -> Outcome:
    """What the statement does.

    Args:
        truncate: with TRUNCATE HISTORY.
        aged: the history that shows the feature has passed its retention.
    """
    checked = _checked(table, name, engine, truncate)
    if checked is not None:
        return Outcome(table, refusal=checked)
    if name == CHECKPOINT_PROTECTION:
        return _drop_protection(table, aged)
    prepared = _PREPARE.get(name, _nothing)(table)
    operations = list(prepared.operations)
    if prepared.refusal is not None:
        return Outcome(table, refusal=prepared.refusal)
    protects = catalogue.record(name).drop.protects_history
    if truncate or not engine.fast_drop:
        return _truncating(prepared, name, protects, aged)
    if protects:
        operations += [(_EMPTY, True)] * _BARRIERS
    return _dropped(prepared, name, operations, protect=protects)


def _checked(table: Table, name: str, engine: Engine, truncate: bool) -> Refusal | None:
    protocol = table.protocol
    feature = catalogue.record(name)
    if name not in protocol.supported:
        return Refusal(
            "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
            f"{name} is not in the protocol",
            "nothing to drop; names are case-sensitive",
        )
    if not engine.drops(feature):
        later = feature.drop.delta_spark
        return Refusal(
            "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
            f"{engine} cannot drop {name}",
            f"delta-spark {later} can" if later else "only a new table gets rid of it",
        )
    if truncate and not (feature.drop.protects_history or name == CHECKPOINT_PROTECTION):
        return Refusal(
            "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
            f"{name} leaves nothing in history, so TRUNCATE HISTORY is refused",
            "drop it without TRUNCATE HISTORY",
        )
    if name == CHECKPOINT_PROTECTION and not truncate:
        return Refusal(
            "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
            f"{name} goes only with TRUNCATE HISTORY",
            "add TRUNCATE HISTORY",
        )
    dependents = sorted(
        other for other in protocol.supported if name in catalogue.record(other).required_features
    )
    if dependents:
        return Refusal(
            "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
            f"{' and '.join(dependents)} require {name}, used or not",
            f"drop {' and '.join(dependents)} first, where that is possible",
        )
    return None


def _dropped(
    prepared: _Prepared, name: str, operations: list[tuple[str, bool]], *, protect: bool
) -> Outcome:
    before = prepared.table.protocol
    after = before.with_feature(CHECKPOINT_PROTECTION) if protect else before
    after = after.without_feature(name)
    commits = [Commit(operation, before, sure) for operation, sure in operations]
    table = prepared.table.without_properties(*_AT_DROP.get(name, ()))
    if protect:
        # The value is the version of the drop's own commit.
        table = table.with_properties({PROTECTED_BEFORE: "1"})
    if name == "rowTracking" and table.domains is not None:
        table = table._replace(domains=tuple(d for d in table.domains if d != "delta.rowTracking"))
    return Outcome(
        table._replace(protocol=after),
        (*commits, Commit(_DROP, after)),
        prepared.rewrites,
        warnings=prepared.warnings,
    )


def _truncating(prepared: _Prepared, name: str, protects: bool, aged: bool) -> Outcome:
    operations = list(prepared.operations)
    if protects:
        operations.append((_EMPTY, True))
    before = prepared.table.protocol
    commits = tuple(Commit(operation, before, sure) for operation, sure in operations)
    if protects and prepared.changed is not False:
        traced = prepared.table.traced
        table = prepared.table._replace(traced=None if traced is None else traced | {name})
        waiting = Refusal(
            "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
            f"{name} is still in the table's history",
            "run the same statement again once the retention has passed",
            retry=True,
        )
        return Outcome(table, commits, prepared.rewrites, waiting, prepared.warnings)
    traced = prepared.table.traced
    if protects and not aged and (traced is None or name in traced):
        waiting = Refusal(
            "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
            f"{name} is still in the table's history",
            "run the same statement again once the retention has passed",
            retry=True,
        )
        return Outcome(prepared.table, commits, prepared.rewrites, waiting)
    return _dropped(prepared, name, operations, protect=False)


def _drop_protection(table: Table, aged: bool) -> Outcome:
    protocol = table.protocol
    if table.configuration.get(PROTECTED_BEFORE, "0") != "0":
        empty = Commit(_EMPTY, protocol)
        if not aged:
            waiting = Refusal(
                "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
                "the protected history is still there",
                "run the same statement again once the retention has passed",
                retry=True,
            )
            return Outcome(table, (empty,), refusal=waiting)
        commits: tuple[Commit, ...] = (empty, Commit(_UNSET, protocol))
    else:
        commits = (Commit(_UNSET, protocol),)
    after = protocol.without_feature(CHECKPOINT_PROTECTION)
    table = table.without_properties(PROTECTED_BEFORE)
    return Outcome(table._replace(protocol=after), (*commits, Commit(_DROP, after)))


def _nothing(table: Table) -> _Prepared:
    return _Prepared(table)


def _constraints(table: Table) -> _Prepared:
    if not table.constraints:
        return _Prepared(table)
    names = ", ".join(table.constraints)
    return _Prepared(
        table,
        refusal=Refusal(
            "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            f"the constraints {names} are there",
            "drop the constraints first",
        ),
    )


def _mapping(table: Table) -> _Prepared:
    if table.configuration.get(MODE, "none").lower() == "none":
        return _Prepared(table)
    if table.unmappable:
        return _Prepared(
            table,
            refusal=Refusal(
                "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
                f"without mapping the columns {', '.join(table.unmappable)} cannot be named so",
                "rename these columns first",
            ),
        )
    operations = ((REMOVE_MAPPING, True),)
    warnings = () if table.clustering == () else (_CLUSTERED,)
    return _Prepared(
        table.without_mapping(), operations, Rewrite.ALL, changed=True, warnings=warnings
    )


def _vectors(table: Table) -> _Prepared:
    writable = table.on("delta.enableDeletionVectors")
    there = table.vectors
    operations: list[tuple[str, bool]] = []
    if writable or there is not False:
        operations.append((_UNSET, writable or bool(there)))
    if there is not False:
        operations.append((_REORG, bool(there)))
    operations.append(("Deletion Vector Tombstones", True))
    after = table.without_properties("delta.enableDeletionVectors")._replace(vectors=False)
    changed = True if writable or there else None if there is None else False
    rewrites = Rewrite.NONE if there is False else Rewrite.VECTORS
    return _Prepared(after, tuple(operations), rewrites, changed)


def _checkpoints(table: Table) -> _Prepared:
    policy = table.configuration.get("delta.checkpointPolicy", "classic").lower()
    if policy == "classic" and table.v2_checkpoint is False:
        return _Prepared(table)
    sure = policy != "classic" or bool(table.v2_checkpoint)
    after = table.with_properties({"delta.checkpointPolicy": "classic"})
    return _Prepared(
        after._replace(v2_checkpoint=False), ((_SET, sure),), changed=True if sure else None
    )


def _timestamps(table: Table) -> _Prepared:
    there = [key for key in _PROVENANCE if key in table.configuration]
    if not there and not table.on(_TIMESTAMPS):
        return _Prepared(table)
    after = table.without_properties(*_PROVENANCE)
    if table.on(_TIMESTAMPS):
        after = after.with_properties({_TIMESTAMPS: "false"})
    return _Prepared(after, ((_UNSET, True),), changed=True)


def _widening(table: Table) -> _Prepared:
    enabled = table.on("delta.enableTypeWidening")
    if not enabled and table.widened is False:
        return _Prepared(table)
    operations = [(_UNSET, enabled or bool(table.widened))]
    after = table.without_properties("delta.enableTypeWidening")._replace(widened=False)
    if table.widened is False:
        return _Prepared(after, tuple(operations))
    sure = bool(table.widened)
    # Files that were all written after the change need no rewriting; then REORG commits nothing.
    operations += [(_REORG, False), (_DROP, sure)]
    return _Prepared(after, tuple(operations), Rewrite.WIDENED, changed=True if sure else None)


def _geospatial(table: Table) -> _Prepared:
    if not table.geospatial:
        return _Prepared(table)
    return _Prepared(
        table,
        refusal=Refusal(
            "DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE",
            f"the columns {', '.join(table.geospatial)} have geospatial types",
            "drop these columns first",
        ),
    )


def _row_tracking(table: Table) -> _Prepared:
    suspended = table.on("delta.rowTrackingSuspended")
    there = table.row_ids
    if suspended and not table.on("delta.enableRowTracking") and there is False:
        return _Prepared(table)
    after = table.with_properties(
        {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
    )
    operations = [(_SET, not suspended or bool(there))]
    if there is not False:
        operations.append(("ROW TRACKING UNBACKFILL", bool(there)))
    return _Prepared(after._replace(row_ids=False), tuple(operations), changed=True)


def _domains(table: Table) -> _Prepared:
    if table.domains == ():
        return _Prepared(table)
    operations = (("DOMAIN METADATA CLEANUP", table.domains is not None),)
    return _Prepared(table._replace(domains=()), operations, changed=True)


def _coordinated(table: Table) -> _Prepared:
    if not any(key in table.configuration for key in _COORDINATED):
        return _Prepared(table)
    return _Prepared(table.without_properties(*_COORDINATED), ((_UNSET, True),), changed=True)


_PREPARE: dict[str, Callable[[Table], _Prepared]] = {
    "checkConstraints": _constraints,
    "columnMapping": _mapping,
    "deletionVectors": _vectors,
    "v2Checkpoint": _checkpoints,
    "inCommitTimestamp": _timestamps,
    "typeWidening": _widening,
    "typeWidening-preview": _widening,
    "geospatial": _geospatial,
    "geospatial-dev": _geospatial,
    "rowTracking": _row_tracking,
    "domainMetadata": _domains,
    "coordinatedCommits-preview": _coordinated,
}
