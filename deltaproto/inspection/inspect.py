"""Reads one table with the requested readers, and evaluates the rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from deltaproto.counts import shorten
from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.inspection.interface import Inspection, ReaderChoice, ReadRequest, Unreadable
from deltaproto.location import LocationKind, catalog_server, is_remote, locate
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, severity_sort_key
from deltaproto.policy.rules import run_table_rules, stream_on_two_clusters
from deltaproto.policy.rules.catalog_managed import incomplete
from deltaproto.policy.rules.reader_refused import RULE as REFUSED
from deltaproto.policy.rules.readers_disagree import RULE as DISAGREE
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.isolation import (
    ISOLATION_PROPERTY,
    evaluate_isolation,
    row_level_concurrency,
)
from deltaproto.protocol.table_state import Reader, ReaderName, TableState
from deltaproto.tables.engine_errors import contain_table_errors

if TYPE_CHECKING:
    from deltaproto.tables.open import OpenedLog, ResolvedName

_LONGEST_VALUE = 60
"""characters of a value in a disagreement of readers"""
_LOG_SHOWS = (ErrorCode.UNSUPPORTED_PROTOCOL, ErrorCode.CORRUPT_LOG)
"""errors of engines for tables whose log can be read without them"""
_BY_TRUST = (ReaderName.LOG, ReaderName.SPARK, ReaderName.DELTA_RS)


def inspect_table(table: str, request: ReadRequest) -> Inspection | Unreadable:
    """Inspect `table`; a table that cannot be read is a result, not an exception.

    Raises:
        UsageError: for an invalid request for this table.
    """
    if request.version is not None and request.version < 0:
        raise UsageError(f"version {request.version} is negative", "versions start at 0")
    if request.version is not None and request.reader is ReaderChoice.SPARK:
        raise UsageError(
            "Spark's SQL shows the protocol of the newest version only",
            "use --reader log for an older version",
        )
    named: ResolvedName | None = None
    result: Inspection | Unreadable
    try:
        with contain_table_errors():
            named = _resolve(table, request)
            if request.reader is ReaderChoice.ALL:
                result = _inspect_with_all_readers(table, request, named)
            else:
                reader = _choose_reader(table, request.reader)
                result = run_rules(_read_state(reader, table, request, named))
    except TableError as error:
        from deltaproto.redaction import redact_address

        if request.reader is ReaderChoice.DELTA_RS and error.code in _LOG_SHOWS:
            error.hint = error.hint or "use --reader log, which shows what the log has"
        result = Unreadable(redact_address(table), error)
    by: str = result.state.reader if isinstance(result, Inspection) else request.reader
    if named is not None and request.version is None and by != ReaderName.SPARK:
        result = _compare_with_entry(table, result, named)
    if isinstance(result, Inspection):
        result = result._replace(requested_version=request.version)
    if request.activity and isinstance(result, Inspection):
        return _add_activity(result, request)
    return result


def _resolve(table: str, request: ReadRequest) -> ResolvedName | None:
    """Resolve a name with its catalog's URL; None for other addresses."""
    location = locate(table)
    if location.kind is not LocationKind.CATALOG:
        return None
    from deltaproto.tables.open import resolve_name

    return resolve_name(location, request.storage_options)


def _compare_with_entry(
    table: str, result: Inspection | Unreadable, named: ResolvedName
) -> Inspection | Unreadable:
    """Add findings that compare the newest version with the table's catalog entry.

    A Spark session may have another table by this name, or none: its result is not compared.
    """
    from deltaproto.inspection.catalog_entry import (
        CatalogEntry,
        LogFacts,
        compare_with_log,
        find_missing_log,
    )

    entries = [CatalogEntry(catalog_server(locate(table).uri), named.entry)]
    if isinstance(result, Unreadable):
        place = locate(named.location).uri
        error = (result.readers or {}).get(ReaderName.LOG, result.error)
        assert isinstance(error, TableError)
        found = find_missing_log(result.table, place, error.code, entries)
        return result._replace(findings=tuple(found))
    facts = LogFacts.of(result.state, complete=result.complete)
    more = compare_with_log(table, facts, entries)
    return result._replace(findings=tuple(sorted((*result.findings, *more), key=severity_sort_key)))


