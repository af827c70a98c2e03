"""Convert a reader's table state to the planner's view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deltaproto.clients.requirements import (
    AMBIGUOUS_COLUMNS,
    ESCAPED_PATHS,
    NON_ASCII_PATHS,
    UNMAPPED_COLUMNS,
    VECTORS_ON_SPECIAL_PATHS,
)
from deltaproto.planning.predict.nested_not_null import find_unenforced, is_spark_text
from deltaproto.planning.predict.schema import Path, parse_schema
from deltaproto.planning.predict.table import (
    MAPPING_MODE,
    MAX_COLUMN_ID,
    PROTECTED_BEFORE,
    ROW_TRACKING,
    TIMESTAMPS,
    Table,
    checkpoint_interval,
)
from deltaproto.policy.contents import find_contents
from deltaproto.protocol.decoding import parse_whole
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.metadata import Metadata, walk_fields
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import NoteKind, TableState

_HOUR_MS = 3_600_000


def _timestamp_error(state: TableState) -> str:
    """Return the error class of every write by Delta Spark, or an empty string."""
    is_on = (state.metadata.configuration.get(TIMESTAMPS) or "").lower() == "true"
    if not is_on or state.traces.get(Trace.COMMIT_TIMESTAMP) is not False:
        return ""
    # Saved states do not have the commit. A commit without commitInfo is the rarer case.
    return (
        "DELTA_MISSING_COMMIT_INFO" if state.last_commit == {} else "DELTA_MISSING_COMMIT_TIMESTAMP"
    )


def table_from_state(state: TableState) -> Table:
    """Return the planner's view of a table; facts that the reader lacks stay unknown."""
    metadata, traces = state.metadata, state.traces
    table = Table(
        protocol=state.protocol,
        configuration={k: v for k, v in metadata.configuration.items() if v is not None},
        vectors=traces.get(Trace.DELETION_VECTORS),
        v2_checkpoint=traces.get(Trace.V2_CHECKPOINT),
        row_ids=traces.get(Trace.ROW_IDS),
        untracked=metadata.is_on(ROW_TRACKING) and traces.get(Trace.UNTRACKED_FILES) is True,
        uncounted_files=traces.get(Trace.UNCOUNTED_FILES) is True,
        clustering=state.clustering_columns,
        partition_columns=metadata.partition_columns,
        stray_columns=None
        if _may_have_cloned_row_ids(state)
        else may_have_stray_columns(state.protocol, metadata.configuration, metadata.schema),
        protected_versions=_count_protected_versions(metadata.configuration, state.version),
        to_checkpoint=commits_until_checkpoint(metadata.configuration, state.version),
        domains=None if state.domains is None else tuple(sorted(state.domains)),
        unreadable=_metadata_flaw(state),
        unstamped=_timestamp_error(state),
        delta_rs_files=traces.get(Trace.DELTA_RS_FILES) is True,
        bounds=state.bounds,
    )
    if table.mapped:
        contents = find_contents(metadata)
        table = table._replace(
            unmapped=UNMAPPED_COLUMNS in contents,
            uncounted=MAX_COLUMN_ID not in table.configuration,
            ambiguous=AMBIGUOUS_COLUMNS in contents,
            folder_hazards=_folder_hazards(state),
        )
    table = table.with_schema(None if metadata.schema is None else parse_schema(metadata.schema))
    if table.schema is None or find_unenforced(table.schema) is None:
        return table
    return table._replace(spark_text=is_spark_text(metadata.schema_string or ""))


def _metadata_flaw(state: TableState) -> str:
    """Return why Delta Spark cannot read the metadata, or an empty string."""
    for note in state.notes:
        if note.kind is NoteKind.METADATA_UNREADABLE:
            return note.message
    metadata = state.metadata
    if metadata.schema_string is not None and metadata.schema is None:
        return "the metadata has no usable schema"
    return ""


