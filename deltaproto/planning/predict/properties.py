"""Parse table properties as Delta Spark does, and predict its refusals."""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.counts import all_names
from deltaproto.planning.engine import DEFAULT_ENGINE, Engine, EngineName
from deltaproto.planning.predict.outcome import (
    REMOVE_MAPPING,
    Outcome,
    PredictedCommit,
    Refusal,
    refusal_on_databricks,
)
from deltaproto.planning.predict.table import (
    MAPPING_MODE,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    ROW_ID_COLUMNS,
    ROW_TRACKING,
    ROW_TRACKING_SUSPENDED,
    TIMESTAMPS,
    TIMESTAMPS_SINCE,
    Table,
)
from deltaproto.policy.constructs import find_other_functions
from deltaproto.protocol import compatibility_mode
from deltaproto.protocol.intervals import parse_interval
from deltaproto.protocol.properties import (
    CANONICAL_NAMES,
    FIRST_RELEASES,
    FORMATS,
    KNOWN_ON_DATABRICKS,
    NEEDED_AFTER,
    PARSED_ON_EVERY_WRITE,
    PREFIXES,
    expected_value,
    suggest_property,
)
from deltaproto.sql.functions import NO_ROUTINE

TRUNCATION_RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"
"""minimum age of the history that DROP FEATURE … TRUNCATE HISTORY deletes"""
LOG_RETENTION = "delta.logRetentionDuration"
"""minimum age of the history that every checkpoint deletes"""
_DEFAULT = {TRUNCATION_RETENTION: "interval 24 hours", LOG_RETENTION: "interval 30 days"}
_FALLBACK_HOURS = 24.0


def effective_value(configuration: Mapping[str, str], key: str) -> str:
    """Return the effective property value."""
    return configuration.get(key) or _DEFAULT[key]


def retention_hours(configuration: Mapping[str, str], key: str) -> float:
    """Return the effective property value in hours."""
    return interval_hours(effective_value(configuration, key))


def interval_hours(interval: str) -> float:
    """Convert a Delta interval (`interval 1 day 12 hours`) to hours; 24 if unreadable.

    A negative interval, which only other engines store, retains nothing: 0.
    """
    parsed = parse_interval(interval)
    return _FALLBACK_HOURS if parsed is None or parsed.months else max(0.0, parsed.hours)


_RESERVED = ("location", "provider", "owner", "external")
_OF_COPIES = {
    key.lower(): key for key in (compatibility_mode.LOCATION, compatibility_mode.INTERVAL)
}
# Delta stores these in lowercase.
_ANY = "delta.universalformat.config."
# Properties that only Delta sets.
_FIXED = ("delta.columnmapping.maxcolumnid", "clusteringcolumns")
FILE_RETENTION = "delta.deletedFileRetentionDuration"
_DEFAULTS = {LOG_RETENTION: "30 days", FILE_RETENTION: "1 week"}
# Jackson's exceptions have no error class.
_AS_JSON = ("delta.coordinatedCommits.", "delta.redirect")
_ORDERED_SINCE = "4.1"
# Delta refuses these with error classes of their own.
_JUDGED_LATER = ("delta.isolationLevel", MAPPING_MODE, MIN_READER_VERSION, MIN_WRITER_VERSION)
_STORE_PROPERTIES = ("SET TBLPROPERTIES", "UNSET TBLPROPERTIES")
READ_FAILED = "FAILED_READ_FILE.NO_HINT"
"""the error class when Delta Spark cannot read the rows of a data file"""
_OF_ROWS = frozenset({"WRITE", "DELETE", "UPDATE", "MERGE", "TRUNCATE"})
_WRITE_ROWS = frozenset({"WRITE", "DELETE", "UPDATE", "MERGE", "OPTIMIZE"})
"""operations that read or write the row ids of rows"""
_CHECK_ROWS = frozenset({"WRITE", "UPDATE", "MERGE", "OPTIMIZE", "REORG", REMOVE_MAPPING})
"""operations that check the constraints of the rows that they write"""
_READ_ROWS = _WRITE_ROWS | {"REORG", "ADD CONSTRAINT", REMOVE_MAPPING}
"""operations that read the table's rows, or resolve the columns of its data files"""


