"""Collect the clients that used tables, from the tables' own logs and from access logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError, no_tables_error
from deltaproto.fleet.local_engine import THREADS
from deltaproto.fleet.seen.commits import ReadLog, ReadUpTo, add_commits
from deltaproto.fleet.seen.data_files import FilesRead, add_data_files
from deltaproto.fleet.seen.find_logs import FailedTable, FoundLog
from deltaproto.fleet.seen.log_files import CountedFile
from deltaproto.fleet.seen.read_traces import ReadTraces
from deltaproto.fleet.seen.requests import CountFiles, add_access_log, count_here
from deltaproto.fleet.seen.table_matcher import TableMatcher
from deltaproto.fleet.seen.uses import PrincipalKind, SeenUses
from deltaproto.fleet.seen.wrong_readers import find_candidates, find_wrong_readers
from deltaproto.interrupts import reader_pool, wait_for
from deltaproto.location import LocationKind
from deltaproto.policy.document import normalize_location
from deltaproto.policy.finding import Finding, severity_sort_key
from deltaproto.protocol.table_state import SparkSettings

_CHUNK = 8 * THREADS
"""number of tables that are read or waiting at a time"""
INVENTORY_SOURCE = "inventory"
"""format of the source with the counts of earlier runs"""
OWN_FORMATS = ("delta", "parquet", INVENTORY_SOURCE)
"""formats of sources that are not access logs"""
DATA_FILES = "data files"
"""name of the source that consists of the tables' data files"""
TABLE_LOGS = "table logs"
"""name of the source that consists of the tables' own logs"""


class Source(NamedTuple):
    """One source: how much of it was read, and how much was understood."""

    name: str
    """`TABLE_LOGS`, or an access log as the user named it"""
    format: str
    """`delta`, `inventory`, or the format of an access log"""
    lines: int
    """commits, lines and records of an access log, or commits and requests counted earlier"""
    matched: int
    """commits of identified clients, or requests to the tables"""
    unparsed: int
    """commits or lines that cannot be read"""
    known_files: int = 0
    """files of an access log that an earlier run counted"""
    undated: int = 0
    """requests of an access log whose times are not understood: they count in every period"""
    undated_example: str | None = None
    """such a time, as the log has it"""

    @property
    def is_access_log(self) -> bool:
        """False for the tables' own logs and data files, and for counts of earlier runs."""
        return self.format not in OWN_FORMATS


class Discovery(NamedTuple):
    """Who used the tables, to the extent that the sources show it."""

    uses: SeenUses
    matcher: TableMatcher
    """the tables' locations, to find the tables of requests"""
    places: Mapping[str, str]
    """location of each table by its name, as policies match it; the name of a catalog's table"""
    logs: Mapping[str, FoundLog]
    """each table by its name"""
    traces: ReadTraces
    """what each principal read from each table"""
    tables: int
    """number of tables whose log was read"""
    failed: tuple[FailedTable, ...]
    sources: tuple[Source, ...]
    since: int | None
    """start of the period, in milliseconds since the epoch; None: everything that is left"""
    findings: tuple[Finding, ...] = ()
    """principals that read deleted or stale rows"""
    read: Mapping[str, ReadLog] = MappingProxyType({})
    """the commits read of each table whose log is complete"""
    files: tuple[CountedFile, ...] = ()
    """the files of access logs that were read"""
    unstored: SeenUses | None = None
    """uses that no run stores: by data files, and in access logs that cannot be read to the end;
    None: there are none
    """

    @property
    def complete(self) -> bool:
        """True if every table was read completely."""
        return not self.failed


class LogOptions(NamedTuple):
    """Options for reading tables."""

    storage: Mapping[str, str]
    spark: SparkSettings
    since: int | None
    pseudonymize: bool
    counted: Mapping[str, ReadUpTo] = MappingProxyType({})
    """the commits to skip, by the table's location"""
    counted_files: frozenset[CountedFile] = frozenset()
    """files of access logs that are not counted again"""
    data_files: bool = False
    """whether to read data files whose commits are no longer in the log"""
    storing: bool = False
    """whether a later run counts what this run leaves uncounted"""


