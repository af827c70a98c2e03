"""`deltaproto runbook`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Command, Option, Panel, switch
from deltaproto.cli.plan_io import JOURNAL, PLANS, journal_folder, refuse_output_among_plans
from deltaproto.cli.progress import count_steps
from deltaproto.errors import DeltaprotoError, EngineError, ExitCode
from deltaproto.execution.plan_file import LoadedPlan, load_plans
from deltaproto.execution.preflight import GateResult, manual_steps
from deltaproto.execution.prepare import load_context, predict_gates
from deltaproto.execution.progress import reading_address
from deltaproto.execution.rollout_calendar import estimate_times
from deltaproto.execution.rollout_file import find_rollout, require_policy
from deltaproto.execution.rollout_log import Decisions, RolloutLog
from deltaproto.execution.rollout_state import match_plans
from deltaproto.execution.warning import maintenance_windows_for, rule_on_losses
from deltaproto.inspection.activity import Activity, read_activity
from deltaproto.interrupts import work_ahead
from deltaproto.location import LocationKind, locate
from deltaproto.policy.document import Policy
from deltaproto.policy.local_catalog import load_local_policy
from deltaproto.redaction import Redactor
from deltaproto.render.runbook.book import Book, RunbookEntry
from deltaproto.render.runbook.phrases import phrases
from deltaproto.render.runbook.write import RunbookFormat, render_runbook
from deltaproto.tables.engine_errors import contain_table_errors

_NEEDS_SPARK = EngineError(
    "the table was not read: its catalog name needs Spark, and --no-activity is passed",
    "leave out --no-activity",
)


def run(values: Mapping[str, Any]) -> int:
    """Write one runbook for all plans."""
    plans, unplanned = load_plans(values["plans"], allow_empty=values["allow_empty"])
    current = {planned.id: planned for planned in plans}
    rollout, decisions, skipped = find_rollout(values["plans"]), Decisions(), dict[str, str]()
    ended: dict[str, float] = {}
    if rollout is not None:
        if not values["policy"]:
            require_policy(rollout, hint="pass --policy FILE, as to apply")
        log = RolloutLog(rollout, journal_folder(values)(rollout.path))
        decisions = log.decisions()
        current = match_plans(log, plans)
        skipped = {
            each.table: decisions.skipped[each.plan_id]
            for each in rollout.tables
            if each.plan_id in decisions.skipped
        }
        rollout = rollout.without(decisions.skipped)
        current = {each.plan_id: current[each.plan_id] for each in rollout.tables}
        ended = {name: at for name, planned in current.items() if (at := log.ended_at(planned))}
    now = time.time()
    say = phrases(values["language"])
    policy = load_local_policy(values["policy"]) if values["policy"] else None
    start = now
    if values["start"] is not None:
        wanted = options.parse_milliseconds(
            values["start"], "--start", "date or time", "2026-12-01T22:00Z"
        )
        start = wanted / 1000
    waves = () if rollout is None else estimate_times(rollout, current, policy, start, ended)
    starts = {plan_id: begin for wave in waves for plan_id, begin in wave.starts.items()}
    book = Book(
        _build_entries(current, policy, values, start, starts),
        tuple(unplanned),
        tuple(values["plans"]),
        start,
        now,
        values["policy"],
        values["client_file"],
        rollout,
        waves,
        decisions,
        skipped,
        ended.keys(),
    )
    refuse_output_among_plans(values["output"], values["plans"])
    options.refuse_overwrite(
        values["output"],
        (
            *(values[name] for name in ("policy", "template", "language")),
            *values["client_file"],
        ),
    )
    format = values["format"]
    if values["template"]:
        from deltaproto.render.runbook.write import fill_template

        made = fill_template(values["template"], book, say, format)
    else:
        made = render_runbook(book, say, format)
    with options.open_output(values["output"]) as file:
        file.write(made)
    codes = {ExitCode.UNREADABLE if unplanned else ExitCode.OK}
    codes.update(code for entry in book.entries for code in _gate_exit_codes(entry))
    return int(ExitCode.worst(codes))


def _gate_exit_codes(entry: RunbookEntry) -> Iterator[ExitCode]:
    """Yield the exit codes of the checks that would make `apply` refuse a plan.

    Excludes those that the runbook resolves itself: start time, flags, and manual steps.
    """
    for gate in entry.blocking:
        if gate.name == "window" or (gate.name == "plan" and manual_steps(entry.plan)):
            continue
        yield ExitCode.FINDINGS if gate.code is ExitCode.USAGE else gate.code


def _build_entries(
    plans: Mapping[str, LoadedPlan],
    policy: Policy | None,
    values: Mapping[str, Any],
    start: float,
    starts: Mapping[str, float],
) -> tuple[RunbookEntry, ...]:
    storage = options.storage_options(values)
    spark = options.spark_settings(values)
    redact = Redactor(storage, spark.conf)
    day = datetime.fromtimestamp(start, UTC).date()
    context = load_context(
        storage, spark, journal_folder(values), policy, values["client_file"], today=day
    )
    approvals = None if context.checker is None else context.checker.approvals

    def activity(planned: LoadedPlan) -> Activity | DeltaprotoError | None:
        if values["no_activity"] or not planned.plan.changes:
            return None
        try:
            with contain_table_errors():
                return read_activity(reading_address(planned.plan), storage, spark)
        except DeltaprotoError as error:
            error.message = redact(error.message)
            return error

    def gates(planned: LoadedPlan, begin: float) -> tuple[GateResult, ...]:
        by_name = locate(reading_address(planned.plan)).kind is LocationKind.NAME
        unread = _NEEDS_SPARK if values["no_activity"] and by_name else None
        found = predict_gates(planned, context, begin, unread)
        return tuple(
            gate._replace(message=redact(gate.message), hint=redact(gate.hint)) for gate in found
        )

    def read_entry(first: str) -> RunbookEntry:
        planned = plans[first]
        return RunbookEntry(
            planned,
            activity(planned),
            maintenance_windows_for(policy, planned.plan),
            rule_on_losses(planned.plan, approvals, day),
            gates(planned, starts.get(first, start)),
            starts.get(first),
            None if planned.id == first else first,
        )

    def is_remote(first: str) -> bool:
        plan = plans[first].plan
        return not plan.sql_name.startswith("delta.`") or not locate(plan.location).local

    show = options.shows_progress(values) and sys.stderr.isatty()
    found = []
    with count_steps("tables read", show=show) as seen:
        for number, (_, read) in enumerate(work_ahead(read_entry, plans, is_remote), 1):
            found.append(read())
            seen(number)
    return tuple(found)


COMMAND = Command(
    "runbook",
    "Write a release runbook: who to notify, what to pause, commands, checks and sign-off.",
    run,
    PLANS,
    (
        options.FORMAT._replace(type=RunbookFormat, default=RunbookFormat.MARKDOWN),
        Option(
            ("--start",),
            "Plan the first step for this time (default zone: UTC). Default: now.",
            metavar="TIME",
            panel=Panel.INPUT,
        ),
        options.POLICY._replace(
            help="Run apply's checks with this policy, and pass it to the printed commands."
        ),
        options.CLIENT_FILE,
        switch(
            "--no-activity",
            help="Do not read recent writers from the tables' logs.",
            panel=Panel.INPUT,
        ),
        Option(
            ("--template",),
            "Use this jinja2 template for the chapters.",
            metavar="FILE",
            panel=Panel.OUTPUT,
        ),
        Option(
            ("--language",),
            "Write in this language, or with the phrases in this YAML file.",
            str,
            "en",
            metavar="LANGUAGE",
            panel=Panel.OUTPUT,
        ),
        JOURNAL,
        options.ALLOW_EMPTY,
        options.OUTPUT,
        *options.READING,
    ),
    examples=(
        "runbook plan.json --output runbook.md",
        "runbook plans/ --policy policy.yaml --format html -o runbook.html",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE, ExitCode.STALE, ExitCode.FAILED),
)
