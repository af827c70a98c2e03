"""`deltaproto apply`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Command, Option
from deltaproto.cli.plan_io import FORMAT, PLANS, default_journal_dir, lazy_runner, read_all, shown
from deltaproto.cli.signals import resume_hint, terminable
from deltaproto.cli.undo_plan import way_back
from deltaproto.errors import ExitCode, TableError, UsageError
from deltaproto.execution.append_log import AUDIT
from deltaproto.execution.apply import Session, apply_plans, unprepared
from deltaproto.execution.plan_file import LoadedPlan, plan_files
from deltaproto.execution.prepare import Context, PreparedPlan
from deltaproto.execution.result import Applied
from deltaproto.execution.undo import StalePlan
from deltaproto.execution.waits import WaitLimits
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import site_catalogue, site_policy
from deltaproto.redaction import Redactor
from deltaproto.render.terminal import single_line

_MOST = 64
_AGAIN = "what was committed stays and is on record; the same command again goes on from there"


def run(values: Mapping[str, Any]) -> int:
    """Carry out every plan, render each result, and return the worst exit code."""
    plans, codes = read_all(values["plans"], allow_empty=values["allow_empty"])
    options.require_range(values["parallel"], "--parallel", _MOST)
    storage = options.pairs(values["storage_option"], "--storage-option")
    spark = options.spark_settings(values).reaching(*(each.plan.location for each in plans))
    redact = Redactor(storage, spark.conf)
    policy = site_policy(values["policy"]) if values["policy"] else None
    context = Context(
        storage,
        spark,
        folder=lambda path: values["journal"] or default_journal_dir(path),
        policy=policy,
        checker=None
        if policy is None
        else Checker(policy, site_catalogue(values["catalogue"], policy)),
        allow_irreversible=values["allow_irreversible"],
        outside_window=values["outside_window"],
    )
    options.refuse_overwrite(
        values["output"],
        (
            *plan_files(values["plans"], allow_empty=True),
            values["policy"],
            values["audit"],
            *values["catalogue"],
        ),
    )
    with shown("apply", values, redact, many=len(plans) > 1) as to:
        session = Session(
            context,
            lazy_runner(spark),
            audit=lambda path: values["audit"] or os.path.join(context.folder(path), AUDIT),
            redact=redact,
            observer=to.display,
            limits=WaitLimits(values["retries"], values["wait"]),
            dry_run=values["dry_run"],
            parallel=values["parallel"],
        )
        asks = not (values["yes"] or values["dry_run"])

        def confirm(prepared: PreparedPlan) -> str | None:
            to.text.warned(prepared)
            if not asks or prepared.refused is not None or not prepared.left:
                return None
            return _typed(prepared.planned.plan.table)

        ready, stuck = _chosen(plans, context, values)
        to.report.expect([*(each.planned.id for each in stuck), *(each.id for each in ready)])
        with terminable(), resume_hint(None if values["dry_run"] else _AGAIN):
            for applied in chain(stuck, apply_plans(ready, session, confirm, ask_all_first=asks)):
                codes.add(applied.code)
                to.result(applied)
        options.policy_notices(context.checker)
    codes.add(to.output.code)
    if not values["detailed_exitcode"]:
        codes = {ExitCode.OK if code is ExitCode.CHANGES else code for code in codes}
    return int(ExitCode.worst(codes))


def _chosen(
    plans: Sequence[LoadedPlan], context: Context, values: Mapping[str, Any]
) -> tuple[list[LoadedPlan], list[Applied]]:
    """The plans to carry out, with --undo the ways back; and those that have none."""
    if not values["undo"]:
        return list(plans), []
    ready: list[LoadedPlan] = []
    stuck: list[Applied] = []
    for planned in plans:
        try:
            ready.append(way_back(planned, context, keep=not values["dry_run"]))
        except (StalePlan, TableError) as error:
            stuck.append(unprepared(planned, error))
    return ready, stuck


def _typed(table: str) -> str | None:
    """Why nobody agreed; None when the table's name was typed.

    Raises:
        UsageError: when there is nobody to ask.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "nobody is there to confirm: standard input is no terminal",
            "give --yes to go on without being asked",
        )
    name = table.rstrip("/").rpartition("/")[2].strip()
    print(f"Type {single_line(name)} to carry this out: ", end="", file=sys.stderr)
    sys.stderr.flush()
    with resume_hint("nothing was changed"):
        typed = sys.stdin.readline()
    return None if typed.strip() in (name, table.strip()) else "it was not confirmed"


COMMAND = Command(
    "apply",
    "Carry out plans: warned, gated, step by step, verified, on record; again to resume.",
    run,
    PLANS,
    (
        Option(("--yes", "-y"), "Go on without being asked.", bool, False),
        Option(
            ("--allow-irreversible",),
            "Execute steps beyond the point of no return, too.",
            bool,
            False,
        ),
        Option(
            ("--dry-run",), "Pass every gate, say what would happen, change nothing.", bool, False
        ),
        Option(
            ("--policy",),
            "YAML file: its clients must not lose anything, its maintenance windows hold.",
            str,
            metavar="FILE",
        ),
        options.CATALOGUE,
        Option(
            ("--outside-window",),
            "Go on although no maintenance window is open.",
            bool,
            False,
        ),
        Option(
            ("--undo",), "Take back what is done of the plans, where there is a way.", bool, False
        ),
        Option(("--wait",), "Stay until waiting steps may go on.", bool, False),
        Option(
            ("--retries",), "How often a step that lost a race is tried again.", int, 5, metavar="N"
        ),
        Option(("--parallel",), "So many plans at a time.", int, 1, metavar="N"),
        Option(
            ("--journal",),
            "Folder of the journals; by default .deltaproto beside the plan file.",
            str,
            metavar="DIR",
        ),
        Option(
            ("--audit",),
            "Audit log to append to; by default audit.jsonl beside the journals.",
            str,
            metavar="FILE",
        ),
        Option(("--detailed-exitcode",), "Exit with 10 when steps are left to do.", bool, False),
        FORMAT,
        options.ALLOW_EMPTY,
        options.OUTPUT,
        *options.READING,
    ),
)