def _add_activity(inspection: Inspection, request: ReadRequest) -> Inspection:
    from deltaproto.inspection.activity import recent_activity
    from deltaproto.tables.log.catalog_managed import has_every_commit
    from deltaproto.tables.open import open_table_log

    try:
        with contain_table_errors():
            store = open_table_log(
                inspection.state.table, request.storage_options, request.spark
            ).store
            activity = recent_activity(store)
    except TableError as error:
        return inspection._replace(activity=error, complete=False)
    whole = has_every_commit(store, inspection.state.protocol)
    found = [
        stream_on_two_clusters.finding(
            inspection.state.table, stream.app_id, stream.clusters, shared=stream.shared
        )
        for stream in activity.streams
        if len(set(stream.clusters)) > 1
    ]
    return inspection._replace(
        activity=activity._replace(has_newest=whole),
        findings=tuple(sorted((*inspection.findings, *found), key=severity_sort_key)),
        complete=inspection.complete and whole,
    )


def inspect_ahead(
    tables: Iterable[str], request: ReadRequest
) -> Iterator[tuple[str, Callable[[], Inspection | Unreadable]]]:
    """Yield each table with a function that returns its inspection, or raises as `inspect_table`.

    Remote tables are read ahead, several at the same time.
    """

    def waits(table: str) -> bool:
        return is_remote(table) and not uses_spark(table, request)

    names, inspect = list(tables), partial(inspect_table, request=request)
    if not any(map(waits, names)):
        return ((name, partial(inspect, name)) for name in names)
    # Threads take longer to import than a small table to inspect.
    from deltaproto.interrupts import work_ahead

    return work_ahead(inspect, names, waits)


def uses_spark(table: str, request: ReadRequest) -> bool:
    """Return True if inspecting `table` uses Spark, which may take a while to start."""
    if request.reader is ReaderChoice.ALL:
        return request.version is None
    try:
        return _choose_reader(table, request.reader) is ReaderName.SPARK
    except TableError:
        return False


def _inspect_with_all_readers(
    table: str, request: ReadRequest, named: ResolvedName | None
) -> Inspection | Unreadable:
    answers: dict[ReaderName, TableState | TableError] = {}
    by_name = locate(table).kind is LocationKind.NAME
    order = sorted(_BY_TRUST, key=lambda name: by_name and name is not ReaderName.SPARK)
    if request.version is not None:
        # Spark's SQL shows the protocol of the newest version only.
        order.remove(ReaderName.SPARK)
    where = table
    for name in order:
        answer = answers[name] = (
            _read_by_catalog(table, request)
            if by_name and name is ReaderName.LOG and where != table
            else _read_with(name, where, request, named)
        )
        if by_name and name is ReaderName.SPARK and isinstance(answer, TableState):
            where = answer.location
    readers = {name: answers[name] for name in ReaderName if name in answers}
    trusted = next((a for n in _BY_TRUST if isinstance(a := answers.get(n), TableState)), None)
    through = answers.get(ReaderName.SPARK)
    if trusted is not None and by_name and isinstance(through, TableState):
        # Only the catalog knows the newest commits of a table that it manages.
        managed = CATALOG_MANAGED & through.protocol.supported
        trusted = through if managed and not trusted.confirmed else trusted
    if trusted is None:
        error = answers[order[0]]
        assert isinstance(error, TableError)
        return Unreadable(table, error, readers)
    unavailable = any(
        isinstance(answer, TableError) and answer.code is ErrorCode.ENGINE
        for answer in answers.values()
    )

    result = run_rules(
        trusted._replace(table=table), tuple(compare_readers(table, answers, trusted))
    )
    return result._replace(complete=result.complete and not unavailable, readers=readers)


def run_rules(state: TableState, more: tuple[Finding, ...] = ()) -> Inspection:
    """Evaluate the rules for a table's state."""
    subject = RuleContext(state)
    return Inspection(
        subject=subject,
        isolation=evaluate_isolation(state.metadata.property(ISOLATION_PROPERTY)),
        row_level=row_level_concurrency(
            subject.features, state.metadata.partition_columns, state.clustering_columns
        ),
        findings=tuple(sorted((*run_table_rules(subject), *more), key=severity_sort_key)),
        complete=not incomplete(subject),
    )


def _read_with(
    name: ReaderName, table: str, request: ReadRequest, named: ResolvedName | None
) -> TableState | TableError:
    try:
        with contain_table_errors():
            return _read_state(name, table, request, named)
    except TableError as error:
        return error


def _read_state(
    name: ReaderName, table: str, request: ReadRequest, named: ResolvedName | None
) -> TableState:
    if named is None:
        return _create_reader(name, request).read(table, request.version)
    request = request._replace(storage_options=named.storage_options)
    if name is ReaderName.LOG:
        return _read_log(named.open_log(table), request)
    place = named.location
    if name is ReaderName.SPARK:
        place = named.spark
        request = request._replace(spark=request.spark.reaching(place))
    return _create_reader(name, request).read(place, request.version)._replace(table=table)