class TableUses(NamedTuple):
    """Who used one table, by its own log and its data files."""

    table: str
    uri: str
    """location of the table, also of one that a catalog named"""
    writers: SeenUses
    read: ReadLog
    file_writers: SeenUses
    files: FilesRead


ReadTables = Callable[
    [Iterable[FoundLog | FailedTable], LogOptions], Iterator[TableUses | FailedTable]
]
"""reads tables, in their order"""


def read_here(
    found: Iterable[FoundLog | FailedTable], options: LogOptions
) -> Iterator[TableUses | FailedTable]:
    """Read tables in this process: on disks one at a time, on object stores in threads."""

    def read(each: FoundLog | FailedTable) -> TableUses | FailedTable:
        return each if isinstance(each, FailedTable) else read_table(each, options)

    source = iter(found)
    with reader_pool(THREADS) as threads:
        while chunk := list(islice(source, _CHUNK)):
            remote = [each for each in chunk if isinstance(each, FoundLog) and each.remote]
            waiting = {each.location.uri: threads.submit(read, each) for each in remote}
            for each in chunk:
                # Tables on disks are read here: threads would only wait for each other.
                if isinstance(each, FoundLog) and each.remote:
                    yield wait_for(waiting[each.location.uri])
                else:
                    yield read(each)


def read_table(each: FoundLog, options: LogOptions) -> TableUses | FailedTable:
    """Read one table."""
    part, of_files = (SeenUses(pseudonymize=options.pseudonymize) for _ in range(2))
    files, uri = FilesRead(), None
    try:
        opened = each.open(options.storage, options.spark)
        uri = opened.location.uri
        counted = options.counted.get(place_of(each))
        done = add_commits(each.table, opened, options.storage, options.since, part, counted)
        if options.data_files:
            files = add_data_files(each.table, opened, options.storage, options.since, of_files)
    except TableError as error:
        return FailedTable(each.table, error, uri)
    return TableUses(each.table, uri, part, done, of_files, files)


def discover_writers(
    found: Iterable[FoundLog | FailedTable],
    options: LogOptions,
    seen: Callable[[int], None],
    read_tables: ReadTables = read_here,
) -> Discovery:
    """Read the logs of tables, and sum up who wrote them.

    Args:
        seen: called with the number of tables read, for progress.
        read_tables: reads the tables.
    """
    uses = SeenUses(pseudonymize=options.pseudonymize)
    matcher, places = TableMatcher(options.storage), dict[str, str]()
    logs: dict[str, FoundLog] = {}
    failed: list[FailedTable] = []
    read: dict[str, ReadLog] = {}
    of_files, files_read = SeenUses(pseudonymize=options.pseudonymize), FilesRead()
    tables = commits = identified = unreadable = 0
    for each in read_tables(_watched(found, matcher, places, logs), options):
        if each.uri is not None:
            matcher.add(each.table, each.uri)
        if isinstance(each, FailedTable):
            failed.append(each)
            continue
        table, _, part, done, by_files, of_table = each
        uses.include(part)
        of_files.include(by_files)
        files_read = FilesRead(*map(sum, zip(files_read, of_table, strict=True)))
        tables += 1
        seen(tables)
        commits, identified = commits + done.commits, identified + done.identified
        unreadable += done.unreadable
        if done.problem is not None:
            failed.append(FailedTable(table, done.problem))
        else:
            read[table] = done
    sources = [Source(TABLE_LOGS, "delta", commits + unreadable, identified, unreadable)]
    if options.data_files:
        count = files_read.files + files_read.unreadable
        source = Source(DATA_FILES, "parquet", count, files_read.identified, files_read.unreadable)
        sources.append(source)
    traces = ReadTraces()
    return Discovery(
        uses,
        matcher,
        places,
        logs,
        traces,
        tables,
        tuple(failed),
        tuple(sources),
        options.since,
        read=read,
        unstored=of_files,
    )


def _watched(
    found: Iterable[FoundLog | FailedTable],
    matcher: TableMatcher,
    places: dict[str, str],
    logs: dict[str, FoundLog],
) -> Iterator[FoundLog | FailedTable]:
    """Yield each table and add its location, even if its log cannot be read."""
    for each in found:
        if isinstance(each, FailedTable):
            if each.uri is not None:
                matcher.add(each.table, each.uri)
                places[each.table] = normalize_location(each.uri)
            yield each
            continue
        logs[each.table] = each
        places[each.table] = place_of(each)
        matcher.add_name(each.table)
        if each.location.kind is not LocationKind.NAME:
            matcher.add(each.table, each.location.uri)
        yield each


