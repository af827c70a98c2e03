"""Recent writers of a table, their frequency and releases, and idle windows."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from deltaproto.clients import version_scheme
from deltaproto.errors import TableError
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.log.commits import Commit, read_commits
from deltaproto.tables.log.files import LogListing, build_listing, commit_info, read_actions
from deltaproto.tables.open import open_table_log
from deltaproto.tables.storage import LogStore

_HOUR = 3_600_000
_DAY = 24 * _HOUR
_UNNAMED = "unnamed client"
# Commits without rows do not make an hour busy for other writers.
_METADATA_ONLY = ("SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "Empty Commit", "DROP FEATURE")


class Writer(NamedTuple):
    """Commits of one engine and operation. Times are milliseconds since the epoch."""

    engine: str
    operation: str
    commits: int
    blind_appends: int
    last_version: int
    last_time: int | None
    typical_gap: int | None
    """median time between two commits, in milliseconds; None for a single one"""


class StreamingWriter(NamedTuple):
    """A streaming query that writes to the table, from its `txn` actions."""

    app_id: str
    last_batch: int
    last_version: int
    last_time: int | None
    clusters: tuple[str, ...] = ()
    """the clusters that wrote its batches, in order of appearance and as far as commits name
    them; a cluster that returned is listed twice"""

    @property
    def shared(self) -> bool:
        """True if two clusters alternated, so both ran the query at the same time."""
        return len(set(self.clusters)) < len(self.clusters)


class IdleHour(NamedTuple):
    """The hour of the day (UTC) with the fewest commits."""

    hour: int
    commits_per_day: float
    busiest_hour: int
    busiest_per_day: float
    days: float
    """number of days of log that this is based on"""


class Activity(NamedTuple):
    """The activity in the recent log. Times are milliseconds since the epoch."""

    commits: int
    oldest_version: int | None
    first_time: int | None
    last_time: int | None
    longest_gap: int | None
    """longest time without a commit, in milliseconds"""
    writers: tuple[Writer, ...]
    """most frequent first"""
    streams: tuple[StreamingWriter, ...]
    """most recent first"""
    levels: tuple[tuple[str, int], ...]
    """recorded isolation levels with their number of commits; a commit that only rewrites
    files records SnapshotIsolation regardless of the table's level"""
    quiet_hour: IdleHour | None
    """None when the log covers less than two days"""
    times: tuple[int, ...]
    """time of each commit, oldest first; the input of `build_forecast`"""
    has_newest: bool = True
    """False: a catalog manages the table, and may have newer commits"""


def summarize_commits(commits: Iterable[Commit]) -> Activity:
    """Compute the activity from these commits, newest first."""
    seen = [commit for commit in commits if commit.problem is None]
    times = tuple(sorted(c.timestamp for c in seen if c.timestamp is not None))
    return Activity(
        commits=len(seen),
        oldest_version=min((commit.version for commit in seen), default=None),
        first_time=times[0] if times else None,
        last_time=times[-1] if times else None,
        longest_gap=max((b - a for a, b in pairwise(times)), default=None),
        writers=_group_writers(seen),
        streams=_group_streams(seen),
        levels=tuple(
            sorted(Counter(str(level) for c in seen if (level := _isolation_level(c))).items())
        ),
        quiet_hour=_find_idle_hour([c for c in seen if c.operation not in _METADATA_ONLY]),
        times=times,
    )


def _group_writers(commits: Sequence[Commit]) -> tuple[Writer, ...]:
    groups: dict[tuple[str, str], list[Commit]] = {}
    for commit in commits:
        groups.setdefault((commit.engine or _UNNAMED, commit.operation), []).append(commit)
    writers = [
        Writer(
            engine=engine,
            operation=operation,
            commits=len(group),
            blind_appends=sum(c.info.get("isBlindAppend") is True for c in group),
            last_version=max(c.version for c in group),
            last_time=max((c.timestamp for c in group if c.timestamp is not None), default=None),
            typical_gap=_median_gap(group),
        )
        for (engine, operation), group in groups.items()
    ]
    return tuple(sorted(writers, key=lambda w: (-w.commits, w.engine, w.operation)))


def _group_streams(commits: Sequence[Commit]) -> tuple[StreamingWriter, ...]:
    latest: dict[str, StreamingWriter] = {}
    for commit in sorted(commits, key=lambda c: c.version):
        cluster = commit.info.get("clusterId")
        for app_id, batch in commit.transactions:
            clusters = latest[app_id].clusters if app_id in latest else ()
            if isinstance(cluster, str) and clusters[-1:] != (cluster,):
                clusters += (cluster,)
            latest[app_id] = StreamingWriter(
                app_id, batch, commit.version, commit.timestamp, clusters
            )
    return tuple(sorted(latest.values(), key=lambda s: (-s.last_version, s.app_id)))


