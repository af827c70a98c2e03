"""Render a table's activity in every format."""

from __future__ import annotations

from typing import Any

from deltaproto.counts import counted
from deltaproto.errors import TableError
from deltaproto.inspection.activity import Activity, Forecast, build_forecast
from deltaproto.render.interface import error_fields, format_timestamp

MINUTES = (1, 5, 15, 60)
_MOST_WRITERS = 12
_MOST_STREAMS = 8


def activity_fields(activity: Activity | TableError) -> dict[str, Any]:
    """Return the activity as JSON; gaps are in seconds, times RFC 3339 in UTC."""
    if isinstance(activity, TableError):
        return {"error": error_fields(activity)}
    quiet = activity.quiet_hour
    return {
        "commits": activity.commits,
        "oldest_version": activity.oldest_version,
        "first_time": format_timestamp(activity.first_time),
        "last_time": format_timestamp(activity.last_time),
        "longest_gap_seconds": _seconds(activity.longest_gap),
        "writers": [
            {
                "engine": writer.engine,
                "operation": writer.operation,
                "commits": writer.commits,
                "blind_appends": writer.blind_appends,
                "last_version": writer.last_version,
                "last_time": format_timestamp(writer.last_time),
                "typical_gap_seconds": _seconds(writer.typical_gap),
            }
            for writer in activity.writers
        ],
        "streams": [
            {
                "app_id": stream.app_id,
                "last_batch": stream.last_batch,
                "last_version": stream.last_version,
                "last_time": format_timestamp(stream.last_time),
                "clusters": list(dict.fromkeys(stream.clusters)),
            }
            for stream in activity.streams
        ],
        "isolation_levels": dict(activity.levels),
        "quiet_hour": None if quiet is None else quiet._asdict(),
        "forecast": [found._asdict() for found in _forecasts(activity)],
    }


def sentences(
    activity: Activity | TableError, most_streams: int | None = _MOST_STREAMS
) -> list[str]:
    """Return a summary of the activity, one line per fact.

    Args:
        most_streams: None: list every stream.
    """
    if isinstance(activity, TableError):
        return [f"the activity is unknown: {activity.message}"]
    if not activity.has_newest:
        return [
            "a catalog manages this table: newer commits may not be in its log; read it by its "
            "catalog name",
            *sentences(activity._replace(has_newest=True), most_streams),
        ]
    if not activity.commits:
        return ["the log contains no commits"]
    lines = [
        f"{counted(activity.commits, 'commit')} from "
        f"{format_timestamp(activity.first_time) or '?'} to "
        f"{format_timestamp(activity.last_time) or '?'}"
        + (f", longest pause {span(activity.longest_gap)}" if activity.longest_gap else "")
    ]
    if activity.levels:
        levels = ", ".join(f"{count:,} {level}" for level, count in activity.levels)
        lines.append(f"isolation levels that the commits recorded: {levels}")
    for stream in activity.streams[:most_streams]:
        when = format_timestamp(stream.last_time) or "time unknown"
        lines.append(f"stream {stream.app_id} wrote batch {stream.last_batch} last, {when}")
    if most_streams is not None and len(activity.streams) > most_streams:
        lines.append(f"and {counted(len(activity.streams) - most_streams, 'more stream')}")
    quiet = quietest(activity)
    if quiet is not None:
        lines.append(quiet)
    for found in _forecasts(activity):
        lines.append(
            f"a change of {found.minutes:g} min would meet {found.expected:.1f} commits "
            f"(at most {found.most}); {found.free:.0%} of such windows had none"
        )
    return lines


def quietest(activity: Activity) -> str | None:
    """Return a sentence about the quietest hour; None if the log is too short to determine it."""
    quiet = activity.quiet_hour
    if quiet is None:
        return None
    return (
        f"quietest hour {quiet.hour:02}:00 UTC ({quiet.commits_per_day:.1f} commits a day), "
        f"busiest {quiet.busiest_hour:02}:00 ({quiet.busiest_per_day:.1f}), "
        f"over {quiet.days:.1f} days"
    )


def writer_rows(activity: Activity, most: int | None = _MOST_WRITERS) -> list[tuple[str, ...]]:
    """Return the most frequent writers: engine, operation, commits, typical gap, last commit.

    Args:
        most: None: all writers.
    """
    return [
        (
            writer.engine,
            writer.operation,
            str(writer.commits),
            span(writer.typical_gap),
            _minute(writer.last_time),
        )
        for writer in activity.writers[:most]
    ]


def span(milliseconds: int | None) -> str:
    """Return a duration in the unit that suits its size."""
    if milliseconds is None:
        return "-"
    seconds = milliseconds / 1000
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def _minute(milliseconds: int | None) -> str:
    shown = format_timestamp(milliseconds)
    return "?" if shown is None else shown[: len("2026-01-01T00:00")] + "Z"


def _forecasts(activity: Activity) -> list[Forecast]:
    found = (build_forecast(activity.times, minutes) for minutes in MINUTES)
    return [forecast_ for forecast_ in found if forecast_ is not None]


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / 1000, 3)