def place_of(each: FoundLog) -> str:
    """Return the key that identifies a table: its location, or its name in a catalog."""
    named = each.location.kind is LocationKind.NAME
    return each.table if named else normalize_location(each.location.uri)


def require_read(found: Discovery, names: Iterable[str], *, logs: bool, allow_empty: bool) -> None:
    """Require that something was read.

    Args:
        names: the tables, roots and inventories that were named.
        logs: whether there are access logs, which may show requests to a table that failed.

    Raises:
        TableError: when there is no table, or the only one cannot be read.
    """
    if not (found.tables or found.failed or allow_empty):
        raise no_tables_error(", ".join(names), "the path")
    if not (found.tables or logs) and len(found.failed) == 1:
        raise found.failed[0].error


def add_access_logs(
    found: Discovery,
    names: Iterable[str],
    options: LogOptions,
    seen: Callable[[int], None],
    count_files: CountFiles = count_here,
) -> Discovery:
    """Add the requests of access logs to what the tables' own logs show.

    Args:
        names: files, folders and URIs.
        seen: called with the number of lines read of each, for progress.
        count_files: reads the files.
    """
    sources, failed = list(found.sources), list(found.failed)
    files: list[CountedFile] = []
    for name in names:
        done = add_access_log(
            name,
            options.storage,
            found.matcher,
            found.uses,
            found.traces,
            options.since,
            seen,
            options.counted_files.union(files),
            spark=options.spark,
            storing=options.storing,
            count_files=count_files,
        )
        failed += done.failed
        files += done.files
        if found.unstored is not None:
            found.unstored.include(done.broken)
        if done.lines and done.format is None:
            message = "no line of a known access log"
            failed.append(FailedTable(name, TableError(ErrorCode.NOT_FOUND, message, _FORMATS)))
        sources.append(
            Source(
                name,
                done.format or "unknown",
                done.lines,
                done.matched,
                done.unparsed,
                done.known,
                done.undated,
                done.undated_example,
            )
        )
    found = found._replace(sources=tuple(sources), failed=tuple(failed), files=tuple(files))
    return _add_findings(found, options)


def require_requests(found: Discovery) -> Discovery:
    """Require a request to one of the tables, or else no reader could have been seen.

    Access logs of another bucket, folder or time would otherwise look like tables without readers.

    Returns:
        the same, with an error for each access log if none has such a request.
    """
    logs = [each for each in found.sources if each.is_access_log]
    if any(each.matched or each.known_files for each in logs):
        return found
    unread = {each.table for each in found.failed}
    foreign = (
        FailedTable(each.name, TableError(ErrorCode.NOT_FOUND, _foreign(each), _FOREIGN))
        for each in logs
        if each.name not in unread
    )
    return found._replace(failed=(*found.failed, *foreign))


def _foreign(log: Source) -> str:
    return "no request to these tables" if log.lines else "no lines"


def _add_findings(found: Discovery, options: LogOptions) -> Discovery:
    """Compare the readers that may be wrong with the logs of their tables."""
    findings: list[Finding] = []
    failed = {each.table: each for each in found.failed}
    for table, candidates in sorted(find_candidates(found.traces).items()):
        names = {
            reader.user: found.uses.name(PrincipalKind.USER, reader.user).text
            for reader, _ in candidates.readers
        }
        log = found.logs.get(table)
        if log is None:
            continue
        try:
            opened = log.open(options.storage, options.spark)
            findings += find_wrong_readers(candidates, found.traces, opened, names)
        except TableError as error:
            failed.setdefault(table, FailedTable(table, error))
    findings.sort(key=lambda each: (severity_sort_key(each), each.table, each.message))
    return found._replace(findings=tuple(findings), failed=tuple(failed.values()))


_FOREIGN = (
    "name access logs of the bucket, catalog and time in which the tables were used; pass "
    "--allow-empty if they were not used"
)
_FORMATS = (
    "known formats: S3 server access logs, CloudTrail, Azure StorageBlobLogs, GCS audit logs, "
    "Databricks' system tables and audit logs"
)
