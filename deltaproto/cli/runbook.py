"""`deltaproto runbook`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deltaproto.activity import Activity, read_activity
from deltaproto.checking.site import site_catalogue, site_policy
from deltaproto.cli import options
from deltaproto.cli.declare import Command, Option
from deltaproto.cli.executing import PLANS, load_all
from deltaproto.cli.progress import counting
from deltaproto.errors import DeltaprotoError, ExitCode
from deltaproto.execution.plan_file import Planned, plan_files
from deltaproto.execution.sight import named
from deltaproto.execution.warning import rulings, windows_of
from deltaproto.policy.approvals import Approvals
from deltaproto.policy.document import Policy
from deltaproto.report.runbook.book import Book, Entry
from deltaproto.report.runbook.phrases import phrases
from deltaproto.report.runbook.write import RunbookFormat, rendered
from deltaproto.tables.defect import one_table

_AT_ONCE = 8


def run(values: Mapping[str, Any]) -> int:
    """Write one runbook for all plans."""
    plans, unplanned = load_all(values["plans"])
    now = time.time()
    say = phrases(values["language"])
    policy = site_policy(values["policy"]) if values["policy"] else None
    start = now
    if values["start"] is not None:
        wanted = options.milliseconds(
            values["start"], "--start", "date or time", "2026-12-01T22:00Z"
        )
        start = wanted / 1000
    book = Book(
        _entries(plans, policy, values),
        tuple(unplanned),
        tuple(values["plans"]),
        start,
        now,
        values["policy"],
    )
    options.spare(
        values["output"],
        (
            *plan_files(values["plans"]),
            *(values[name] for name in ("policy", "template", "language")),
        ),
    )
    format = values["format"]
    if values["template"]:
        from deltaproto.report.runbook.template import filled

        made = filled(values["template"], book, say, format)
    else:
        made = rendered(book, say, format)
    with options.opened(values["output"]) as file:
        file.write(made)
    codes = {ExitCode.OK}
    if any(planned.plan.blocked for planned in plans):
        codes.add(ExitCode.FINDINGS)
    if unplanned:
        codes.add(ExitCode.UNREADABLE)
    return int(ExitCode.worst(codes))


def _entries(
    plans: list[Planned], policy: Policy | None, values: Mapping[str, Any]
) -> tuple[Entry, ...]:
    storage = options.pairs(values["storage_option"], "--storage-option")
    spark = options.spark_settings(values)

    def look(planned: Planned) -> Activity | DeltaprotoError | None:
        if values["no_activity"] or not planned.plan.changes:
            return None
        try:
            with one_table():
                return read_activity(named(planned.plan), storage, spark)
        except DeltaprotoError as error:
            return error

    show = not (values["no_progress"] or values["quiet"]) and sys.stderr.isatty()
    with ThreadPoolExecutor(_AT_ONCE) as pool, counting("tables looked at", show=show) as seen:
        found = []
        for number, each in enumerate(pool.map(look, plans), 1):
            found.append(each)
            seen(number)
    approvals = None if policy is None else Approvals(policy, site_catalogue((), policy))
    return tuple(
        Entry(planned, activity, windows_of(policy, planned.plan), rulings(planned.plan, approvals))
        for planned, activity in zip(plans, found, strict=True)
    )


COMMAND = Command(
    "runbook",
    "Write the release runbook of plans: whom to tell, what to stop, commands, checks, sign-off.",
    run,
    PLANS,
    (
        Option(("--format",), "Output format.", RunbookFormat, RunbookFormat.MARKDOWN),
        Option(
            ("--start",),
            "When the first step is meant to be carried out (UTC unless it says); else now.",
            str,
            metavar="TIME",
        ),
        Option(
            ("--policy",),
            "YAML file, for its maintenance windows and the commands that take it.",
            str,
            metavar="FILE",
        ),
        Option(
            ("--no-activity",), "Do not look into the tables' logs for who writes.", bool, False
        ),
        Option(
            ("--template",),
            "Template of your own (jinja2), in which the chapters are put.",
            str,
            metavar="FILE",
        ),
        Option(
            ("--language",),
            "Language, or a YAML file with phrases of your own.",
            str,
            "en",
            metavar="LANGUAGE",
        ),
        options.OUTPUT,
        *options.READING,
    ),
)