def canonical_name(key: str) -> str:
    """Return the name that Delta stores for a property."""
    lower = key.lower()
    if lower.startswith(_ANY):
        return lower
    return CANONICAL_NAMES.get(lower) or _OF_COPIES.get(lower, key)


def normalize_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Normalize requested properties to Delta's spelling."""
    found = {canonical_name(key): value for key, value in properties.items()}
    if MAPPING_MODE in found:
        # Delta Spark 4.4 accepts uppercase 'NONE' without rewriting the files (`MISREAD`).
        found[MAPPING_MODE] = found[MAPPING_MODE].lower()
    return found


def validate_properties(
    properties: Mapping[str, str], engine: Engine = DEFAULT_ENGINE
) -> Refusal | None:
    """Refuse properties that cannot be set at all, or not to these values."""
    there = engine.name is EngineName.DATABRICKS
    for key, value in properties.items():
        if there and key.lower() in KNOWN_ON_DATABRICKS:
            continue
        found = _validate_name(key, engine) or _validate_value(key, value, engine)
        if found is not None:
            return refusal_on_databricks(found) if there else found
    ordered = not there and engine.at_least(_ORDERED_SINCE)
    return _validate_retentions(properties, engine) if ordered else None


def validate_stored(before: Table, outcome: Outcome) -> Refusal | None:
    """Refuse a statement whose first commit fails because of the table's stored properties.

    Args:
        before: the table before the statement.
        outcome: the outcome without this check; it has at least one commit.

    Source: Delta Spark 4.4's `InCommitTimestampUtils`, `RowTracking` and `RowId`; measured with
    Delta Spark 4.4.0.
    """
    parsed = _validate_parsed(before.configuration, outcome.table.configuration)
    if parsed is not None:
        return parsed
    first = outcome.commits[0]
    refusal = (
        _validate_mapped_rows(before, first)
        or _validate_tracked_rows(before, first)
        or _validate_suspended_tracking(before, first)
        or _validate_enablement(before, outcome)
    )
    if refusal is None and first.operation in _CHECK_ROWS:
        error = "" if first.operation in ("OPTIMIZE", "REORG") else NO_ROUTINE
        refusal = find_other_function(before, error)
    if refusal is None:
        return _validate_untracked_files(before, first)
    # OPTIMIZE, REORG and VACUUM may have nothing to do; the others fail even if they change no row.
    certain = first.operation in _OF_ROWS and refusal.sure
    return refusal._replace(sure=first.sure or certain)


def _validate_parsed(before: Mapping[str, str], after: Mapping[str, str]) -> Refusal | None:
    """Refuse any change to a table that stores values that Delta cannot parse.

    Args:
        before: the stored properties.
        after: the properties after the change; the same if metadata does not change.
    """
    stored = [
        key for key in PARSED_ON_EVERY_WRITE if key in before and expected_value(key, before[key])
    ]
    if after != before:
        stored += [key for key in NEEDED_AFTER if key in after and expected_value(key, after[key])]
    if not stored:
        return None
    key = stored[0]
    value = {**before, **after}[key]
    error = "DELTA_INVALID_INTERVAL" if key.endswith("Duration") else ""
    repair = f"only another client can repair it: set {key} to {expected_value(key, value)}"
    return Refusal(
        error,
        f"the table stores {key} = {value}, which Delta Spark cannot parse",
        repair
        if key in PARSED_ON_EVERY_WRITE
        else f"set {key} to {expected_value(key, value)}, or unset it, first",
        on_databricks=False,
    )


def _validate_mapped_rows(before: Table, first: PredictedCommit) -> Refusal | None:
    """Refuse to read or write rows whose columns have no ids. Any metadata commit assigns them."""
    if first.operation not in _READ_ROWS or not before.unmapped:
        return None
    return Refusal(
        "",
        f"{MAPPING_MODE} = {before.configuration[MAPPING_MODE]}, but a column has no id or no "
        "physical name: Delta Spark cannot read or write the rows",
        "first change any property: SET TBLPROPERTIES assigns them",
        # The others fail when they read a data file.
        sure=first.operation in ("WRITE", "MERGE"),
    )


