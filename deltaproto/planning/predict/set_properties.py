"""Effects of ALTER TABLE … SET and UNSET TBLPROPERTIES on an existing table.

Source: Delta Spark 4.4's `AlterTableSetPropertiesDeltaCommand`, `OptimisticTransaction`
and `Protocol.upgradeProtocolFromMetadataForExistingTable`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltaproto.planning import arithmetic
from deltaproto.planning.engine import DEFAULT_ENGINE, Engine
from deltaproto.planning.predict import column_mapping, consistency
from deltaproto.planning.predict.auto_enable import upgrade_for_properties
from deltaproto.planning.predict.consistency import complete_properties, validate_change
from deltaproto.planning.predict.coordinated import validate_unset
from deltaproto.planning.predict.outcome import (
    Outcome,
    PredictedCommit,
    Refusal,
    as_known_for,
)
from deltaproto.planning.predict.pending import (
    UNLISTED,
    VERSIONS,
    requested_protocol,
    stored_requests,
    used_features,
    validate_stored_requests,
)
from deltaproto.planning.predict.table import (
    MAPPING_MODE,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    ROW_TRACKING,
    ROW_TRACKING_SUSPENDED,
    Table,
)
from deltaproto.planning.predict.validation import (
    validate_after_backfill,
    validate_before_commits,
)
from deltaproto.protocol.feature_catalog import FEATURE_PREFIX
from deltaproto.protocol.properties import FORMATS, parse_formats

SET, UNSET = "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"
UNCOUNTED = "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"
"""error class for files that need row ids, and whose number of rows the log does not have"""
_BACKFILL = "ROW TRACKING BACKFILL"
_SUSPENDED = Refusal(
    "",
    "files get no row ids while row tracking is suspended, even if the same statement ends that",
    f"first set {ROW_TRACKING_SUSPENDED} = false in a separate statement",
    # All files may have row ids.
    sure=False,
)
_UNCOUNTED = Refusal(
    UNCOUNTED,
    "Delta Spark cannot give row ids to data files whose statistics lack the number of rows, as "
    "after CONVERT TO DELTA … NO STATISTICS",
    "first write these files again, with UPDATE or INSERT OVERWRITE",
    on_databricks=False,
)
_CONVERTS = (
    "if the table has a catalog name, Delta Spark also converts the metadata, and fails with "
    "DELTA_MISSING_ICEBERG_CLASS if the delta-iceberg jar is missing"
)
_PROTOCOL = (MIN_READER_VERSION.lower(), MIN_WRITER_VERSION.lower(), "delta.ignoreprotocoldefaults")


def set_properties(
    table: Table, properties: Mapping[str, str], engine: Engine = DEFAULT_ENGINE
) -> Outcome:
    """Predict setting these properties in one statement."""
    refusal = validate_before_commits(
        table, properties, engine
    ) or consistency.validate_catalog_properties(table, properties, engine)
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    commits: list[PredictedCommit] = []
    if properties.get(ROW_TRACKING, "").lower() == "true":
        tracked = _enable_row_tracking(table, engine)
        if tracked.refusal is not None:
            return tracked
        table, commits = tracked.table, [*tracked.commits]
    done = Outcome(table)
    if properties.get(MAPPING_MODE) == column_mapping.MODE_NONE:
        done = column_mapping.remove_mapping(table, engine, keep_mode=True)
        commits += done.commits
        if done.refusal is not None or (done.commits and len(properties) == 1):
            return done._replace(commits=tuple(commits))
    elif table.mapped and properties.get(MAPPING_MODE, "").lower() == column_mapping.MODE_NONE:
        done = Outcome(table, warnings=(column_mapping.MISSPELLED_NONE,))
    table = done.table
    refusal = validate_after_backfill(table, properties, engine)
    if refusal is not None:
        return Outcome(table, tuple(commits), done.rewrites, refusal)
    requests = stored_requests(table.configuration)
    if requests:
        table = table.without_properties(*requests)
        versions = {key: properties[key] for key in VERSIONS if key in properties}
        refusal = validate_stored_requests(table, {**requests, **versions}, engine)
        if refusal is not None:
            return Outcome(table, tuple(commits), done.rewrites, refusal)
    asked = requested_protocol(table, {**requests, **properties}, engine)
    after = upgrade_for_properties(asked, {**table.configuration, **properties}, engine)
    stored = {key: value for key, value in properties.items() if not is_protocol_property(key)}
    changed = complete_properties(table, table.with_properties(stored)._replace(protocol=after))
    refusal = validate_change(table, changed, engine, setting=True)
    if refusal is not None:
        return Outcome(table, tuple(commits), done.rewrites, refusal)
    changed = _after_row_tracking(table, changed)
    of_copies = consistency.copy_warnings(table, properties)
    warnings = (*done.warnings, *of_copies, *_catalog_warnings(table, changed))
    return Outcome(changed, (*commits, PredictedCommit(SET, after)), done.rewrites, None, warnings)


def unset_properties(table: Table, keys: Iterable[str], engine: Engine = DEFAULT_ENGINE) -> Outcome:
    """Predict unsetting these properties in one statement.

    This never shrinks the protocol. Unsetting a property that is not set also commits.
    """
    names = list(keys)
    refusal = validate_unset(table.configuration, names)
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    done = Outcome(table)
    refusal = consistency.validate_catalog_properties(table, names, engine)
    if refusal is not None:
        return done._replace(refusal=refusal)
    if MAPPING_MODE in names:
        done = column_mapping.remove_mapping(table, engine, keep_mode=False)
        if done.refusal is not None or (done.commits and len(names) == 1):
            return done
    stored = [name.lower() if name.lower().startswith(FEATURE_PREFIX) else name for name in names]
    changed = complete_properties(done.table, done.table.without_properties(*stored))
    refusal = validate_change(done.table, changed, engine)
    if refusal is not None:
        return done._replace(refusal=refusal)
    commits = (*done.commits, PredictedCommit(UNSET, table.protocol))
    changed = _after_row_tracking(table, changed)
    return Outcome(changed, commits, done.rewrites, None, done.warnings)


def _catalog_warnings(before: Table, after: Table) -> tuple[str, ...]:
    """Return warnings for tables with a catalog name."""
    old, new = (parse_formats(table.configuration.get(FORMATS, "")) for table in (before, after))
    return (_CONVERTS,) if "iceberg" in new and new != old else ()


def _after_row_tracking(before: Table, after: Table) -> Table:
    """Update the table after row tracking: REORG treats its row ids as dropped columns."""
    off = before.is_on(ROW_TRACKING) and not after.is_on(ROW_TRACKING)
    if off and after.stray_columns is False and after.names_row_ids:
        return after._replace(stray_columns=None)
    return after


def _refuse_unlisted(names: frozenset[str]) -> Refusal:
    """Return why enabling row tracking would make the table unreadable."""
    listed = ", ".join(sorted(names))
    return Refusal(
        UNLISTED,
        f"the table uses {listed}, which its protocol does not have. Row tracking first gives the "
        "protocol a list of features without it, after which every statement fails, even SELECT",
        f"first add {listed}: SET TBLPROPERTIES ('delta.feature.<name>' = 'supported')",
    )


def _enable_row_tracking(table: Table, engine: Engine) -> Outcome:
    """Predict the commits before the one that sets the property."""
    after, commits = _backfill_row_ids(table, engine)
    unlisted = used_features(after, engine) - after.protocol.supported
    if unlisted and table.protocol.writer_features is None:
        done, refusal = Outcome(after, tuple(commits[:1])), _refuse_unlisted(unlisted)
    elif commits and commits[-1].operation == _BACKFILL and table.uncounted_files is not False:
        upgraded = table._replace(protocol=after.protocol)
        done = Outcome(upgraded, tuple(commits[:-1]))
        refusal = _UNCOUNTED._replace(sure=table.uncounted_files is True)
    elif commits and commits[-1].operation == _BACKFILL and table.is_on(ROW_TRACKING_SUSPENDED):
        upgraded = table._replace(protocol=after.protocol)
        done, refusal = Outcome(upgraded, tuple(commits[:-1])), _SUSPENDED
    else:
        return Outcome(after, tuple(commits))
    return done._replace(refusal=as_known_for(refusal, engine))


def _backfill_row_ids(table: Table, engine: Engine) -> tuple[Table, list[PredictedCommit]]:
    """Predict enabling row tracking: first the protocol, then ids for the files."""
    commits = []
    if "rowTracking" not in table.protocol.supported:
        after = arithmetic.enable_feature(table.protocol, "rowTracking", engine)
        table = table._replace(protocol=after)
        commits.append(PredictedCommit("UPGRADE PROTOCOL", after))
    if not table.is_on(ROW_TRACKING) or table.untracked is not False:
        # A table without files needs no backfill.
        sure = table.is_on(ROW_TRACKING) and bool(table.untracked)
        commits.append(PredictedCommit(_BACKFILL, table.protocol, sure=sure))
    return table.with_new_files()._replace(untracked=False), commits


def is_protocol_property(key: str) -> bool:
    """Return True if a property only changes the protocol and is not stored."""
    lower = key.lower()
    return lower in _PROTOCOL or lower.startswith(FEATURE_PREFIX)
