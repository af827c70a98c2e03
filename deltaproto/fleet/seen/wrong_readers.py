"""Principals that read deleted or stale rows: they ignore deletion vectors, or the table's log.

Only proven cases are reported. What looks the same as an engine that reads correctly (a cache,
time travel, a stream, another identity for the log) is omitted; see the pages of the two rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.fleet.seen.read_traces import (
    HOUR,
    Reader,
    ReadTraces,
    TableTrace,
    Trace,
    plain_path,
)
from deltaproto.policy.finding import Finding
from deltaproto.policy.rules import deleted_rows_read, log_not_read
from deltaproto.tables.engine_errors import contain_table_errors
from deltaproto.tables.log.commits import commit_time
from deltaproto.tables.log.files import build_listing, commit_info, read_actions
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.open import OpenedLog

_MARGIN = HOUR
"""between a commit and a request: clocks differ, and queries run on"""
_APART = 2
"""hours between two reads of a file; a stream reads it once, and again only after a failure"""
_OLD_IN_A_ROW = 100
_ICEBERG = "delta.universalFormat.enabledFormats"
_STORED_VECTOR = "u"
"""storage type of a deletion vector in the table; others are in the log, or anywhere"""


class FileState(NamedTuple):
    """A data file from one commit on."""

    version: int
    time: int
    live: bool
    vector: bool
    """True if it has a deletion vector in a separate file"""


class FileHistory(NamedTuple):
    """The history of some data files, from the log."""

    states: Mapping[str, list[FileState]]
    """by path, oldest first"""
    iceberg: bool
    """whether the table also has metadata of Apache Iceberg"""


class Candidates(NamedTuple):
    """The readers of a table that may be wrong."""

    readers: list[tuple[Reader, Trace]]
    only_vectors: bool
    """whether another identity reads only deletion vectors: one engine can use several"""
    only_log: bool
    """whether another identity reads only the log"""


def find_candidates(traces: ReadTraces) -> Mapping[str, Candidates]:
    """Return the readers of each table that may be wrong; only their tables' logs are read."""
    found: defaultdict[str, list[tuple[Reader, Trace]]] = defaultdict(list)
    only_vectors, only_log = set[str](), set[str]()
    for reader, trace in traces.readers.items():
        if trace.only_vectors:
            only_vectors.add(reader.table)
        if trace.only_log:
            only_log.add(reader.table)
        ignores = not trace.vectors and traces.tables[reader.table].vectors
        bypasses = not trace.log and traces.tables[reader.table].log
        innocent = trace.writes or trace.other or traces.knows_other_tables(reader)
        if trace.files and not innocent and (ignores or bypasses):
            found[reader.table].append((reader, trace))
    return {
        table: Candidates(readers, table in only_vectors, table in only_log)
        for table, readers in found.items()
    }


