"""Work of DROP FEATURE before the drop commit, per feature.

Source: Delta Spark 4.4's `PreDowngradeTableFeatureCommand`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import column_mapping
from deltaproto.planning.predict.collations import COLLATION_FEATURES
from deltaproto.planning.predict.consistency import (
    refuse_rewrite,
    unstorable,
)
from deltaproto.planning.predict.nested_not_null import validate_nested_not_null
from deltaproto.planning.predict.outcome import REMOVE_MAPPING, Refusal, Rewrite
from deltaproto.planning.predict.properties import find_other_function
from deltaproto.planning.predict.schema import without_type_changes
from deltaproto.planning.predict.table import (
    CHECKPOINT_POLICY,
    GEOSPATIAL_FEATURES,
    MAPPING_MODE,
    ROW_TRACKING,
    ROW_TRACKING_SUSPENDED,
    TIMESTAMPS,
    TIMESTAMPS_SINCE,
    Table,
)
from deltaproto.planning.predict.unreadable import refuse_file_rewrite

_SET, _UNSET, _REORG, _DROP = "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "REORG", "DROP FEATURE"
_ITS_REORG = "the REORG that the drop runs"
_SKIPS_CLUSTERED = (
    "Delta Spark does not rewrite files that OPTIMIZE has clustered: {} can stay in them, although "
    "the feature is dropped. Run ALTER TABLE … CLUSTER BY NONE before, and CLUSTER BY again after."
)
_VECTORS = "deletion vectors, without which deleted rows come back,"
_OLD_TYPES = "values of the types before the type changes"
_FILES_LEFT = "files may keep what the dropped feature describes"
_COORDINATED = (
    "delta.coordinatedCommits.commitCoordinator-preview",
    "delta.coordinatedCommits.commitCoordinatorConf-preview",
    "delta.coordinatedCommits.tableConf-preview",
)


class BeforeDrop(NamedTuple):
    """The preparation before the drop commit."""

    table: Table
    operations: tuple[tuple[str, bool], ...] = ()
    """the operations, each with True if it certainly happens"""
    rewrites: Rewrite = Rewrite.NONE
    changed: bool | None = False
    """traces were removed, so the history still has some; None: unknown"""
    refusal: Refusal | None = None
    """why the statement ends with the preparation"""
    doubt: Refusal | None = None
    """why the statement may end at an operation that depends on unknown facts; `operations` assumes
    that it does not
    """
    warnings: tuple[str, ...] = ()


def prepare_drop(table: Table, name: str, engine: Engine) -> BeforeDrop:
    """Predict the preparation before the feature is dropped."""
    prepared = (
        _PREPARE_BY_REORG[name](table, engine)
        if name in _PREPARE_BY_REORG
        else _PREPARE.get(name, BeforeDrop)(table)
    )
    operations: list[tuple[str, bool]] = []
    doubt: Refusal | None = None
    for operation, sure in prepared.operations:
        refusal = _refuse_operation(table, operation)
        if refusal is None:
            operations.append((operation, sure and doubt is None))
        elif sure and refusal.sure:
            return _refuse(table, prepared, operations, doubt or refusal)
        else:
            doubt = doubt or refusal._replace(sure=False)
            if not refusal.sure:
                operations.append((operation, False))
    if doubt is None:
        return prepared
    if prepared.refusal is not None:
        return _refuse(table, prepared, operations, doubt._replace(sure=prepared.refusal.sure))
    # Only the refused operations count as changes.
    return _refuse(table, prepared, operations, None)._replace(doubt=doubt, changed=False)


def _refuse(
    table: Table,
    prepared: BeforeDrop,
    operations: list[tuple[str, bool]],
    refusal: Refusal | None,
) -> BeforeDrop:
    """Return the preparation without its refused operations.

    The others may still happen, if no earlier refused operation is needed.
    """
    if not operations:
        return BeforeDrop(table, changed=None, refusal=refusal)
    after = prepared.table
    left = table._replace(
        vectors=None if after.vectors != table.vectors else table.vectors,
        stray_columns=None if after.stray_columns != table.stray_columns else table.stray_columns,
        row_ids=None if after.row_ids != table.row_ids else table.row_ids,
    )
    return BeforeDrop(left, tuple(operations), prepared.rewrites, None, refusal)


def _refuse_operation(table: Table, operation: str) -> Refusal | None:
    if operation in (_SET, _UNSET):
        return refuse_rewrite(table)
    if operation == REMOVE_MAPPING:
        plain = table.without_mapping()
        return validate_nested_not_null(table, table, rewritten=True) or unstorable(plain)
    # This commit clears the recorded type changes, without the check of NOT NULL.
    return unstorable(table) if operation == _DROP else None


def _refuse_constraints(table: Table) -> BeforeDrop:
    if not table.constraints:
        return BeforeDrop(table)
    names = ", ".join(table.constraints)
    return BeforeDrop(
        table,
        refusal=Refusal(
            "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            f"the table has the constraints {names}",
            "drop the constraints first",
        ),
    )


def _remove_mapping(table: Table) -> BeforeDrop:
    if table.configuration.get(MAPPING_MODE, "none").lower() == "none":
        return BeforeDrop(table)
    refusal = column_mapping.validate_unmapped_names(table)
    if refusal is not None:
        return BeforeDrop(table, refusal=refusal)
    operations = ((REMOVE_MAPPING, True),)
    return BeforeDrop(
        table.without_mapping(),
        operations,
        Rewrite.ALL,
        changed=True,
        warnings=column_mapping.removal_warnings(table),
    )


def _remove_vectors(table: Table, engine: Engine) -> BeforeDrop:
    writable = table.is_on("delta.enableDeletionVectors")
    there = table.vectors
    operations: list[tuple[str, bool]] = []
    if writable or there is not False:
        # Once new vectors are forbidden, Delta loses count of existing ones whenever it recomputes
        # the snapshot, but still purges them.
        operations.append((_UNSET, writable))
    after = table.without_properties("delta.enableDeletionVectors") if operations else table
    if (refusal := refuse_file_rewrite(table, _ITS_REORG, engine)) is not None:
        return BeforeDrop(after, tuple(operations), refusal=refusal)
    rewrites = purge_rewrites(table)
    if rewrites is not Rewrite.NONE:
        sure = bool(there or table.stray_columns) and not may_skip_files(table, engine)
        if (refusal := _refuse_written_rows(table, engine)) is not None:
            return BeforeDrop(after, tuple(operations), refusal=refusal._replace(sure=sure))
        operations.append((_REORG, sure))
    operations.append(("Deletion Vector Tombstones", True))
    after = purged(after, engine)
    changed = True if writable else False if there is False else None
    prepared = BeforeDrop(after, tuple(operations), rewrites, changed)
    return prepared if after.vectors is False else _leaving_files(prepared, _VECTORS)


def _refuse_written_rows(table: Table, engine: Engine) -> Refusal | None:
    """Return why the REORG that a drop runs cannot write rows, or None."""
    spark = engine.name is EngineName.DELTA_SPARK
    return find_other_function(table, "") if spark else None


def purge_rewrites(table: Table) -> Rewrite:
    """Return what REORG … APPLY (PURGE) rewrites: files with vectors or extra columns."""
    if table.stray_columns is not False:
        return Rewrite.SOME
    return Rewrite.NONE if table.vectors is False else Rewrite.VECTORS


def may_skip_files(table: Table, engine: Engine) -> bool:
    """Return True if REORG may rewrite no file, because OPTIMIZE has clustered them all.

    Delta Spark takes them for finished, with deletion vectors or not, while the table is clustered.
    """
    clustered = "clustering" in table.protocol.supported and table.clustering != ()
    return clustered and engine.name is EngineName.DELTA_SPARK


def needs_unclustering(table: Table, name: str, engine: Engine) -> bool:
    """Return True if clustering must be removed while a feature is dropped or disabled.

    Otherwise Delta Spark 4.4 leaves physical names, which break the table, or does not rewrite.
    """
    if not table.clustering:
        return False
    if name == "columnMapping":
        return table.mapped
    traces = {"deletionVectors": table.vectors}
    traces |= dict.fromkeys(("typeWidening", "typeWidening-preview"), table.widened)
    return traces.get(name, False) is not False and may_skip_files(table, engine)


def purged(table: Table, engine: Engine) -> Table:
    """Return the table after REORG … APPLY (PURGE)."""
    if may_skip_files(table, engine):
        return table._replace(
            vectors=table.vectors and None, stray_columns=table.stray_columns and None
        )
    return table._replace(
        vectors=False, stray_columns=False, absolute_rewritten=moves_absolute(table)
    )


def _leaving_files(prepared: BeforeDrop, what: str) -> BeforeDrop:
    """Return the preparation with what REORG may leave in files that OPTIMIZE has clustered."""
    table = prepared.table._replace(unpredicted=_FILES_LEFT)
    return prepared._replace(table=table, warnings=(_SKIPS_CLUSTERED.format(what),))


def moves_absolute(table: Table) -> bool:
    """Return True if a purge leaves no file with an absolute path."""
    return table.absolute_rewritten or (bool(table.vectors) and not table.absolute_without_vectors)


def _use_classic_checkpoints(table: Table) -> BeforeDrop:
    policy = table.configuration.get(CHECKPOINT_POLICY, "classic").lower()
    if policy == "classic" and table.v2_checkpoint is False:
        return BeforeDrop(table)
    sure = policy != "classic" or bool(table.v2_checkpoint)
    after = table.with_properties({CHECKPOINT_POLICY: "classic"})
    return BeforeDrop(
        after._replace(v2_checkpoint=False), ((_SET, sure),), changed=True if sure else None
    )


def _disable_timestamps(table: Table) -> BeforeDrop:
    there = [key for key in TIMESTAMPS_SINCE if key in table.configuration]
    if not there and not table.is_on(TIMESTAMPS):
        return BeforeDrop(table)
    after = table.without_properties(*TIMESTAMPS_SINCE)
    if table.is_on(TIMESTAMPS):
        after = after.with_properties({TIMESTAMPS: "false"})
    return BeforeDrop(after, ((_UNSET, True),), changed=True)


def _rewrite_widened(table: Table, engine: Engine) -> BeforeDrop:
    enabled = table.is_on("delta.enableTypeWidening")
    if not enabled and table.widened is False:
        return BeforeDrop(table)
    sure = bool(table.widened)
    operations = [(_UNSET, enabled or sure)]
    unset = table.without_properties("delta.enableTypeWidening")
    after = unset._replace(
        widened=False, schema=None if table.schema is None else without_type_changes(table.schema)
    )
    if table.widened is False:
        return BeforeDrop(after, tuple(operations))
    if (refusal := refuse_file_rewrite(table, _ITS_REORG, engine)) is not None:
        return BeforeDrop(unset, tuple(operations), refusal=refusal._replace(sure=sure))
    # If all files were written after the change, nothing is rewritten and REORG does not commit.
    if not table.rewritten:
        if (refusal := _refuse_written_rows(table, engine)) is not None:
            return BeforeDrop(unset, tuple(operations), refusal=refusal._replace(sure=False))
        operations.append((_REORG, False))
        # A rewritten file has no deletion vector.
        after = after._replace(vectors=None if table.vectors else table.vectors)
    operations.append((_DROP, sure))
    rewrites = Rewrite.NONE if table.rewritten else Rewrite.WIDENED
    prepared = BeforeDrop(after, tuple(operations), rewrites, changed=True if sure else None)
    if table.rewritten or not may_skip_files(table, engine):
        return prepared
    return _leaving_files(prepared, _OLD_TYPES)


def _refuse_geospatial(table: Table) -> BeforeDrop:
    error, hint = "DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE", "drop these columns first"
    return _refuse_columns(table, table.geospatial, "geospatial types", error, hint)


def _refuse_collations(table: Table) -> BeforeDrop:
    hint = "run ALTER COLUMN … TYPE STRING COLLATE UTF8_BINARY for each of them first"
    return _refuse_columns(table, table.collated, "collations", "", hint)


def _refuse_columns(
    table: Table, columns: tuple[str, ...], kind: str, error: str, hint: str
) -> BeforeDrop:
    """Refuse the drop if any column has what the feature is for."""
    if not columns:
        return BeforeDrop(table)
    text = f"the columns {', '.join(columns)} have {kind}"
    # Databricks documents both drops.
    return BeforeDrop(table, refusal=Refusal(error, text, hint, on_databricks=True))


def _disable_row_tracking(table: Table) -> BeforeDrop:
    suspended = table.is_on(ROW_TRACKING_SUSPENDED)
    there = table.row_ids
    if suspended and not table.is_on(ROW_TRACKING) and there is False:
        return BeforeDrop(table)
    after = table.with_properties({ROW_TRACKING: "false", ROW_TRACKING_SUSPENDED: "true"})
    operations = [(_SET, not suspended or bool(there))]
    if there is not False:
        operations.append(("ROW TRACKING UNBACKFILL", bool(there)))
    return BeforeDrop(after._replace(row_ids=False), tuple(operations), changed=True)


def _remove_domains(table: Table) -> BeforeDrop:
    if table.domains == ():
        return BeforeDrop(table)
    operations = (("DOMAIN METADATA CLEANUP", table.domains is not None),)
    return BeforeDrop(table._replace(domains=(), clustering=()), operations, changed=True)


def _remove_coordinator(table: Table) -> BeforeDrop:
    if not any(key in table.configuration for key in _COORDINATED):
        return BeforeDrop(table)
    return BeforeDrop(table.without_properties(*_COORDINATED), ((_UNSET, True),), changed=True)


_PREPARE_BY_REORG: dict[str, Callable[[Table, Engine], BeforeDrop]] = {
    "deletionVectors": _remove_vectors,
    "typeWidening": _rewrite_widened,
    "typeWidening-preview": _rewrite_widened,
}
"""the preparations that run REORG"""
_PREPARE: dict[str, Callable[[Table], BeforeDrop]] = {
    "checkConstraints": _refuse_constraints,
    "columnMapping": _remove_mapping,
    "v2Checkpoint": _use_classic_checkpoints,
    "inCommitTimestamp": _disable_timestamps,
    **dict.fromkeys(GEOSPATIAL_FEATURES, _refuse_geospatial),
    **dict.fromkeys(COLLATION_FEATURES, _refuse_collations),
    "rowTracking": _disable_row_tracking,
    "domainMetadata": _remove_domains,
    "coordinatedCommits-preview": _remove_coordinator,
}
