"""RESTORE: the metadata of an older version, with the features of both.

Source: Delta Spark 4.4's `RestoreTableCommand`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import consistency
from deltaproto.planning.predict.auto_enable import upgrade_for_properties
from deltaproto.planning.predict.column_mapping import MODE_NONE, validate_mode_change
from deltaproto.planning.predict.nested_not_null import validate_nested_not_null
from deltaproto.planning.predict.outcome import (
    Outcome,
    PredictedCommit,
    Refusal,
    refusal_on_databricks,
)
from deltaproto.planning.predict.pending import stored_requests
from deltaproto.planning.predict.set_properties import UNCOUNTED
from deltaproto.planning.predict.table import (
    MAPPING_MODE,
    ROW_ID_COLUMNS,
    ROW_TRACKING,
    ROW_TRACKING_DOMAIN,
    Table,
)
from deltaproto.protocol.feature import CLUSTERING_DOMAIN
from deltaproto.protocol.protocol import Protocol

_VERSION = re.compile(r"version as of ([0-9]{1,18})")
_TIME = re.compile(r"timestamp as of ('[^']*'|\"[^\"]*\")")
_DATED = re.compile(r"[+-]?[0-9]{4,}(-[0-9]{1,2}){0,2}([t ].*)?")

HISTORY_MAY_BE_MISSING = (
    "it is unknown whether the history reaches back that far: Delta may refuse the statement"
)
FILES_MAY_BE_MISSING = (
    "Delta refuses the statement if VACUUM deleted data files of that version, or if the version "
    "is older than delta.deletedFileRetentionDuration"
)
VECTORS_MAY_BE_REFUSED = (
    "Delta refuses the statement if that version has other files with deletion vectors than this "
    "one, because it disallows new ones"
)
_VECTORS = Refusal(
    "DELTA_ADDING_DELETION_VECTORS_DISALLOWED",
    "that version has files with deletion vectors, and disallows new ones",
    "restore a version from before delta.enableDeletionVectors was disabled",
)
ROW_IDS_MAY_BE_REFUSED = (
    "Delta refuses the statement if that version has other files without a number of rows than "
    "this one, because it cannot give row ids to them"
)
_UNCOUNTED = Refusal(
    UNCOUNTED,
    "that version has data files whose statistics lack the number of rows, and Delta Spark cannot "
    "give row ids to them",
    "drop rowTracking first",
    on_databricks=False,
)
_RESTORED = "it is unknown which columns, constraints and files RESTORE restores"


class Restore(NamedTuple):
    """RESTORE to a version or a timestamp."""

    to: str
    """as written in the statement"""

    @property
    def version(self) -> int | None:
        """The version; None for a timestamp."""
        found = _VERSION.fullmatch(self.to)
        return None if found is None else int(found[1])

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        refusal, unresolved = self._missing(table, engine)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        if self.version is not None and self.version == table.version:
            # The newest version causes no commit.
            return Outcome(table)
        past = None if self.version is None else table.earlier.get(self.version)
        if past is not None and engine.normalizes and not stored_requests(past.configuration):
            return _restore(table, past, engine)
        unstored = consistency.refuse_rewrite(table)
        if unstored is not None:
            message = f"{unstored.message}; {self.to} can only be restored if it lacks such columns"
            return Outcome(table, refusal=unstored._replace(message=message, sure=False))
        # Partitioning and column names rarely change.
        known = Table(
            table.protocol,
            table.configuration,
            unmappable=table.unmappable,
            geospatial=table.geospatial,
            domains=None,
            clustering=None,
            partition_columns=table.partition_columns,
            stray_columns=None,
            uncounted_files=None if table.uncounted_files else False,
            bounds_changed=True,
            unpredicted=_RESTORED,
        )
        warnings = (
            f"columns, properties and constraints are restored from {self.to}, and features "
            "dropped since then come back; later statements are predicted without them",
        )
        commit = PredictedCommit("RESTORE", table.protocol, sure=not unresolved)
        return Outcome(
            known, (commit,), warnings=(*warnings, *[HISTORY_MAY_BE_MISSING] * unresolved)
        )

    def _missing(self, table: Table, engine: Engine) -> tuple[Refusal | None, bool]:
        """Return why the version is unavailable, and whether that is certain."""
        version, time = self.version, _TIME.fullmatch(self.to)
        if time is not None:
            if _DATED.fullmatch(time[1][1:-1].strip()):
                return None, True
            error, message = "DELTA_TIMESTAMP_INVALID", f"{time[1]} is not a timestamp"
            return Refusal(error, message, "write it as '2026-01-31 12:00:00'"), False
        if version is None:
            remedy = "use TO VERSION AS OF 3, or TO TIMESTAMP AS OF '2026-01-31 12:00:00'"
            message = f"{self.to or 'nothing'} is neither a version nor a timestamp"
            error = "" if self.to.startswith("version as of '") else "PARSE_SYNTAX_ERROR"
            refusal = Refusal(error, message, remedy)
            known = engine.name is EngineName.DELTA_SPARK
            return (refusal if known else refusal_on_databricks(refusal)), False
        if table.version is not None and version > table.version:
            error = "DELTA_CANNOT_RESTORE_TABLE_VERSION"
            message = f"the newest version is {table.version}"
            return Refusal(error, message, "run DESCRIBE HISTORY to see the versions"), False
        # Older versions may have been cleaned up.
        return None, table.version is None or version != table.version


def _restore(table: Table, past: Table, engine: Engine) -> Outcome:
    """Return the outcome of RESTORE to a known version.

    It never removes features, and copies only the clustering domain.
    """
    mode = {MAPPING_MODE: past.configuration.get(MAPPING_MODE, MODE_NONE)}
    refusal = (
        validate_mode_change(table, mode, engine)
        or validate_nested_not_null(table, past)
        or consistency.unstorable(past)
    )
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    warnings = [FILES_MAY_BE_MISSING]
    if past.vectors is not False and not past.is_on("delta.enableDeletionVectors"):
        known = past.vectors and table.vectors is False
        if known and engine.name is EngineName.DELTA_SPARK:
            return Outcome(table, refusal=_VECTORS)
        warnings.append(VECTORS_MAY_BE_REFUSED)
    protocol = table.protocol
    if not past.protocol.supported <= protocol.supported:
        protocol = past.protocol.merge(protocol)
    if past.uncounted_files and "rowTracking" in protocol.supported:
        if table.uncounted_files is False and engine.name is EngineName.DELTA_SPARK:
            return Outcome(table, refusal=_UNCOUNTED)
        warnings.append(ROW_IDS_MAY_BE_REFUSED)
    named = _with_row_id_names(table, past, engine)
    after = (
        consistency.complete_enablement(table, named)
        .without_history()
        ._replace(
            protocol=protocol,
            **_restore_row_ids(table, past, protocol),
            protected_versions=max(past.protected_versions - _versions_between(past, table), 0),
            version=table.version,
            to_checkpoint=table.to_checkpoint,
            earlier=table.earlier,
            rewritten=False,
            absolute_rewritten=False,
            bounds=None,
            bounds_changed=True,
            unpredicted=_RESTORED,
        )
    )
    # RESTORE always writes a checkpoint.
    after = after.checkpointed()
    return Outcome(after, (PredictedCommit("RESTORE", protocol),), warnings=tuple(warnings))


def _with_row_id_names(table: Table, past: Table, engine: Engine) -> Table:
    """Return the older version with the table's row id columns, which Delta keeps, adds or removes.

    Columns with other names stay in the data files, and REORG treats them as dropped columns.
    """
    after = past.without_properties(*ROW_ID_COLUMNS)
    # Delta first adds what the properties require, and the features of that version later.
    required = upgrade_for_properties(table.protocol, past.configuration, engine)
    if "rowTracking" in required.supported:
        after = after.with_row_id_names(table.configuration)
    stored = [past.configuration.get(key) for key in ROW_ID_COLUMNS]
    left = any(stored) and stored != [after.configuration.get(key) for key in ROW_ID_COLUMNS]
    return after._replace(stray_columns=None) if left else after


def _restore_row_ids(table: Table, past: Table, protocol: Protocol) -> dict[str, Any]:
    """Return what is known about row ids: RESTORE leaves the files of both versions unchanged."""
    domains = _merge_domains(table, past)
    if "rowTracking" not in protocol.supported:
        return {"domains": domains, "row_ids": False}
    complete = table.is_on(ROW_TRACKING) and table.untracked is False
    if domains is not None and ROW_TRACKING_DOMAIN not in domains:
        # Restored files without row ids get new ones.
        domains = None
    return {
        "domains": domains,
        "row_ids": True if past.row_ids and table.row_ids else None,
        "untracked": False if complete or not past.is_on(ROW_TRACKING) else None,
    }


def _merge_domains(table: Table, past: Table) -> tuple[str, ...] | None:
    if table.domains is None or past.domains is None:
        return None
    return tuple(sorted({*table.domains, *({*past.domains} & {CLUSTERING_DOMAIN})}))


def _versions_between(past: Table, table: Table) -> int:
    if table.version is None or past.version is None:
        return 0
    return table.version - past.version
