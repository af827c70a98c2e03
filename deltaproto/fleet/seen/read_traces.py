"""What each principal read of each table: the input of `wrong_readers`, in bounded memory."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from deltaproto.fleet.seen.log_formats import Request, RequestKind

HOUR = 3_600_000
_MOST_TRACES = 50_000
_MOST_FILES = 500
"""data files remembered for one principal and table; further ones are not reported"""
_MOST_ENTRIES = 200_000
"""data files remembered for all of them together"""
_MOST_COMMITS = 10_000
"""of one table, the last ones written"""
_MOST_HOURS = 8
"""different hours of one file; the latest are kept"""
_MOST_AGENTS = 3
_LOG = "_delta_log"
_VERSION = re.compile(r"_delta_log/(\d{20})\.")
_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_VECTOR = re.compile(r"(?:.*/)?deletion_vector_[^/]+\.bin")
_DECODED = 3
"""how many times a key may be encoded"""


class Reader(NamedTuple):
    """One principal at one table."""

    table: str
    user: str


class Trace:
    """The requests of one reader."""

    __slots__ = ("agents", "data", "files", "log", "newest", "other", "vectors", "writes")

    @property
    def settled(self) -> bool:
        """True if no rule can report this reader, whatever else it requests."""
        return self.writes or (self.log and self.vectors and self.data)

    def __init__(self) -> None:
        self.log = self.vectors = self.writes = self.other = self.data = False
        """whether it ever requested the log, a deletion vector, another file, or a data file, or
        wrote"""
        self.newest = -1
        """the newest version whose file in the log it read"""
        self.files: dict[str, list[int]] = {}
        """hours since the epoch in which it read each data file"""
        self.agents: dict[str, None] = {}

    @property
    def only_log(self) -> bool:
        """True for a reader of the log that neither reads nor writes data files."""
        return self.log and not (self.data or self.vectors or self.writes)

    def include(self, other: Trace) -> None:
        """Add later requests of the same reader; files are added by `ReadTraces`."""
        self.log, self.vectors = self.log or other.log, self.vectors or other.vectors
        self.writes, self.other = self.writes or other.writes, self.other or other.other
        self.data = self.data or other.data
        self.newest = max(self.newest, other.newest)
        for agent in other.agents:
            if len(self.agents) < _MOST_AGENTS:
                self.agents[agent] = None

    @property
    def only_vectors(self) -> bool:
        """True for a reader of deletion vectors that neither reads nor writes data files."""
        return self.vectors and not (self.data or self.writes)


class TableTrace:
    """All requests to one table."""

    __slots__ = ("log", "vectors", "written")

    def __init__(self) -> None:
        self.log = self.vectors = False
        """whether any reader requested the log or a vector: access logs can omit both"""
        self.written: dict[int, int] = {}
        """time at which each commit was written, in milliseconds"""

    def add_commit(self, version: int, time: int) -> None:
        """Note when a commit was written."""
        self.written[version] = max(time, self.written.get(version, 0))
        if len(self.written) > _MOST_COMMITS:
            del self.written[next(iter(self.written))]

    def include(self, other: TableTrace) -> None:
        """Add later requests to the same table."""
        self.log, self.vectors = self.log or other.log, self.vectors or other.vectors
        for version, time in other.written.items():
            self.add_commit(version, time)


class ReadTraces:
    """The requests of every reader."""

    def __init__(self) -> None:
        self.readers: dict[Reader, Trace] = {}
        self.tables: dict[str, TableTrace] = {}
        self.first: int | None = None
        """time of the first request of any kind, in milliseconds"""
        self.dropped = False
        """True if requests are missing because there were too many readers"""
        self._entries = 0
        self._logs: dict[str, set[str]] = {}
        """two of the tables whose log each user requested"""

    def note(self, request: Request, table: str | None) -> None:
        """Note the time that the access logs cover, and which table's log a user requested.

        Args:
            table: the table of the request; None if it is not a known table.
        """
        time = request.time
        if time is not None and (self.first is None or time < self.first):
            self.first = time
        if request.user is None or request.place is None or _LOG not in request.place.key:
            return
        logs = self._logs.setdefault(request.user, set())
        if len(logs) < 2:
            elsewhere = f"{request.place.bucket}/{request.place.key.partition(_LOG)[0]}"
            logs.add(table or elsewhere)

    def knows_other_tables(self, reader: Reader) -> bool:
        """Return True if the user reads the log of another table, which may be a shallow clone."""
        known = self._logs.get(reader.user, ())
        return len(known) > (reader.table in known)

    def add(self, table: str, below: str, request: Request, agent: str) -> None:
        """Add a request, also one that failed.

        Args:
            below: the object's path below the table, as logged.
            agent: the user agent as outputs show it.
        """
        whole = self.tables.get(table)
        if whole is None:
            whole = self.tables[table] = TableTrace()
        known = None if request.user is None else self.readers.get(Reader(table, request.user))
        wrote = request.kind in (RequestKind.WRITE, RequestKind.DELETE)
        if known is not None and known.settled and whole.log and whole.vectors and not wrote:
            return
        path = plain_path(below)
        in_log = path == _LOG or path.startswith(f"{_LOG}/")
        vector = path.endswith(".bin") and _VECTOR.fullmatch(path) is not None
        whole.log, whole.vectors = whole.log or in_log, whole.vectors or vector
        if wrote and request.time is not None and (commit := _COMMIT.fullmatch(path)):
            whole.add_commit(int(commit[1]), request.time)
        if request.user is None:
            return
        trace = known or self._trace(Reader(table, request.user))
        if trace is None:
            return
        trace.log, trace.vectors = trace.log or in_log, trace.vectors or vector
        trace.writes = trace.writes or wrote
        read = request.ok and request.kind is RequestKind.READ
        if in_log:
            if read and (found := _VERSION.match(path)):
                trace.newest = max(trace.newest, int(found[1]))
        elif not vector and request.kind is RequestKind.READ:
            self._entries += _add_file(
                trace, path, request, agent, read=read, full=self._entries >= _MOST_ENTRIES
            )
        self._forget_innocent(trace)

    def include(self, other: ReadTraces) -> None:
        """Add what was read later, such as in the next files of the same access log.

        Missing requests never lead to a finding: a reader that is missing from incomplete traces
        counts as a reader of other files.
        """
        if other.first is not None:
            self.first = other.first if self.first is None else min(self.first, other.first)
        for table, theirs in other.tables.items():
            self.tables.setdefault(table, TableTrace()).include(theirs)
        for user, logs in other._logs.items():
            mine = self._logs.setdefault(user, set())
            mine.update(sorted(logs - mine)[: 2 - len(mine)])
        for reader, trace in other.readers.items():
            found = self._trace(reader)
            if found is not None:
                found.include(trace)
                if not (found.settled or found.other):
                    self._include_files(found, trace)
                self._forget_innocent(found)
        if other.dropped:
            for reader in self.readers.keys() - other.readers.keys():
                self.readers[reader].other = True
                self._forget_innocent(self.readers[reader])
        self.dropped = self.dropped or other.dropped

    def _include_files(self, mine: Trace, other: Trace) -> None:
        for path, hours in other.files.items():
            known = mine.files.get(path)
            if known is None:
                if self._entries >= _MOST_ENTRIES or len(mine.files) >= _MOST_FILES:
                    continue
                known, self._entries = [], self._entries + 1
            mine.files[path] = sorted({*known, *hours})[-_MOST_HOURS:]

    def _forget_innocent(self, trace: Trace) -> None:
        if (trace.settled or trace.other) and trace.files:
            self._entries -= len(trace.files)
            trace.files = {}

    def _trace(self, reader: Reader) -> Trace | None:
        trace = self.readers.get(reader)
        if trace is None and len(self.readers) < _MOST_TRACES:
            trace = self.readers[reader] = Trace()
        self.dropped = self.dropped or trace is None
        return trace


def _add_file(
    trace: Trace, path: str, request: Request, agent: str, *, read: bool, full: bool
) -> int:
    """Add the read of a file. Return 1 if the file is new to its reader, else 0."""
    hidden = path.startswith(("_", ".")) or "/_" in path or "/." in path
    if hidden or not path.endswith(".parquet"):
        # For example, Apache Iceberg metadata or a manifest.
        trace.other = True
        return 0
    trace.data = trace.data or read
    if not read or request.time is None or trace.settled or trace.other:
        return 0
    hours, new = trace.files.get(path), 0
    if hours is None:
        if full or len(trace.files) >= _MOST_FILES:
            return 0
        hours, new = [], 1
        trace.files[path] = hours
    hour = request.time // HOUR
    if hour not in hours:
        hours.append(hour)
        hours.sort()
        del hours[:-_MOST_HOURS]
    if len(trace.agents) < _MOST_AGENTS:
        trace.agents[agent] = None
    return new


def plain_path(path: str) -> str:
    """Return a path without percent-encoding; logs encode more than tables do."""
    for _ in range(_DECODED if "%" in path else 0):
        decoded = unquote(path)
        if decoded == path:
            break
        path = decoded
    return path