def _validate_tracked_rows(before: Table, first: PredictedCommit) -> Refusal | None:
    """Refuse to read or write rows while row tracking is enabled but not set up.

    Only a legacy protocol allows that the feature is missing. Any metadata commit adds the feature
    and the names of the columns.
    """
    if first.operation not in _READ_ROWS or not before.is_on(ROW_TRACKING):
        return None
    remedy = f"first: SET TBLPROPERTIES ('{ROW_TRACKING}' = 'true')"
    if "rowTracking" not in before.protocol.supported:
        return Refusal(
            "",
            f"the table stores {ROW_TRACKING} = true, but its protocol does not have rowTracking: "
            "Delta Spark cannot read its rows",
            remedy,
        )
    names = ROW_ID_COLUMNS[:1] if first.operation == "WRITE" else ROW_ID_COLUMNS
    missing = [name for name in names if name not in before.configuration]
    if not missing or first.operation not in _WRITE_ROWS:
        return None
    # Spark wraps the exception of OPTIMIZE.
    error = "DELTA_MATERIALIZED_ROW_TRACKING_COLUMN_NAME_MISSING"
    return Refusal(
        "" if first.operation == "OPTIMIZE" else error,
        f"the table stores {ROW_TRACKING} = true without {all_names(missing)}",
        remedy,
        # The others fail when they read a data file.
        sure=first.operation == "WRITE",
    )


def _validate_untracked_files(before: Table, first: PredictedCommit) -> Refusal | None:
    """Refuse to rewrite rows of data files without row ids while row tracking is enabled."""
    if first.operation == REMOVE_MAPPING:
        return find_untracked_files(before, READ_FAILED, sure=True)
    if first.operation not in ("UPDATE", "DELETE", "MERGE"):
        return None
    # Reading fails before writing begins if rows are repartitioned, as for change files and, which
    # is not predicted, for several files.
    error = READ_FAILED if before.keeps_changes else "TASK_WRITE_FAILED"
    return find_untracked_files(before, error)


def find_other_function(table: Table, error: str) -> Refusal | None:
    """Return why Delta Spark cannot write rows if a constraint calls an unknown function, or None.

    OPTIMIZE and REORG wrap the exception `NO_ROUTINE`.

    deltalake stores its own functions, such as arrow_cast() for a comparison with a timestamp.

    Source: measured with Delta Spark 4.4.0 and 3.3.3, and constraints of deltalake 1.6.6.
    """
    for name, key in table.constraints.items():
        for function in find_other_functions(table.configuration[key]):
            return Refusal(
                error,
                f"the constraint {name} calls {function}(), which Spark does not have: unless the "
                "session defines it, Delta Spark cannot write rows",
                f"drop the constraint {name}, or replace it by one in Spark SQL, first",
                on_databricks=False,
            )
    return None


def find_untracked_files(table: Table, error: str, *, sure: bool = False) -> Refusal | None:
    """Return why Delta Spark cannot rewrite the rows of some data files, or None.

    Dropping rowTracking removes the row ids of all files. RESTORE to an older version enables it
    again, and keeps the files of both versions without row ids. Nothing rewrites them until
    row tracking is enabled explicitly.

    Args:
        sure: the statement rewrites every file.
    """
    if table.untracked is False or not table.is_on(ROW_TRACKING):
        return None
    return Refusal(
        error,
        f"{ROW_TRACKING} = true, but some data files have no row ids: Delta Spark cannot rewrite "
        "their rows"
        if table.untracked
        else f"{ROW_TRACKING} = true, but data files may have no row ids, and Delta Spark then "
        "cannot rewrite their rows",
        "first: DROP FEATURE rowTracking; files without a number of rows cannot get row ids"
        if table.uncounted_files
        else f"first: SET TBLPROPERTIES ('{ROW_TRACKING}' = 'true')",
        sure=sure and bool(table.untracked),
        on_databricks=False,
    )


def _validate_suspended_tracking(before: Table, first: PredictedCommit) -> Refusal | None:
    """Refuse any commit while row tracking is both enabled and suspended."""
    both = before.is_on(ROW_TRACKING) and before.is_on(ROW_TRACKING_SUSPENDED)
    if not both or "rowTracking" not in first.protocol.supported:
        return None
    return Refusal(
        "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
        f"the table stores {ROW_TRACKING} and {ROW_TRACKING_SUSPENDED}, which exclude each other",
        f"unset {ROW_TRACKING_SUSPENDED} with the client that stored it",
    )