def _read_by_catalog(table: str, request: ReadRequest) -> TableState | TableError:
    try:
        with contain_table_errors():
            return _read_log_by_name(table, request)
    except TableError as error:
        return error


def _read_log_by_name(table: str, request: ReadRequest) -> TableState:
    """Read the log of a catalog's table, including ratified staged commits."""
    from deltaproto.tables.open import open_table_log

    return _read_log(open_table_log(table, request.storage_options, request.spark), request)


def _read_log(reached: OpenedLog, request: ReadRequest) -> TableState:
    from deltaproto.tables.log.reader import LogReader

    reader = _create_reader(ReaderName.LOG, request)
    assert isinstance(reader, LogReader)
    return reader.read_from(reached.location, reached.store, request.version)


def _choose_reader(table: str, choice: ReaderChoice) -> ReaderName:
    if choice is ReaderChoice.AUTO:
        return ReaderName.SPARK if locate(table).kind is LocationKind.NAME else ReaderName.LOG
    return ReaderName(choice)


def _create_reader(name: ReaderName, request: ReadRequest) -> Reader:
    match name:
        case ReaderName.LOG:
            from deltaproto.tables.log.reader import LogReader

            return LogReader(
                request.storage_options,
                use_checksums=request.use_checksums,
                look_in_files=request.look_in_files,
                every_statistics=request.look_in_files,
                every_commit=True,
            )
        case ReaderName.DELTA_RS:
            from deltaproto.tables.delta_rs import DeltaRsReader

            return DeltaRsReader(request.storage_options)
        case ReaderName.SPARK:
            from deltaproto.tables.spark import SparkReader

            return SparkReader(request.spark)


_REDACTED = "(redacted)"


def compare_readers(
    table: str,
    answers: Mapping[ReaderName, TableState | TableError],
    trusted: TableState | None = None,
) -> Iterator[Finding]:
    """Find refusals and disagreements among the readers' results.

    They are compared with the trusted result: by default the log's, else the first. A reader whose
    engine is missing has no result, so it is not a finding. Fields that a reader cannot see are not
    compared.
    """
    states = {name: answer for name, answer in answers.items() if isinstance(answer, TableState)}
    for name, answer in answers.items():
        if isinstance(answer, TableError) and answer.code is not ErrorCode.ENGINE and states:
            yield REFUSED.finding(
                table,
                f"{name} gives no result: {answer.message}",
                answer.hint or "see the other readers' results for the table's requirements",
                evidence=f"{name}: {answer.code}",
            )
    if not states:
        return
    yardstick = trusted or states.get(ReaderName.LOG) or next(iter(states.values()))
    expected = comparable_fields(yardstick)
    for name, state in states.items():
        if state.reader is yardstick.reader:
            continue
        for field, value in comparable_fields(state).items():
            if field in expected and value != expected[field]:
                yield DISAGREE.finding(
                    table,
                    f"{field}: {yardstick.reader} has {_short_json(expected[field])}, "
                    f"{name} has {_short_json(value)}",
                    _disagreement_hint(yardstick, state),
                    evidence=field,
                )


def comparable_fields(state: TableState) -> dict[str, Any]:
    """Return the fields of a state that its reader can determine, in comparable form."""
    protocol, metadata = state.protocol, state.metadata
    fields: dict[str, Any] = {
        "version": state.version,
        "id": metadata.id,
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        # delta-rs and Spark do not distinguish an empty list from a missing one.
        "readerFeatures": sorted(protocol.reader_features or ()),
        "writerFeatures": sorted(protocol.writer_features or ()),
        "partition_columns": list(metadata.partition_columns),
        "configuration": dict(sorted(metadata.configuration.items())),
    }
    if state.clustering_columns is not None:
        fields["clustering_columns"] = list(state.clustering_columns)
    if any(_REDACTED in str(value) for value in metadata.configuration.values()):
        del fields["configuration"]
    return fields


def _disagreement_hint(yardstick: TableState, state: TableState) -> str:
    if CATALOG_MANAGED & yardstick.protocol.supported and yardstick.version > state.version:
        return "the catalog has newer commits than the log: trust the result of spark"
    if yardstick.version != state.version:
        return "the table changed meanwhile, or a reader sees another version; run again"
    return "the log reader follows the spec; check the log before trusting the other result"


def _short_json(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
