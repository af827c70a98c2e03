"""Build planner input from a live table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.inspection.activity import parse_releases, recent_engines
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.inspection.inspect import run_rules
from deltaproto.inspection.interface import Inspection
from deltaproto.location import LocationKind, locate
from deltaproto.planning.ddl.restore import Restore
from deltaproto.planning.ddl.user_statement import ParsedStatement, UserStatement
from deltaproto.planning.from_state import read_comments, table_from_state, with_history
from deltaproto.planning.plan import Fingerprint
from deltaproto.planning.predict.properties import TRUNCATION_RETENTION, retention_hours
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.cost import Files
from deltaproto.policy.hazards import INCONSISTENCY_RULES
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import SparkSettings, TableState
from deltaproto.sql.quoting import address_in_statements, name_in_statements, sql_table_name
from deltaproto.tables.log.catalog_managed import has_every_commit, has_unpublished_commits
from deltaproto.tables.log.files import LogListing, build_listing
from deltaproto.tables.log.live_files import FileCensus, take_census
from deltaproto.tables.log.log_retention import LogAging, analyze_aging
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.log.snapshot import replay, require_rebuildable
from deltaproto.tables.log.traces import Traces, find_history_traces
from deltaproto.tables.open import open_table_log
from deltaproto.tables.storage import LogStore

_HOUR_MS = 3_600_000
_CLOCK_SKEW_MS = 5 * 60_000


def load_plan_input(
    table: str, storage_options: Mapping[str, str], spark: SparkSettings, now: float
) -> PlanInput:
    """Read a table's log, including traces in files and history.

    `now` is in seconds since the epoch; the age of the history is relative to it.

    Raises:
        TableError: if the table cannot be read, or its protocol violates the spec.
        EngineError: if a catalog name requires Spark and Spark is unavailable.
    """
    reached = open_table_log(table, storage_options, spark)
    reader = LogReader(storage_options, look_in_files=True, every_commit=True)
    inspection = run_rules(reader.read_from(reached.location, reached.store))
    found = survey_log(reached.store)
    made = input_from_inspection(inspection)
    census, traces = found.census, found.traces
    keep = int(retention_hours(made.table.configuration, TRUNCATION_RETENTION) * _HOUR_MS)
    seen = {
        name: None if trace.decides is None else trace.decides.removable_ms(keep)
        for name, trace in traces.seen.items()
    }
    engines = recent_engines(reached.store, found.listing)
    ahead = _hours_ahead(found.aging, now)
    by_name = locate(table).kind is LocationKind.NAME
    return made._replace(
        comments=read_comments(inspection.state.metadata) if by_name else None,
        releases=parse_releases(engines) or None,
        engines=engines,
        warnings=(
            *made.warnings,
            *_clock_warnings(inspection, now),
            *_file_time_warnings(ahead),
        ),
        table=with_history(
            made.table,
            seen,
            traces.unknown,
            int(now * 1000),
            in_newest_run=[name for name, trace in traces.seen.items() if trace.open],
            hours_ahead=ahead,
            unpublished=found.aging.unpublished,
        )._replace(
            absolute_without_vectors=census.absolute_without_vectors > 0,
            all_vectors=census.files_with_vectors == census.files,
        ),
        files=Files(
            census.files,
            census.bytes,
            census.files_with_vectors,
            census.bytes_with_vectors,
            census.files_before_type_change,
            census.bytes_before_type_change,
        ),
    )


def with_restored_versions(
    inputs: PlanInput,
    statements: Iterable[ParsedStatement],
    storage_options: Mapping[str, str],
    spark: SparkSettings,
) -> PlanInput:
    """Add to a table that was read from its log the versions that statements restore.

    Versions that are no longer in the log are omitted.
    """
    effects = (
        each.statement.effect for each in statements if isinstance(each.statement, UserStatement)
    )
    wanted = {each.version for each in effects if isinstance(each, Restore)}
    older = sorted(v for v in wanted if v is not None and v < inputs.fingerprint.version)
    if not older or inputs.fingerprint.metadata is None:
        return inputs
    reached = open_table_log(inputs.name, storage_options, spark)
    reader = LogReader(storage_options, look_in_files=True)
    found: dict[int, Table] = {}
    for version in older:
        with suppress(TableError):
            state = reader.read_from(reached.location, reached.store, version)
            found[version] = table_from_state(state)
    return inputs._replace(table=inputs.table.with_earlier(found))


def with_saved_names(now: PlanInput, saved: PlanInput) -> PlanInput:
    """Return a table that was read again, with its saved catalog names for the policy."""
    if now.facts is None:
        return now
    named = locate(saved.name).by_name and saved.address is None
    names = (name_in_statements(saved.name),) if named else ()
    return now._replace(facts=now.facts._replace(other_names=(*names, *saved.other_names)))


def input_from_inspection(inspection: Inspection) -> PlanInput:
    """Convert an inspection to planner input.

    Raises:
        TableError: if the protocol violates the spec, so nothing can be predicted.
    """
    state = inspection.state
    refuse_invalid_protocol(state.protocol)
    found = facts_from_inspection(inspection)
    return PlanInput(
        name=state.table,
        location=state.location,
        sql=sql_table_name(address_in_statements(state.table, state.location)),
        table=table_from_state(state),
        needs=found.needs,
        states=inspection.subject.features,
        fingerprint=fingerprint_of(state),
        facts=found,
        complete=inspection.complete,
        warnings=tuple(_inspection_warnings(inspection)),
    )


def _inspection_warnings(inspection: Inspection) -> Iterator[str]:
    for finding in inspection.findings:
        if not inspection.complete or finding.rule in INCONSISTENCY_RULES:
            yield f"{finding.rule}: {finding.message}"


def _clock_warnings(inspection: Inspection, now: float) -> Iterator[str]:
    """Warn about a newest commit from the future: waits are computed from this clock."""
    stamp = (inspection.state.last_commit or {}).get("inCommitTimestamp")
    if not isinstance(stamp, int) or stamp <= now * 1000 + _CLOCK_SKEW_MS:
        return
    hours = (stamp - now * 1000) / _HOUR_MS
    yield (
        f"The in-commit timestamp of version {inspection.state.version} is "
        f"{min(hours, 1e6):,.1f} hours ahead of this machine's clock: check the clocks. New "
        "commits continue from that timestamp, and this plan computes waiting times from the "
        "clock."
    )


def _hours_ahead(aging: LogAging, now: float) -> float:
    """Return by how many hours the newest commit file is ahead of the clock; 0 if about equal."""
    ahead = max(aging.commits.values(), default=0) - now * 1000
    return ahead / _HOUR_MS if ahead > _CLOCK_SKEW_MS else 0


def _file_time_warnings(ahead: float) -> Iterator[str]:
    """Warn about log files from the future: history expires by the times of its files."""
    if ahead:
        yield (
            f"A commit file of the log was modified {min(ahead, 1e6):,.1f} hours ahead of this "
            "machine's clock: check the clocks. Delta deletes history by these times, so a step "
            "of this plan that waits for history to expire waits that much longer."
        )


def fingerprint_of(state: TableState) -> Fingerprint:
    """Return what must not change in this state between planning and execution."""
    metadata = state.metadata
    return Fingerprint(metadata.id, state.version, state.protocol, metadata_digest(metadata))


def metadata_digest(metadata: Metadata) -> str:
    """Return a digest of schema, partitioning and Delta's own properties."""
    configuration = {
        key: value for key, value in metadata.configuration.items() if key.startswith("delta.")
    }
    parts = [
        metadata.schema_string,
        list(metadata.partition_columns),
        sorted(configuration.items()),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def refuse_invalid_protocol(protocol: Protocol) -> None:
    """Refuse an invalid protocol, because nothing can be predicted for it.

    Raises:
        TableError: unsupported-protocol.
    """
    for violation in protocol.violations():
        raise TableError(
            ErrorCode.UNSUPPORTED_PROTOCOL,
            f"the protocol violates the spec: {violation.message}",
            "repair it first; `deltaproto inspect` shows what is wrong",
        )


class LogSurvey(NamedTuple):
    """One table's newest version, and its remaining history."""

    version: int
    protocol: Protocol
    metadata: Metadata
    census: FileCensus
    traces: Traces
    aging: LogAging
    listing: LogListing


def survey_log(store: LogStore) -> LogSurvey:
    """Read the newest version and the history of the table whose log is in `store`.

    Raises:
        TableError: see `ErrorCode`.
    """
    entries = store.list_dated()
    listing = build_listing(entries)
    version = listing.newest or 0
    require_rebuildable(listing, version)
    snapshot = replay(store, listing, version)
    protocol, metadata = snapshot.protocol, snapshot.metadata
    assert protocol is not None
    assert metadata is not None
    census = take_census(store, listing, version, metadata)
    unpublished = has_unpublished_commits(store)
    times = analyze_aging(entries, listing, unpublished=unpublished)
    vectors = census.files_with_vectors > 0
    whole = has_every_commit(store, protocol)
    traces = find_history_traces(
        store, listing, times, protocol, metadata, vectors=vectors, whole=whole
    )
    return LogSurvey(version, protocol, metadata, census, traces, times, listing)