def _validate_enablement(before: Table, outcome: Outcome) -> Refusal | None:
    """Refuse to keep only one of the two properties that name the first commit with a timestamp.

    The commit that enables in-commit timestamps stores both, and a commit that removes both
    restores them. Without them, all earlier commits have timestamps, too.
    """
    stores = len(outcome.commits) == 1 or outcome.commits[0].operation in _STORE_PROPERTIES
    first = outcome.table if stores else before
    if not (before.is_on(TIMESTAMPS) and first.is_on(TIMESTAMPS)):
        return None
    old, new = (
        sum(key in each.configuration for key in TIMESTAMPS_SINCE) for each in (before, first)
    )
    if old == 0 or (old == 2 and new != 1):
        return None
    keys = " and ".join(TIMESTAMPS_SINCE)
    return Refusal(
        "",
        f"Delta Spark requires both or none of {keys} while in-commit timestamps are enabled",
        "unset or set both in one statement"
        if old == 2
        else f"first disable in-commit timestamps: UNSET TBLPROPERTIES ('{TIMESTAMPS}')",
    )


def find_invalid_stored(stored: Mapping[str, str]) -> str | None:
    """Return a stored property whose invalid value may make writes fail, or None."""
    keys = (key for key in sorted(stored) if key.startswith("delta."))
    return next((key for key in keys if expected_value(key, stored[key], on_databricks=True)), None)


_OTHER_PREFIX = "check the spelling, or use a prefix other than delta."


def _validate_name(key: str, engine: Engine) -> Refusal | None:
    lower = key.lower()
    if lower in _RESERVED:
        error, why = "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY", f"{key} is a reserved property"
        return Refusal(error, why, "remove the property")
    if lower in _FIXED:
        error, why = "DELTA_CANNOT_MODIFY_TABLE_PROPERTY", f"Delta sets {key} itself"
        return Refusal(error, why, "remove the property")
    unknown = lower.startswith("delta.") and lower not in CANONICAL_NAMES
    since = FIRST_RELEASES.get(lower)
    if since is not None and engine.name is EngineName.DELTA_SPARK and not engine.at_least(since):
        return Refusal(
            "DELTA_UNKNOWN_CONFIGURATION",
            f"{engine} does not support the property {canonical_name(key)}",
            f"use delta-spark@{since} or later",
        )
    if unknown and not lower.startswith(PREFIXES):
        near = suggest_property(key)
        return Refusal(
            "DELTA_UNKNOWN_CONFIGURATION",
            f"Delta has no property {key}",
            f"did you mean {near}?" if near else _OTHER_PREFIX,
        )
    return None


def _validate_value(key: str, value: str, engine: Engine) -> Refusal | None:
    name = canonical_name(key)
    there = engine.name is EngineName.DATABRICKS
    needed = None if name in _JUDGED_LATER else expected_value(name, value, on_databricks=there)
    if needed is None:
        return None
    if name == FORMATS and compatibility_mode.is_requested({name: value}) and not there:
        needed += ": Compatibility Mode is a Databricks service (--engine databricks)"
    error = engine.bad_value
    if name.endswith("Duration") and engine.name is EngineName.DELTA_SPARK:
        error = _interval_error(value, engine)
    elif name.startswith(_AS_JSON):
        error = "INTERNAL_ERROR" if value == "null" else ""
    return Refusal(error, f"{name} cannot be {value or 'empty'}", f"write {needed}")


def _interval_error(value: str, engine: Engine) -> str:
    if not value.strip():
        return "DELTA_INVALID_CALENDAR_INTERVAL_EMPTY"
    return "DELTA_INVALID_INTERVAL" if parse_interval(value) is None else engine.bad_value


def _validate_retentions(properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    """Refuse a short log retention.

    Delta compares the values in the statement, or defaults for missing ones.
    """
    if not {LOG_RETENTION, FILE_RETENTION} & {*properties}:
        return None
    log, files = (
        parse_interval(properties.get(key, _DEFAULTS[key]))
        for key in (LOG_RETENTION, FILE_RETENTION)
    )
    if log is None or files is None or log.hours >= files.hours:
        return None
    return Refusal(
        engine.bad_value,
        f"{LOG_RETENTION} would be shorter than {FILE_RETENTION}, as this statement sets them",
        "set both in one statement",
    )
