"""Effects of ALTER TABLE … DROP FEATURE, commit by commit.

Source: Delta Spark 4.4's `AlterTableDropFeatureDeltaCommand` (the checks and their order) and
`PreDowngradeTableFeatureCommand` (preparation per feature); measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from deltaproto.counts import all_names
from deltaproto.planning import arithmetic
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import pending
from deltaproto.planning.predict.before_drop import BeforeDrop, prepare_drop
from deltaproto.planning.predict.consistency import refuse_rewrite, unstorable
from deltaproto.planning.predict.outcome import (
    REMOVE_MAPPING,
    Outcome,
    PredictedCommit,
    Refusal,
)
from deltaproto.planning.predict.properties import (
    LOG_RETENTION,
    TRUNCATION_RETENTION,
    retention_hours,
)
from deltaproto.planning.predict.table import (
    PROTECTED_BEFORE,
    ROW_ID_COLUMNS,
    ROW_TRACKING_DOMAIN,
    ROW_TRACKING_SUSPENDED,
    Table,
)
from deltaproto.planning.predict.unity_contract import refuse_drop
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import Feature, FeatureKind
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED, CHECKPOINT_PROTECTION
from deltaproto.sql.quoting import quote_literal

_BARRIERS = 3
EMPTY_COMMIT, _DROP = "Empty Commit", "DROP FEATURE"
_SET, _UNSET = "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"
WAIT_ERROR = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
HISTORY_ERROR = "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
# Removed by the drop commit itself.
_AT_DROP = {
    "rowTracking": (
        "delta.enableRowTracking",
        ROW_TRACKING_SUSPENDED,
        *ROW_ID_COLUMNS,
    ),
    "materializePartitionColumns": ("delta.enableMaterializePartitionColumnsFeature",),
}


def drop_feature(table: Table, name: str, engine: Engine, *, truncate: bool = False) -> Outcome:
    """Predict the statement; `truncate` means with TRUNCATE HISTORY.

    Whether a truncating drop has to wait depends on `table.traced`.
    """
    outcome = _predict_drop(table, name, engine, truncate)
    if outcome.commits and pending.has_pending(table, engine):
        outcome = _add_pending(table, name, engine, truncate, outcome)
    if any(commit.operation == EMPTY_COMMIT and commit.sure for commit in outcome.commits):
        # Every empty commit exists only for the checkpoint that it triggers.
        return outcome._replace(table=outcome.table.checkpointed())
    return outcome


def _add_pending(
    table: Table, name: str, engine: Engine, truncate: bool, outcome: Outcome
) -> Outcome:
    """Return the outcome of a drop whose commits also add features that the metadata requests."""
    adding = [
        at
        for at, commit in enumerate(outcome.commits)
        # Delta stores the metadata without in-commit timestamps as it is.
        if commit.operation in (_SET, _UNSET, REMOVE_MAPPING) and name != "inCommitTimestamp"
    ]
    if adding:
        first = adding[0]
        if not outcome.commits[first].sure:
            commits = tuple(commit._replace(sure=False) for commit in outcome.commits)
            message = "it is unknown which commit of the drop adds the features in the metadata"
            refusal = _refuse_downgrade(table, message)._replace(sure=False)
            return Outcome(table, commits, outcome.rewrites, refusal)
        restarted = pending.restart(table, outcome, first, engine)
        if isinstance(restarted, Outcome):
            return restarted
        again = _predict_drop(restarted, name, engine, truncate)
        return pending.begin_later(again, table, first)
    if outcome.refusal is not None:
        return outcome
    listed = table.protocol.writer_features is not None
    after = pending.settle(outcome.table, engine, listed=listed)
    left = Outcome(prepare_drop(table, name, engine).table, outcome.commits[:-1], outcome.rewrites)
    if isinstance(after, Refusal):
        return left._replace(refusal=after)
    added = sorted(after.protocol.supported - outcome.table.protocol.supported)
    if added:
        message = f"the drop's commit would also add {', '.join(added)}"
        return left._replace(refusal=_refuse_downgrade(table, message))
    return outcome._replace(table=after)


def _refuse_downgrade(table: Table, message: str) -> Refusal:
    keys = ", ".join(map(quote_literal, pending.settling_keys(table)))
    return Refusal(
        pending.NOT_A_DOWNGRADE,
        f"the table's metadata requests features that its protocol lacks: {message}",
        f"first: UNSET TBLPROPERTIES ({keys})",
    )


def _predict_drop(table: Table, name: str, engine: Engine, truncate: bool) -> Outcome:
    checked = _validate_drop(table, name, engine, truncate)
    if checked is not None:
        return Outcome(table, refusal=checked)
    if name == CHECKPOINT_PROTECTION:
        return _drop_protection(table, engine)
    prepared = prepare_drop(table, name, engine)
    if prepared.refusal is not None:
        done = tuple(
            PredictedCommit(operation, table.protocol, sure)
            for operation, sure in prepared.operations
        )
        return Outcome(prepared.table, done, prepared.rewrites, prepared.refusal)
    outcome = _predict_prepared(prepared, name, engine, truncate)
    if prepared.doubt is None:
        return outcome
    commits = tuple(commit._replace(sure=False) for commit in outcome.commits)
    refusal = _combine(prepared.doubt, outcome.refusal)
    return Outcome(prepared.table, commits, outcome.rewrites, refusal, outcome.warnings)


def _combine(doubt: Refusal, later: Refusal | None) -> Refusal:
    """Return the refusal of a statement that may end early, or else with `later`.

    On a table that forbids new deletion vectors, Delta Spark rarely still counts the old ones, so
    the statement nearly always reaches the check of the history. Waiting does not remove the doubt.
    """
    if later is None or not later.retry:
        return doubt._replace(sure=later is not None and later.sure)
    message = f"{later.message}, and {doubt.message}"
    return doubt._replace(error=later.error, message=message, sure=False)


def _predict_prepared(prepared: BeforeDrop, name: str, engine: Engine, truncate: bool) -> Outcome:
    protects = feature_catalog.feature_record(name).drop.protects_history
    if truncate or not engine.fast_drop:
        return _predict_truncation(prepared, name, engine, truncate=truncate)
    operations = list(prepared.operations)
    if protects:
        operations += [(EMPTY_COMMIT, True)] * _BARRIERS
    return _commit_drop(prepared, name, engine, operations, protect=protects)


def _validate_drop(table: Table, name: str, engine: Engine, truncate: bool) -> Refusal | None:
    protocol = table.protocol
    feature = feature_catalog.feature_record(name)
    # Delta finds features case-insensitively, but compares case-sensitively with the protocol.
    meant, _ = feature_catalog.search_feature(name)
    called = meant if meant is not None and meant.name.lower() == name.lower() else feature
    if name in CATALOG_MANAGED & protocol.supported and engine.name is EngineName.DELTA_SPARK:
        return Refusal(
            "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            f"{engine} does not treat {name} as a droppable feature",
            "copy the table into a new one",
        )
    if engine.name is EngineName.DELTA_SPARK and not engine.knows(called):
        return Refusal(
            "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            f"{engine} does not support {name}",
            "use an engine that supports it",
        )
    if name not in protocol.supported:
        return Refusal(
            "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
            f"{name} is not in the protocol",
            "nothing to drop; names are case-sensitive",
        )
    if not engine.drops(feature):
        spark = engine.name is EngineName.DELTA_SPARK
        later = feature.drop.delta_spark if spark else feature.drop.databricks
        return Refusal(
            "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
            f"{engine} cannot drop {name}",
            f"{engine.name}@{later.removesuffix(' LTS')} or later can"
            if later
            else "copy the table into a new one",
        )
    if (unlisted := _refuse_version_numbers(table, feature, engine)) is not None:
        return unlisted
    if truncate and not (feature.drop.protects_history or name == CHECKPOINT_PROTECTION):
        return Refusal(
            "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
            f"{name} leaves no traces in the history, so TRUNCATE HISTORY is refused",
            "drop it without TRUNCATE HISTORY",
        )
    if name == CHECKPOINT_PROTECTION and not truncate:
        return Refusal(
            "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
            f"{name} can only be dropped with TRUNCATE HISTORY",
            "add TRUNCATE HISTORY",
        )
    dependents = feature_catalog.find_dependents(name, protocol.supported)
    if dependents:
        named = all_names(dependents)
        return Refusal(
            "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
            f"{named} {'requires' if len(dependents) == 1 else 'require'} {name}, used or not",
            f"drop {named} first, if possible",
        )
    return None


def _refuse_version_numbers(table: Table, feature: Feature, engine: Engine) -> Refusal | None:
    """Return why older runtimes of Databricks do not drop features of a legacy protocol, or None.

    Source: Databricks documentation, "Drop Delta table features (legacy)".
    """
    of_readers = feature.kind is FeatureKind.READER_WRITER
    listed = table.protocol.reader_features if of_readers else table.protocol.writer_features
    if not engine.drops_need_lists or listed is not None:
        return None
    return Refusal(
        "",
        f"{engine} drops {feature.name} only from a protocol that lists it, and this one has the "
        f"versions {table.protocol}",
        "first: plan-upgrade --protocol 3,7; or use databricks@16.3 or later",
        on_databricks=True,
    )


def _commit_drop(
    prepared: BeforeDrop,
    name: str,
    engine: Engine,
    operations: list[tuple[str, bool]],
    *,
    protect: bool,
) -> Outcome:
    before = prepared.table.protocol
    after = before.with_feature(CHECKPOINT_PROTECTION) if protect else before
    after = arithmetic.remove_feature(after, name, engine)
    commits = [PredictedCommit(operation, before, sure) for operation, sure in operations]
    table = prepared.table
    stores = protect or _stores_metadata(table, name, engine)
    if stores and (unstored := refuse_rewrite(table)) is not None:
        return Outcome(table, tuple(commits), prepared.rewrites, unstored)
    if table.stray_columns is False and _leaves_columns(name, table):
        # These columns are no longer referenced, and REORG treats them as dropped.
        table = table._replace(stray_columns=None)
    table = table.without_properties(*_AT_DROP.get(name, ()))
    if protect:
        # The value is the version of the drop commit.
        table = table.with_properties({PROTECTED_BEFORE: "1"}).tracing(CHECKPOINT_PROTECTION)
        table = table._replace(protected_versions=0)
        table = table.ended(retention_hours(table.configuration, TRUNCATION_RETENTION))
    if name == "rowTracking" and table.domains is not None:
        table = table._replace(domains=tuple(d for d in table.domains if d != ROW_TRACKING_DOMAIN))
    return Outcome(
        table._replace(protocol=after),
        (*commits, PredictedCommit(_DROP, after)),
        prepared.rewrites,
        warnings=prepared.warnings,
    )


def _stores_metadata(table: Table, name: str, engine: Engine) -> bool:
    """Return True if a drop commit without protection stores the metadata, and so is checked."""
    changes = any(key in table.configuration for key in _AT_DROP.get(name, ()))
    return changes or engine.drops_store_metadata


def find_drop_refusal(table: Table, name: str, engine: Engine) -> Refusal | None:
    """Return why the table's contents prevent dropping a feature that the engine can drop.

    Constraints do not, because they are dropped first.
    """
    feature = feature_catalog.feature_record(name)
    if (unlisted := _refuse_version_numbers(table, feature, engine)) is not None:
        return unlisted
    prepared = prepare_drop(table, name, engine)
    refusal = prepared.refusal or prepared.doubt or refuse_drop(table, name, engine)
    if name == "checkConstraints" and refusal is not None:
        unstored = unstorable(table)
        if unstored is not None:
            message = f"{refusal.message}, and {unstored.message}: it refuses to drop them"
            return refusal._replace(message=message, remedy=unstored.remedy)
        refusal = None
    protects = engine.fast_drop and feature.drop.protects_history
    if refusal is None and (protects or _stores_metadata(table, name, engine)):
        return refuse_rewrite(table)
    return refusal


def find_protection_refusal(table: Table, *, renewed: bool = False) -> Refusal | None:
    """Return why checkpointProtection cannot be dropped, however long one waits.

    Args:
        renewed: an earlier fast drop stores its own version as the protected one.
    """
    missing = table.protected_versions > 1 and not renewed
    return missing_versions_refusal(table) if missing else refuse_rewrite(table)


def _leaves_columns(name: str, table: Table) -> bool:
    """Return True if data files may keep columns that the feature added."""
    if name == "rowTracking":
        return table.names_row_ids
    return name == "materializePartitionColumns" and bool(table.partition_columns)


def _predict_truncation(
    prepared: BeforeDrop, name: str, engine: Engine, *, truncate: bool
) -> Outcome:
    protects = feature_catalog.feature_record(name).drop.protects_history
    operations = list(prepared.operations)
    if protects and (engine.leaves_checkpoint or prepared.changed):
        operations.append((EMPTY_COMMIT, True))
    before = prepared.table.protocol
    commits = tuple(PredictedCommit(operation, before, sure) for operation, sure in operations)
    if protects and prepared.changed is not False:
        waiting = _wait_refusal(WAIT_ERROR, name)
        table = prepared.table.tracing(name)
    elif protects and prepared.table.shows(name) is not False:
        waiting = _wait_refusal(HISTORY_ERROR, name)
        table = _without_old_history(prepared.table)
    else:
        table = _without_old_history(prepared.table) if protects else prepared.table
        return _commit_drop(prepared._replace(table=table), name, engine, operations, protect=False)
    sure = bool(prepared.changed) or prepared.table.shows(name) is True
    table = table.ended(
        retention_hours(table.configuration, TRUNCATION_RETENTION if truncate else LOG_RETENTION)
    )
    return Outcome(
        table, commits, prepared.rewrites, waiting._replace(sure=sure), prepared.warnings
    )


def _without_old_history(table: Table) -> Table:
    """Return the table after old history was deleted, possibly all the protected history."""
    gone = table.aged is not None and CHECKPOINT_PROTECTION in table.aged
    return table._replace(aged=None) if gone else table


def _wait_refusal(error: str, name: str) -> Refusal:
    return Refusal(
        error,
        f"{name} is still in the table's history",
        "run the same statement again once the retention has passed",
        retry=True,
    )


def missing_versions_refusal(table: Table) -> Refusal:
    """Return why checkpointProtection cannot be dropped before its protected version."""
    value = table.configuration.get(PROTECTED_BEFORE, "0")
    return Refusal(
        "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
        f"{PROTECTED_BEFORE} is {value}, and the table has no such version yet, so waiting "
        "does not help: a clone inherits the value of its source",
        f"on a clone, whose own history begins later, UNSET TBLPROPERTIES ('{PROTECTED_BEFORE}') "
        "first",
    )


def _drop_protection(table: Table, engine: Engine) -> Outcome:
    protocol, shown = table.protocol, table.shows(CHECKPOINT_PROTECTION)
    commits = [PredictedCommit(_UNSET, protocol)]
    if table.configuration.get(PROTECTED_BEFORE, "0") != "0":
        # The checkpoint of its empty commit must be at the protected version or later.
        if table.protected_versions > 1:
            return Outcome(
                table,
                (PredictedCommit(EMPTY_COMMIT, protocol),),
                refusal=missing_versions_refusal(table),
            )
        if shown is not False:
            error = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
            waiting = _wait_refusal(error, "what checkpointProtection protects")._replace(
                sure=bool(shown)
            )
            ended = table.ended(retention_hours(table.configuration, TRUNCATION_RETENTION))
            return Outcome(
                ended, (PredictedCommit(EMPTY_COMMIT, protocol, sure=bool(shown)),), refusal=waiting
            )
        # If the protected history was already deleted, there is no empty commit.
        if table.aged is None or CHECKPOINT_PROTECTION in table.aged:
            commits.insert(0, PredictedCommit(EMPTY_COMMIT, protocol, sure=table.aged is not None))
    unstored = refuse_rewrite(table)
    if unstored is not None:
        return Outcome(table, tuple(commits[:-1]), refusal=unstored)
    after = arithmetic.remove_feature(protocol, CHECKPOINT_PROTECTION, engine)
    table = table.without_properties(PROTECTED_BEFORE)
    return Outcome(table._replace(protocol=after), (*commits, PredictedCommit(_DROP, after)))
