"""The clients that read tables, from the requests in access logs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from deltaproto.clients.model import Access
from deltaproto.errors import TableError
from deltaproto.fleet.seen.find_logs import FailedTable
from deltaproto.fleet.seen.log_files import (
    CountedFile,
    LogFile,
    Span,
    find_files,
    read_requests,
)
from deltaproto.fleet.seen.log_formats import Request, RequestKind, TableUse
from deltaproto.fleet.seen.log_lines import Parsed
from deltaproto.fleet.seen.log_tables import find_log_table
from deltaproto.fleet.seen.read_traces import ReadTraces
from deltaproto.fleet.seen.table_matcher import TableMatcher
from deltaproto.fleet.seen.user_agents import NO_AGENT, identify_agent, product_of
from deltaproto.fleet.seen.uses import (
    Client,
    Mark,
    PrincipalKind,
    SeenClient,
    SeenUses,
    shorten,
)
from deltaproto.interrupts import work_ahead
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.protocol.writers import Confidence

AGENT_MARK = "user-agent"
_RECENT = 2 * 86_400
"""seconds"""


class LogCounts(NamedTuple):
    """What was read of one access log."""

    format: str | None
    """the format of most of its lines; None: no line was understood"""
    lines: int
    matched: int
    unparsed: int
    failed: tuple[FailedTable, ...]
    files: tuple[CountedFile, ...]
    """the files that were read to their end"""
    known: int
    """number of files that an earlier run counted"""
    broken: SeenUses
    """uses in files that were not read to the end, if a later run counts them again"""
    undated: int = 0
    """number of matched requests whose times are not understood"""
    undated_example: str | None = None
    """such a time"""


class FileToCount(NamedTuple):
    """A file of an access log, or a part of one."""

    file: LogFile
    counts: bool
    """False: an earlier run counted the file, and it is read only for `ReadTraces`"""
    span: Span | None = None


class LogCounter:
    """Counts the requests in files of one access log. The counts of a part can be pickled.

    Args:
        uses, traces: to add to.
        storing: whether a later run counts what this run leaves uncounted.
    """

    def __init__(self, uses: SeenUses, traces: ReadTraces, *, storing: bool) -> None:
        self.uses, self.traces, self._storing = uses, traces, storing
        self.broken = SeenUses(pseudonymize=uses.pseudonymize, partial=uses.partial)
        self.formats: Counter[str] = Counter()
        self.lines = self.matched = self.unparsed = self.undated = 0
        self.undated_example: str | None = None
        self.failed: list[FailedTable] = []
        self.files: list[CountedFile] = []

    def empty(self) -> LogCounter:
        """Return an empty counter for a part of the same access log."""
        uses = SeenUses(pseudonymize=self.uses.pseudonymize, partial=True)
        return LogCounter(uses, ReadTraces(), storing=self._storing)

    def add(
        self,
        each: FileToCount,
        matcher: TableMatcher,
        since: int | None,
        seen: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Count one file."""
        self.add_requests(each, read_requests(each.file, each.span), matcher, since, seen)

    def add_requests(
        self,
        each: FileToCount,
        requests: Iterable[Parsed | None],
        matcher: TableMatcher,
        since: int | None,
        seen: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Count the requests of one file."""
        # The next run rereads a file that could not be read to its end.
        part = self.uses
        if self._storing:
            part = SeenUses(pseudonymize=part.pseudonymize, partial=True)
        done = False
        try:
            for parsed in requests:
                self.lines += 1
                seen(self.lines)
                if parsed is None:
                    self.unparsed += 1
                    continue
                self.formats[parsed[0]] += 1
                request = parsed[1]
                matched = _add_request(
                    request, matcher, part, self.traces, since, count=each.counts
                )
                self.matched += matched
                if matched and request.unread_time is not None:
                    self.undated += 1
                    self.undated_example = self.undated_example or request.unread_time
            self.files += (each.file.key,) if each.counts else ()
            done = True
        except TableError as error:
            self.failed.append(FailedTable(each.file.name, error))
        if self._storing:
            (self.uses if done else self.broken).include(part)

    def include(self, other: LogCounter) -> None:
        """Add the counts of the next files of the same access log."""
        self.uses.include(other.uses)
        self.broken.include(other.broken)
        self.traces.include(other.traces)
        self.formats.update(other.formats)
        self.lines += other.lines
        self.matched += other.matched
        self.unparsed += other.unparsed
        self.undated += other.undated
        self.undated_example = self.undated_example or other.undated_example
        self.failed += other.failed
        self.files += other.files

    def join_spans(self) -> None:
        """Combine the counts of all parts of one file."""
        del self.failed[1:], self.files[1:]
        if self.failed:
            self.files.clear()
            if self._storing:
                self.uses.include(self.broken)
                self.uses, self.broken = self.broken, self.uses
                self.uses.clients.clear()


CountFiles = Callable[
    [Iterable[FileToCount], LogCounter, TableMatcher, int | None, Callable[[int], None]], None
]
"""adds the requests of files to a counter"""


def count_here(
    files: Iterable[FileToCount],
    total: LogCounter,
    matcher: TableMatcher,
    since: int | None,
    seen: Callable[[int], None],
) -> None:
    """Count files in this process, one at a time. Small files on object stores are read ahead."""

    def fetch(each: FileToCount) -> FileToCount:
        return each._replace(file=each.file.fetched())

    for _, fetched in work_ahead(fetch, files, lambda each: each.file.small_object):
        total.add(fetched(), matcher, since, seen)


def add_access_log(
    name: str,
    options: Mapping[str, str],
    matcher: TableMatcher,
    uses: SeenUses,
    traces: ReadTraces,
    since: int | None,
    seen: Callable[[int], None] = lambda _: None,
    counted: Collection[CountedFile] = (),
    *,
    spark: SparkSettings = SparkSettings(),
    storing: bool = False,
    count_files: CountFiles = count_here,
) -> LogCounts:
    """Add the requests of one access log: a file, all files below a folder or URI, or a table.

    Args:
        since: skip requests before this time, in milliseconds since the epoch.
        seen: called with the number of lines read, for progress.
        counted: files whose requests are not to be counted again. Those of the last two days are
            read for `traces`: who reads without deletion vectors shows over many files.
        spark: where a name of a catalog is read.
        storing: whether a later run counts what this run leaves uncounted.
        count_files: reads the files.
    """
    known = 0
    total = LogCounter(uses, traces, storing=storing)

    def to_count() -> Iterator[FileToCount]:
        nonlocal known
        recent = time.time() - _RECENT
        try:
            table = find_log_table(name, options, spark, counted, storing=storing)
            for file in find_files(name, options) if table is None else [table]:
                again = file.key in counted
                known += again
                if not again or file.modified >= recent:
                    yield FileToCount(file, not again)
        except TableError as error:
            total.failed.append(FailedTable(name, error))

    count_files(to_count(), total, matcher, since, seen)
    most = total.formats.most_common(1)
    return LogCounts(
        most[0][0] if most else None,
        total.lines,
        total.matched,
        total.unparsed,
        tuple(total.failed),
        tuple(total.files),
        known,
        total.broken,
        total.undated,
        total.undated_example,
    )


def _add_request(
    request: Request,
    matcher: TableMatcher,
    uses: SeenUses,
    traces: ReadTraces,
    since: int | None,
    *,
    count: bool,
) -> bool:
    """Add one request. Return True if it was counted: a success, on a table, in the period."""
    if request.use is not None:
        return _add_uses(request, request.use, matcher, uses, since, count=count)
    if since is not None and request.time is not None and request.time < since:
        return False
    found = None if request.place is None else matcher.find(request.place)
    traces.note(request, None if found is None else found[0])
    if found is None:
        return False
    text = request.agent or NO_AGENT
    # The end of an agent may name a cluster.
    shown = product_of(text) if uses.pseudonymize else _shown(text)
    traces.add(*found, request, shown)
    if not (request.ok and count):
        return False
    seen = _seen_agent(request.agent, uses)
    names = [uses.name(*each) for each in _callers(request)]
    access = Access.READ if request.kind is RequestKind.READ else None
    marks = []
    if request.agent is not None:
        marks.append(Mark(AGENT_MARK, shown))
    seen.add(found[0], request.time, access, names, marks, request=True)
    return True


def _add_uses(
    request: Request,
    use: TableUse,
    matcher: TableMatcher,
    uses: SeenUses,
    since: int | None,
    *,
    count: bool,
) -> bool:
    """Add the uses of one event. They prove nothing about a reader's other requests."""
    matched = False
    for other in request.others:
        if other.use is not None:
            matched |= _add_uses(other, other.use, matcher, uses, since, count=count)
    if since is not None and request.time is not None and request.time < since:
        return matched
    table = matcher.find_used(use, request.place)
    if table is None or not (request.ok and count):
        return matched
    marks = [] if use.evidence is None else [Mark(use.evidence[0], shorten(use.evidence[1]))]
    if use.client is not None:
        seen = uses.client(Client(use.client, None), Confidence.LIKELY)
    else:
        seen = _seen_agent(request.agent, uses)
        if (text := request.agent) is not None:
            marks.append(Mark(AGENT_MARK, product_of(text) if uses.pseudonymize else _shown(text)))
    names = [uses.name(*each) for each in (*use.principals, *_callers(request))]
    access = Access.READ if request.kind is RequestKind.READ else None
    seen.add(table, request.time, access, names, marks, request=True)
    return True


def _seen_agent(text: str | None, uses: SeenUses) -> SeenClient:
    """Return the counts of the client that a user agent identifies."""
    agent = identify_agent(text)
    seen = uses.client(Client(agent.client, agent.version, agent.mark), agent.confidence)
    seen.could_be, seen.setting = agent.could_be, agent.setting
    return seen


def _callers(request: Request) -> Iterator[tuple[PrincipalKind, str]]:
    """Yield the user of a request, or else its address."""
    if request.user is not None:
        yield PrincipalKind.USER, request.user
    elif request.address is not None:
        yield PrincipalKind.ADDRESS, request.address


@lru_cache(maxsize=4096)
def _shown(agent: str) -> str:
    return shorten(agent)
