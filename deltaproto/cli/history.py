"""`deltaproto history`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option, Panel
from deltaproto.cli.progress import count_steps, show_waiting
from deltaproto.errors import ExitCode
from deltaproto.inspection.history import table_history
from deltaproto.location import LocationKind, locate
from deltaproto.render.history import write_history


def run(values: Mapping[str, Any]) -> int:
    """Read the table's history and render it."""
    table, since = values["table"], values["since"]
    if since is not None:
        since = options.parse_milliseconds(
            since, "--since", "date or time", "2026-11-01 or 2026-11-01T08:00Z"
        )
    show = options.shows_progress(values)
    with (
        show_waiting(
            f"reading {table} with Spark", show=show and locate(table).kind is LocationKind.NAME
        ),
        count_steps("commits read", show=show) as seen,
    ):
        history = table_history(
            table,
            options.storage_options(values),
            options.spark_settings(values),
            limit=options.require_limit(values["limit"] or 0) or None,
            since=since,
            seen=seen,
        )
    with options.open_output(values["output"]) as file:
        write_history(table, history, values["format"], file, color=not values["no_color"])
    return int(ExitCode.OK if history.complete else ExitCode.UNREADABLE)


COMMAND = Command(
    "history",
    "Show which commits changed the table's protocol, features or isolation level, "
    "who made them, and why.",
    run,
    Argument("table", "TABLE", "Path, URI or catalog name."),
    (
        Option(
            ("--limit", "-n"),
            "Show at most N events; 0 shows all.",
            int,
            metavar="N",
            panel=Panel.INPUT,
        ),
        Option(
            ("--since",),
            "Show events since this time (default zone: UTC).",
            metavar="TIME",
            panel=Panel.INPUT,
        ),
        options.PAGE_FORMAT,
        options.OUTPUT,
        *options.READING,
    ),
    examples=(
        "history ./orders",
        "history s3://lake/gold/orders --since 2026-11-01",
    ),
)
