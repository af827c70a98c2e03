"""`deltaproto history`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option
from deltaproto.cli.progress import counting, waiting
from deltaproto.errors import ExitCode, UsageError
from deltaproto.history import table_history
from deltaproto.report.history import write_history
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.location import Kind, locate


def run(values: Mapping[str, Any]) -> int:
    """Read the table's history and render it."""
    table = values["table"]
    show = not (values["no_progress"] or values["quiet"])
    with (
        waiting(f"asking Spark about {table}", show=show and locate(table).kind is Kind.NAME),
        counting("commits read", show=show) as seen,
    ):
        history = table_history(
            table,
            options.pairs(values["storage_option"], "--storage-option"),
            SparkSettings(
                values["spark_remote"],
                options.pairs(values["spark_conf"], "--spark-conf"),
                show_log=values["debug"],
            ),
            limit=_positive(values["limit"]),
            since=_milliseconds(values["since"]),
            seen=seen,
        )
    with options.opened(values["output"]) as file:
        write_history(table, history, values["format"], file, color=not values["no_color"])
    return int(ExitCode.UNREADABLE if history.problems else ExitCode.OK)


def _positive(limit: int | None) -> int | None:
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} is less than 1", "leave it out to see all events")
    return limit


def _milliseconds(since: str | None) -> int | None:
    if since is None:
        return None
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        raise UsageError(
            f"--since {since} is not a date or time", "for example 2026-11-01 or 2026-11-01T08:00Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


COMMAND = Command(
    "history",
    "Show which commit changed the table's protocol, features or isolation level, who, and why.",
    run,
    Argument("table", "TABLE", "Path, URI or catalog name."),
    (
        Option(("--limit", "-n"), "Stop after this many events.", int, metavar="N"),
        Option(("--since",), "Leave out what is older (UTC unless it says).", str, metavar="TIME"),
        options.FORMAT,
        options.OUTPUT,
        options.STORAGE_OPTION,
        options.SPARK_REMOTE,
        options.SPARK_CONF,
        options.NO_COLOR,
        options.NO_PROGRESS,
        options.QUIET,
        options.DEBUG,
    ),
)