def find_wrong_readers(
    candidates: Candidates,
    traces: ReadTraces,
    opened: OpenedLog,
    name: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield the findings on one table.

    Args:
        candidates: of this table, from `find_candidates`.
        name: each user as outputs show it.

    Raises:
        TableError: when the table's log cannot be read.
    """
    found = candidates.readers
    if traces.first is None:
        return
    whole = traces.tables[found[0][0].table]
    paths = {path for _, trace in found for path in trace.files}
    with contain_table_errors():
        history = read_history(opened, paths, whole, traces.first)
    for reader, trace in found:
        shown = name[reader.user]
        if whole.vectors and not trace.vectors and not candidates.only_vectors:
            files = _read_with_vectors(trace, history, traces.first)
            if files:
                yield deleted_rows_read.finding(
                    reader.table, shown, sorted(files), max(files.values()) * HOUR, [*trace.agents]
                )
                continue
        if whole.log and not trace.log and not history.iceberg:
            files = _read_after_commit(trace, history, traces.first)
            if files:
                yield log_not_read.finding(
                    reader.table,
                    shown,
                    sorted(files),
                    max(files.values()) * HOUR,
                    [*trace.agents],
                    other_identity=candidates.only_log,
                )


def _read_with_vectors(trace: Trace, history: FileHistory, first: int) -> dict[str, int]:
    """Return the files that were certainly read without their deletion vectors, with the last hour.

    A reader of the log must have seen the commit with the vector and a newer file, and come again
    hours later: time travel reads old versions, and a stream reads each file once.
    """
    files = {}
    for path, hours in trace.files.items():
        for state, end in _intervals(history.states.get(path, [])):
            if not (state.live and state.vector) or state.time < first:
                continue
            within = _hours_within(hours, state.time, end)
            if not within:
                continue
            if trace.log:
                twice = within[-1] - within[0] >= _APART
                newer = trace.newest >= state.version and _read_newer(
                    trace, history, state.version, within
                )
                if not (twice and newer):
                    continue
            files[path] = within[-1]
    return files


def _read_newer(trace: Trace, history: FileHistory, version: int, hours: list[int]) -> bool:
    """Return True if files of later commits were read in at least two of these hours."""
    seen = {
        hour
        for path, read in trace.files.items()
        for state in history.states.get(path, [])
        if state.live and state.version > version and not state.vector
        for hour in read
        if hour * HOUR >= state.time
    }
    return len(seen.intersection(hours)) >= _APART


def _read_after_commit(trace: Trace, history: FileHistory, first: int) -> dict[str, int]:
    """Return the files that were added in the period of the access logs, and read later."""
    files = {}
    for path, hours in trace.files.items():
        states = history.states.get(path, [])
        if states and states[0].live and states[0].time >= first + _MARGIN:
            within = _hours_within(hours, states[0].time, None)
            if within:
                files[path] = within[-1]
    return files


def _intervals(states: list[FileState]) -> Iterator[tuple[FileState, int | None]]:
    """Yield each state and the time at which it ends; one with a new vector continues."""
    for number, state in enumerate(states):
        later = (
            other.time
            for other in states[number + 1 :]
            if (other.live, other.vector) != (state.live, state.vector)
        )
        yield state, next(later, None)


def _hours_within(hours: list[int], start: int, end: int | None) -> list[int]:
    return [
        hour
        for hour in hours
        if hour * HOUR >= start + _MARGIN and (end is None or (hour + 1) * HOUR <= end - _MARGIN)
    ]


def read_history(opened: OpenedLog, paths: set[str], whole: TableTrace, first: int) -> FileHistory:
    """Read what the commits since `first` did with these files.

    A commit's time is the later of its own and of the request that wrote it.

    Raises:
        TableError: when the log cannot be read.
    """
    listing = build_listing(opened.store.list())
    states: defaultdict[str, list[FileState]] = defaultdict(list)
    state = LogReader({}).read_from(opened.location, opened.store)
    iceberg, old = bool(state.metadata.configuration.get(_ICEBERG)), 0
    for version in sorted(listing.commits, reverse=True):
        name = listing.commits[version]
        with opened.store.open(name) as file:
            actions = list(read_actions(name, file, files=True))
        time = _time(commit_info(actions), whole.written.get(version))
        if time is None:
            # Nothing is known about the order of requests and this commit.
            for path, _, _ in _file_actions(actions):
                states.pop(path, None)
                paths.discard(path)
            continue
        iceberg = iceberg or any(_is_iceberg(action) for action in actions)
        for path, live, vector in _file_actions(actions):
            if path in paths:
                states[path].append(FileState(version, time, live, vector))
        old = old + 1 if time < first else 0
        if old == _OLD_IN_A_ROW:
            break
    return FileHistory({path: found[::-1] for path, found in states.items()}, iceberg)


def _time(info: Mapping[str, Any], written: int | None) -> int | None:
    return max((t for t in (commit_time(info), written) if t is not None), default=None)


def _file_actions(actions: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, bool, bool]]:
    """Yield path, liveness and vector of each file that a commit changes."""
    found: dict[str, tuple[bool, bool]] = {}
    for action in actions:
        for kind in ("add", "remove"):
            file = action.get(kind)
            if isinstance(file, dict) and isinstance(file.get("path"), str):
                path = plain_path(file["path"])
                vector = file.get("deletionVector")
                stored = isinstance(vector, dict) and vector.get("storageType") == _STORED_VECTOR
                # A new vector removes the file and adds it again.
                if kind == "add" or path not in found:
                    found[path] = (kind == "add", stored and kind == "add")
    for path, (live, stored) in found.items():
        yield path, live, stored


def _is_iceberg(action: Mapping[str, Any]) -> bool:
    metadata = action.get("metaData")
    configuration = metadata.get("configuration") if isinstance(metadata, dict) else None
    named = configuration.get(_ICEBERG) if isinstance(configuration, dict) else None
    return bool(named)