def _find_idle_hour(commits: Sequence[Commit]) -> IdleHour | None:
    times = [c.timestamp for c in commits if c.timestamp is not None]
    if not times or max(times) - min(times) < 2 * _DAY:
        return None
    days = (max(times) - min(times)) / _DAY
    counts = Counter((time // _HOUR) % 24 for time in times)
    quiet = min(range(24), key=lambda hour: (counts[hour], hour))
    busy = max(range(24), key=lambda hour: (counts[hour], -hour))
    return IdleHour(quiet, counts[quiet] / days, busy, counts[busy] / days, days)


def _median_gap(commits: Sequence[Commit]) -> int | None:
    times = sorted(c.timestamp for c in commits if c.timestamp is not None)
    gaps = sorted(b - a for a, b in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else None


def _isolation_level(commit: Commit) -> str | None:
    level = commit.info.get("isolationLevel")
    return level if isinstance(level, str) else None


_MINUTE = 60_000


class Forecast(NamedTuple):
    """Expected commits during a change of `minutes`, if the future resembles the recent log."""

    minutes: float
    expected: float
    """mean number of commits in a window of that length"""
    most: int
    """maximum number of commits in such a window"""
    free: float
    """share of windows without any commit, from 0 to 1"""


def build_forecast(times: Sequence[int], minutes: float) -> Forecast | None:
    """Compute the forecast from commit times in milliseconds, oldest first.

    Windows of `minutes` start anywhere between the first and the last commit. None when the times
    cover no such window: at least two commits must be further apart than `minutes`.
    """
    width = int(minutes * _MINUTE)
    if width <= 0 or len(times) < 2 or times[-1] - times[0] < width:
        return None
    first, last = times[0], times[-1] - width
    # A window [t, t + width) contains commit c exactly while c - width < t <= c.
    covered = sum(max(0, min(time, last) - max(time - width, first)) for time in times)
    room = last - first
    if room == 0:
        return Forecast(minutes, float(len(times) - 1), len(times) - 1, 0.0)
    most = max(bisect_left(times, start + width) - index for index, start in enumerate(times))
    free = sum(max(0, (b - a) - width) for a, b in pairwise(times))
    return Forecast(minutes, covered / room, most, min(1.0, free / room))


MOST_COMMITS = 1000
ACTIVITY_DAYS = 14
_DAY = 24 * 3_600_000


def read_activity(table: str, storage_options: Mapping[str, str], spark: SparkSettings) -> Activity:
    """Like `recent_activity`, for the table named `table`.

    Raises:
        TableError: when the log cannot be listed.
        EngineError: when a catalog name needs Spark and it is not available.
    """
    return recent_activity(open_table_log(table, storage_options, spark).store)


def recent_activity(store: LogStore) -> Activity:
    """Compute the activity of the last 14 days before the newest commit, from at most 1000 commits.

    Raises:
        TableError: when the log cannot be listed.
    """
    return summarize_commits(_recent_commits(store, build_listing(store.list())))


def _recent_commits(store: LogStore, listing: LogListing) -> Iterator[Commit]:
    newest: int | None = None
    for count, commit in enumerate(read_commits(store, listing)):
        if count >= MOST_COMMITS:
            return
        if commit.timestamp is not None:
            newest = commit.timestamp if newest is None else max(newest, commit.timestamp)
            if commit.timestamp < newest - ACTIVITY_DAYS * _DAY:
                return
        yield commit


MOST_ENGINE_COMMITS = 50
_DELTA_SPARK = re.compile(r"(?:^|[\s/])Delta-Lake/([\w.+-]+)", re.ASCII)


def recent_engines(store: LogStore, listing: LogListing) -> tuple[str, ...]:
    """Return the names of the engines of the newest 50 commits, each once, the newest first."""
    newest = islice(sorted(listing.commits, reverse=True), MOST_ENGINE_COMMITS)
    names = (_read_engine(store, listing.commits[version]) for version in newest)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _read_engine(store: LogStore, name: str) -> str | None:
    """Return the engine of one commit; None if it names none or cannot be read."""
    try:
        with store.open(name) as file:
            # Usually the first line; the rest is not read.
            return Commit(0, commit_info(read_actions(name, file)), None, None).engine
    except TableError:
        return None


def parse_releases(engines: Iterable[str | None]) -> frozenset[str]:
    """Return the releases of Delta Spark among the engines' recorded names."""
    found = (_DELTA_SPARK.search(engine) for engine in engines if engine is not None)
    named = (match[1] for match in found if match is not None)
    return frozenset(
        name for name in named if version_scheme.parse_version("dotted", name) is not None
    )
