"""Effects of ALTER TABLE … SET and UNSET TBLPROPERTIES on an existing table.

Source: Delta Spark 4.4's `AlterTableSetPropertiesDeltaCommand`, `OptimisticTransaction`
and `Protocol.upgradeProtocolFromMetadataForExistingTable`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltaproto.planning import arithmetic
from deltaproto.planning.engine import DEFAULT, Engine
from deltaproto.planning.predict import column_mapping, consistency
from deltaproto.planning.predict.auto_enable import upgraded
from deltaproto.planning.predict.consistency import broken, completed
from deltaproto.planning.predict.coordinated import unremovable
from deltaproto.planning.predict.outcome import Outcome, PredictedCommit, Refusal
from deltaproto.planning.predict.table import MODE, READER, ROW_TRACKING, WRITER, Table
from deltaproto.planning.predict.validation import (
    FEATURE,
    asked_versions,
    feature_of,
    invalid,
    validate_set_properties,
)
from deltaproto.protocol.properties import FORMATS, formats_in
from deltaproto.protocol.protocol import Protocol

SET, UNSET = "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"
_CONVERTS = (
    "if the table has a catalog name, Delta Spark also converts the metadata, and fails with "
    "DELTA_MISSING_ICEBERG_CLASS if the delta-iceberg jar is missing"
)
_PROTOCOL = (READER.lower(), WRITER.lower(), "delta.ignoreprotocoldefaults")


def set_properties(
    table: Table, properties: Mapping[str, str], engine: Engine = DEFAULT
) -> Outcome:
    """Predict setting these properties in one statement."""
    refusal = invalid(table, properties, engine) or consistency.dependencies(table, properties)
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    commits: list[PredictedCommit] = []
    if properties.get(ROW_TRACKING, "").lower() == "true":
        table, commits = _backfilled(table, engine)
    done = Outcome(table)
    if properties.get(MODE) == column_mapping.NONE:
        done = column_mapping.removed(table, engine, keep_mode=True)
        commits += done.commits
        if done.refusal is not None or (done.commits and len(properties) == 1):
            return done._replace(commits=tuple(commits))
    elif table.mapped and properties.get(MODE, "").lower() == column_mapping.NONE:
        done = Outcome(table, warnings=(column_mapping.MISREAD,))
    table = done.table
    refusal = validate_set_properties(table, properties, engine)
    if refusal is not None:
        return Outcome(table, tuple(commits), done.rewrites, refusal)
    asked = requested(table, properties, engine)
    after = upgraded(asked, {**table.configuration, **properties}, None, engine)
    if isinstance(after, Refusal):
        return Outcome(table, tuple(commits), done.rewrites, after)
    stored = {key: value for key, value in properties.items() if not about_protocol(key)}
    changed = completed(table, table.with_properties(stored)._replace(protocol=after))
    refusal = broken(table, changed, engine, setting=True)
    if refusal is not None:
        return Outcome(table, tuple(commits), done.rewrites, refusal)
    changed = _after_row_tracking(table, changed)
    of_copies = consistency.warnings(table, properties)
    warnings = (*done.warnings, *of_copies, *_by_name(table, changed))
    return Outcome(changed, (*commits, PredictedCommit(SET, after)), done.rewrites, None, warnings)


def unset_properties(table: Table, keys: Iterable[str], engine: Engine = DEFAULT) -> Outcome:
    """Predict unsetting these properties in one statement.

    This never shrinks the protocol. Unsetting a property that is not set also commits.
    """
    names = list(keys)
    refusal = unremovable(table.configuration, names)
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    done = Outcome(table)
    refusal = consistency.dependencies(table, names)
    if refusal is not None:
        return done._replace(refusal=refusal)
    if MODE in names:
        done = column_mapping.removed(table, engine, keep_mode=False)
        if done.refusal is not None or (done.commits and len(names) == 1):
            return done
    changed = completed(done.table, done.table.without_properties(*names))
    refusal = broken(done.table, changed, engine)
    if refusal is not None:
        return done._replace(refusal=refusal)
    commits = (*done.commits, PredictedCommit(UNSET, table.protocol))
    changed = _after_row_tracking(table, changed)
    return Outcome(changed, commits, done.rewrites, None, done.warnings)


def _by_name(before: Table, after: Table) -> tuple[str, ...]:
    """Return warnings for tables with a catalog name."""
    old, new = (formats_in(table.configuration.get(FORMATS, "")) for table in (before, after))
    return (_CONVERTS,) if "iceberg" in new and new != old else ()


def _after_row_tracking(before: Table, after: Table) -> Table:
    """Update the table after row tracking: REORG treats its row ids as dropped columns."""
    off = before.on(ROW_TRACKING) and not after.on(ROW_TRACKING)
    if off and after.strays is False and after.names_row_ids:
        return after._replace(strays=None)
    return after


def requested(table: Table, properties: Mapping[str, str], engine: Engine) -> Protocol:
    """Return the protocol with explicitly requested versions and features."""
    after = table.protocol
    versions = asked_versions(table, properties)
    if versions is not None:
        after = arithmetic.raised(after, versions, engine)
    for key in properties:
        if key.lower().startswith(FEATURE):
            after = arithmetic.named(after, feature_of(key) or "", engine)
    return after


def _backfilled(table: Table, engine: Engine) -> tuple[Table, list[PredictedCommit]]:
    """Predict enabling row tracking: first the protocol, then ids for the files."""
    commits = []
    if "rowTracking" not in table.protocol.supported:
        after = arithmetic.enabled(table.protocol, "rowTracking", engine)
        table = table._replace(protocol=after)
        commits.append(PredictedCommit("UPGRADE PROTOCOL", after))
    if not table.on(ROW_TRACKING):
        # A table without files needs no backfill.
        commits.append(PredictedCommit("ROW TRACKING BACKFILL", table.protocol, sure=False))
    return table._replace(row_ids=True), commits


def about_protocol(key: str) -> bool:
    """Return True if a property only changes the protocol and is not stored."""
    lower = key.lower()
    return lower in _PROTOCOL or lower.startswith(FEATURE)