def _may_have_cloned_row_ids(state: TableState) -> bool:
    """Return True if files of a clone's source may have row ids in columns of other names."""
    cloned = state.traces.get(Trace.ABSOLUTE_PATHS) is True
    return cloned and "rowTracking" in state.protocol.supported


def _folder_hazards(state: TableState) -> frozenset[str]:
    names = "".join(state.metadata.partition_columns)
    found = set()
    if state.traces.get(Trace.NON_ASCII_VALUES) or not names.isascii():
        found.add(NON_ASCII_PATHS)
    if state.traces.get(Trace.ESCAPED_VALUES):
        found.add(ESCAPED_PATHS)
    if found and "deletionVectors" in state.protocol.supported:
        found.add(VECTORS_ON_SPECIAL_PATHS)
    return frozenset(found)


def read_comments(metadata: Metadata) -> Mapping[Path, str]:
    """Return the comments by column path; the table's comment has the empty path."""
    found = {
        path: text
        for path, stored in walk_fields(metadata.schema)
        if isinstance(text := stored.get("comment"), str)
    }
    return {(): metadata.description, **found} if metadata.description else found


def with_history(
    table: Table,
    seen: Mapping[str, int | None],
    unsure: Iterable[str],
    now_ms: int,
    *,
    in_newest_run: Iterable[str] = (),
    hours_ahead: float = 0,
    unpublished: bool = False,
) -> Table:
    """Return the table with facts about its history.

    Args:
        seen: for each feature found in the history, the earliest time at which a truncation may
         remove its last trace, in milliseconds since the epoch; None: not with the current log.
        unsure: features for which that is unknown.
        in_newest_run: features with no checkpoint between their last trace and the next commit.
        hours_ahead: hours by which the newest file of the log is ahead of the clock.
        unpublished: the newest commits are only staged.
    """
    young = frozenset(name for name, at in seen.items() if at is None or at > now_ms)
    left = {name: (at - now_ms) / _HOUR_MS for name, at in seen.items() if at and name in young}
    aged = frozenset(seen.keys() - young)
    return table._replace(
        traced=young,
        unsure=frozenset(unsure),
        hours_left=left,
        aged=aged,
        aged_in_newest_run=aged.intersection(in_newest_run),
        hours_ahead=hours_ahead,
        unpublished=unpublished,
    )


def commits_until_checkpoint(configuration: Mapping[str, str | None], version: int) -> int:
    """Return the number of commits until Delta writes the next checkpoint automatically.

    Source: Delta Spark's `TransactionHelper.isCheckpointNeeded`.
    """
    interval = checkpoint_interval(configuration)
    return interval - version % interval


def _count_protected_versions(configuration: Mapping[str, str | None], version: int) -> int:
    stored = configuration.get(PROTECTED_BEFORE) or ""
    return max(int(stored) - version, 0) if stored.isdecimal() and len(stored) < 20 else 0


def may_have_stray_columns(
    protocol: Protocol, configuration: Mapping[str, str | None], schema: Any
) -> bool | None:
    """Return whether data files may contain columns missing from the schema; None: maybe.

    If the change data feed was ever enabled, UPDATE and MERGE left `_change_type` in data files. If
    column mapping has assigned more ids than columns exist, columns were dropped. REORG recognizes
    row ids in files only while row tracking is enabled. Dropping rowTracking leaves them there, and
    leaves domainMetadata; RESTORE then brings rowTracking back without the names of their columns.
    """
    tracking = (configuration.get(ROW_TRACKING) or "").lower() == "true"
    row_ids = "domainMetadata" in protocol.supported and not tracking
    if "changeDataFeed" in protocol.supported or row_ids:
        return None
    highest = parse_whole(configuration.get(MAX_COLUMN_ID) or "")
    if (configuration.get(MAPPING_MODE) or "none").lower() == "none" or highest is None:
        return False
    return None if highest > sum(1 for _ in walk_fields(schema)) else False
