"""Who is writing to a table now, how often, when it is quiet, and with which releases."""

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
from deltaproto.tables.log.commits import Commit, commits
from deltaproto.tables.log.files import LogListing, commit_info, read_actions, sort_names
from deltaproto.tables.open import open_table_log
from deltaproto.tables.storage import LogStore

_HOUR = 3_600_000
_DAY = 24 * _HOUR
_UNNAMED = "unnamed client"
# Commits that move no rows: they do not make an hour busy for those who write data.
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
    """A streaming query that writes here, as its `txn` actions show it."""

    app_id: str
    last_batch: int
    last_version: int
    last_time: int | None
    clusters: tuple[str, ...] = ()
    """the clusters that wrote its batches, in the order in which they came, as far as their
    commits name them; a cluster that came back is there twice"""

    @property
    def shared(self) -> bool:
        """Whether two clusters took turns, so that both ran the query at the same time."""
        return len(set(self.clusters)) < len(self.clusters)


class QuietHour(NamedTuple):
    """The hour of the day (UTC) with the fewest commits."""

    hour: int
    commits_per_day: float
    busiest_hour: int
    busiest_per_day: float
    days: float
    """how many days of log this rests on"""


class Activity(NamedTuple):
    """What the recent log shows. Times are milliseconds since the epoch."""

    commits: int
    oldest_version: int | None
    first_time: int | None
    last_time: int | None
    longest_gap: int | None
    """longest time without a commit, in milliseconds"""
    writers: tuple[Writer, ...]
    """the most frequent first"""
    streams: tuple[StreamingWriter, ...]
    """the most recent first"""
    levels: tuple[tuple[str, int], ...]
    """isolation levels that commits recorded, with their number; a commit that only rewrites
    files records SnapshotIsolation whatever the table declares"""
    quiet_hour: QuietHour | None
    """None when the log covers less than two days"""
    times: tuple[int, ...]
    """when each commit was made, oldest first; what `forecast` works on"""
    has_newest: bool = True
    """False: a catalog manages the table, and may have newer commits"""


def summarize(commits: Iterable[Commit]) -> Activity:
    """The activity that these commits, newest first, show."""
    seen = [commit for commit in commits if commit.problem is None]
    times = tuple(sorted(c.timestamp for c in seen if c.timestamp is not None))
    return Activity(
        commits=len(seen),
        oldest_version=min((commit.version for commit in seen), default=None),
        first_time=times[0] if times else None,
        last_time=times[-1] if times else None,
        longest_gap=max((b - a for a, b in pairwise(times)), default=None),
        writers=_writers(seen),
        streams=_streams(seen),
        levels=tuple(sorted(Counter(str(level) for c in seen if (level := _level(c))).items())),
        quiet_hour=_quiet_hour([c for c in seen if c.operation not in _METADATA_ONLY]),
        times=times,
    )


def _writers(commits: Sequence[Commit]) -> tuple[Writer, ...]:
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


def _streams(commits: Sequence[Commit]) -> tuple[StreamingWriter, ...]:
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


def _quiet_hour(commits: Sequence[Commit]) -> QuietHour | None:
    times = [c.timestamp for c in commits if c.timestamp is not None]
    if not times or max(times) - min(times) < 2 * _DAY:
        return None
    days = (max(times) - min(times)) / _DAY
    counts = Counter((time // _HOUR) % 24 for time in times)
    quiet = min(range(24), key=lambda hour: (counts[hour], hour))
    busy = max(range(24), key=lambda hour: (counts[hour], -hour))
    return QuietHour(quiet, counts[quiet] / days, busy, counts[busy] / days, days)


def _median_gap(commits: Sequence[Commit]) -> int | None:
    times = sorted(c.timestamp for c in commits if c.timestamp is not None)
    gaps = sorted(b - a for a, b in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else None


def _level(commit: Commit) -> str | None:
    level = commit.info.get("isolationLevel")
    return level if isinstance(level, str) else None


_MINUTE = 60_000


class Forecast(NamedTuple):
    """If the future is like the commits looked at: what a change of `minutes` would meet."""

    minutes: float
    expected: float
    """mean number of commits in a window of that length"""
    most: int
    """the most that any such window held"""
    free: float
    """share of windows without any commit, from 0 to 1"""


def forecast(times: Sequence[int], minutes: float) -> Forecast | None:
    """The forecast from commit times in milliseconds, oldest first.

    Windows of `minutes` lie anywhere between the first and the last commit. None when the times
    cover no such window: two commits that are further apart than `minutes` are the least.
    """
    width = int(minutes * _MINUTE)
    if width <= 0 or len(times) < 2 or times[-1] - times[0] < width:
        return None
    first, last = times[0], times[-1] - width
    # A window [t, t + width) holds commit c exactly while c - width < t <= c.
    covered = sum(max(0, min(time, last) - max(time - width, first)) for time in times)
    room = last - first
    if room == 0:
        return Forecast(minutes, float(len(times) - 1), len(times) - 1, 0.0)
    most = max(bisect_left(times, start + width) - index for index, start in enumerate(times))
    free = sum(max(0, (b - a) - width) for a, b in pairwise(times))
    return Forecast(minutes, covered / room, most, min(1.0, free / room))


MOST_COMMITS = 1000
DAYS = 14
_DAY = 24 * 3_600_000


def read_activity(table: str, storage_options: Mapping[str, str], spark: SparkSettings) -> Activity:
    """As `recent_activity`, of the table that `table` names.

    Raises:
        TableError: when the log cannot be listed.
        EngineError: when a catalog name needs Spark and there is none.
    """
    return recent_activity(open_table_log(table, storage_options, spark).store)


def recent_activity(store: LogStore) -> Activity:
    """The activity of the last 14 days before the newest commit, of 1000 commits at the most.

    Raises:
        TableError: when the log cannot be listed.
    """
    return summarize(_recent(store, sort_names(store.list())))


def _recent(store: LogStore, listing: LogListing) -> Iterator[Commit]:
    newest: int | None = None
    for count, commit in enumerate(commits(store, listing)):
        if count >= MOST_COMMITS:
            return
        if commit.timestamp is not None:
            newest = commit.timestamp if newest is None else max(newest, commit.timestamp)
            if commit.timestamp < newest - DAYS * _DAY:
                return
        yield commit


MOST_RELEASE_COMMITS = 50
_DELTA_SPARK = re.compile(r"(?:^|[\s/])Delta-Lake/([\w.+-]+)", re.ASCII)


def recent_releases(store: LogStore, listing: LogListing) -> frozenset[str] | None:
    """The releases that made the newest 50 commits; None where these show none."""
    newest = islice(sorted(listing.commits, reverse=True), MOST_RELEASE_COMMITS)
    return releases_of(_engine(store, listing.commits[version]) for version in newest) or None


def _engine(store: LogStore, name: str) -> str | None:
    """The engine of one commit; None where it names none, and where it cannot be read."""
    try:
        with store.open(name) as file:
            # Usually the first line: nothing below it is read.
            return Commit(0, commit_info(read_actions(name, file)), None, None).engine
    except TableError:
        return None


def releases_of(engines: Iterable[str | None]) -> frozenset[str]:
    """The releases of Delta Spark among engines as they name themselves."""
    found = (_DELTA_SPARK.search(engine) for engine in engines if engine is not None)
    named = (match[1] for match in found if match is not None)
    return frozenset(name for name in named if version_scheme.parse("dotted", name) is not None)
