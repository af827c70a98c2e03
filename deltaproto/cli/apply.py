"""`deltaproto apply`."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import IO, Any

from deltaproto.checking.check import Checker
from deltaproto.checking.site import site_catalogue
from deltaproto.cli import options
from deltaproto.cli.apply_progress import Display
from deltaproto.cli.check import load_one_policy, spare
from deltaproto.cli.declare import Argument, Command, Option
from deltaproto.cli.way_back import way_back
from deltaproto.errors import ExitCode, TableError, UsageError
from deltaproto.execution.apply import Session, apply_plans, unprepared
from deltaproto.execution.audit import NAME
from deltaproto.execution.journal import FOLDER
from deltaproto.execution.plan_file import Planned, Unplanned, plan_files, read_plans
from deltaproto.execution.prepare import Context, Prepared
from deltaproto.execution.redact import Redactor
from deltaproto.execution.result import Applied
from deltaproto.execution.runner import Runner
from deltaproto.execution.stepping import Limits
from deltaproto.execution.undo import StalePlan
from deltaproto.report.apply import ApplyFormat, ApplyReport
from deltaproto.report.apply_text import ApplyText
from deltaproto.report.interface import visible

_MOST = 64


def run(values: Mapping[str, Any]) -> int:
    """Carry out every plan, render each result, and return the worst exit code."""
    plans, codes = read_all(values["plans"])
    if not 1 <= values["parallel"] <= _MOST:
        raise UsageError(
            f"--parallel {values['parallel']} makes no sense", f"give a number from 1 to {_MOST}"
        )
    storage = options.pairs(values["storage_option"], "--storage-option")
    spark = options.spark_settings(values)
    redact = Redactor(storage, spark.conf)
    policy = load_one_policy(values["policy"]) if values["policy"] else None
    context = Context(
        storage,
        spark,
        folder=lambda path: values["journal"] or beside(path),
        policy=policy,
        checker=None
        if policy is None
        else Checker(policy, site_catalogue(values["catalogue"], policy)),
        allow_irreversible=values["allow_irreversible"],
        outside_window=values["outside_window"],
    )
    spare(values["output"], (*values["plans"], values["policy"], *values["catalogue"]))
    as_text = values["format"] is ApplyFormat.TEXT
    with options.opened(values["output"]) as file:
        # Whoever reads JSON gets the warning on standard error all the same.
        text = ApplyText(
            file if as_text else beside_data(values), color=not values["no_color"], redact=redact
        )
        report = ApplyReport("apply", values["format"], file, redact)
        shown = not (values["no_progress"] or values["quiet"])
        with Display(text, many=len(plans) > 1, show=shown) as display:
            session = Session(
                context,
                once(lambda: Runner.started(spark)),
                audit=lambda path: values["audit"] or os.path.join(context.folder(path), NAME),
                redact=redact,
                observer=display,
                limits=Limits(values["retries"], values["wait"]),
                dry_run=values["dry_run"],
                parallel=values["parallel"],
            )
            asks = not (values["yes"] or values["dry_run"])

            def confirm(prepared: Prepared) -> str | None:
                text.warned(prepared)
                if not asks or prepared.refused is not None or not prepared.left:
                    return None
                return _typed(prepared.planned.plan.table)

            ready, stuck = _chosen(plans, context, values)
            results = apply_plans(ready, session, confirm, ask_all_first=asks)
            for applied in chain(stuck, results):
                codes.add(applied.code)
                text.result(applied)
                report.add(applied)
        text.close()
        report.close()
    if not values["detailed_exitcode"]:
        codes = {ExitCode.OK if code is ExitCode.CHANGES else code for code in codes}
    return int(ExitCode.worst(codes))


def read_all(paths: Sequence[str]) -> tuple[list[Planned], set[ExitCode]]:
    """The plans, each once; tables that could not be planned count as unreadable."""
    found: dict[str, Planned] = {}
    codes = {ExitCode.OK}
    for path in plan_files(paths):
        for each in read_plans(path):
            if isinstance(each, Unplanned):
                said = Redactor()(f"{each.path}: {each.table}: {each.message}")
                print(f"error: {visible(said)}", file=sys.stderr)
                codes.add(ExitCode.UNREADABLE)
                continue
            twin = found.setdefault(each.id, each)
            if twin is not each and twin.path != each.path:
                raise UsageError(
                    f"{twin.path} and {each.path} hold the same plan", "give one of them"
                )
    return list(found.values()), codes


def _chosen(
    plans: Sequence[Planned], context: Context, values: Mapping[str, Any]
) -> tuple[list[Planned], list[Applied]]:
    """The plans to carry out, with --undo the ways back; and those that have none."""
    if not values["undo"]:
        return list(plans), []
    ready: list[Planned] = []
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
    print(f"Type {visible(name)} to carry this out: ", end="", file=sys.stderr)
    sys.stderr.flush()
    typed = sys.stdin.readline()
    return None if typed.strip() in (name, table.strip()) else "it was not confirmed"


def beside_data(values: Mapping[str, Any]) -> IO[str]:
    """Where text goes while the data is JSON: standard error, or nowhere with --quiet."""
    return io.StringIO() if values["quiet"] else sys.stderr


def beside(path: str) -> str:
    """The folder of journals beside a plan file."""
    folder = os.path.dirname(os.path.abspath(path))
    return folder if os.path.basename(folder) == FOLDER else os.path.join(folder, FOLDER)


def once(make: Callable[[], Runner]) -> Callable[[], Runner]:
    """Make it when it is first asked for, and only then."""
    lock = threading.Lock()
    made: list[Runner] = []

    def get() -> Runner:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    return get


COMMAND = Command(
    "apply",
    "Carry out plans: warned, gated, step by step, verified, on record; again to resume.",
    run,
    Argument(
        "plans",
        "PLAN...",
        "Plan files that `plan-… --format json` wrote; a folder stands for the plans in it.",
        many=True,
    ),
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
        Option(("--outside-window",), "Go on although no maintenance window is open.", bool, False),
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
        Option(("--format",), "Output format.", ApplyFormat, ApplyFormat.TEXT),
        options.OUTPUT,
        *options.READING,
    ),
)
