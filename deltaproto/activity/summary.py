"""Activity from commit infos. Pure: no log, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from deltaproto.tables.log.commits import Commit

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


class Stream(NamedTuple):
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
    streams: tuple[Stream, ...]
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


def summarise(commits: Iterable[Commit]) -> Activity:
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


def _streams(commits: Sequence[Commit]) -> tuple[Stream, ...]:
    latest: dict[str, Stream] = {}
    for commit in sorted(commits, key=lambda c: c.version):
        cluster = commit.info.get("clusterId")
        for app_id, batch in commit.transactions:
            clusters = latest[app_id].clusters if app_id in latest else ()
            if isinstance(cluster, str) and clusters[-1:] != (cluster,):
                clusters += (cluster,)
            latest[app_id] = Stream(app_id, batch, commit.version, commit.timestamp, clusters)
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
