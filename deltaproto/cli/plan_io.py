"""Shared by the commands that execute plans: loading plans, one Spark, and output."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, cast

from deltaproto.cli import options
from deltaproto.cli.apply_progress import ProgressDisplay
from deltaproto.cli.declare import Argument, Option, Panel
from deltaproto.cli.output import TolerantWriter
from deltaproto.errors import ExitCode, UsageError
from deltaproto.execution.append_log import STATE_FOLDER
from deltaproto.execution.plan_file import FailedPlan, LoadedPlan, find_plan_files, read_plans
from deltaproto.execution.result import ApplyResult
from deltaproto.execution.runner import StatementRunner
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import Redactor
from deltaproto.render.apply import ApplyFormat, ApplyReport, ApplyText
from deltaproto.render.terminal import single_line

PLANS = Argument(
    "plans",
    "PLAN...",
    "Plan file from `plan-… --format json`, or a folder of them.",
    many=True,
)
FORMAT = Option(
    ("--format",), "Choose the output format.", ApplyFormat, ApplyFormat.TEXT, panel=Panel.OUTPUT
)


class PlanOutput(NamedTuple):
    """Output sinks for progress and results."""

    text: ApplyText
    report: ApplyReport
    display: ProgressDisplay
    output: TolerantWriter

    def result(self, applied: ApplyResult) -> None:
        """Write the result of one finished plan."""
        self.text.result(applied)
        self.report.add(applied)


@contextmanager
def open_plan_output(
    command: str, values: Mapping[str, Any], redact: Redactor, *, many: bool
) -> Iterator[PlanOutput]:
    """Open the outputs that `values` select, and close them with a summary.

    After closing, `output` shows whether everything was written.
    """
    with options.open_output(values["output"]) as opened:
        output = TolerantWriter(opened)
        file = cast(IO[str], output)
        # In JSON mode the warning still goes to standard error.
        told = file
        if values["format"] is not ApplyFormat.TEXT:
            told = io.StringIO() if values["quiet"] else cast(IO[str], TolerantWriter(sys.stderr))
        text = ApplyText(told, color=not values["no_color"], redact=redact)
        report = ApplyReport(command, values["format"], file, redact)
        live = not (values["no_progress"] or values["quiet"])
        with ProgressDisplay(text, many=many, show=live) as display:
            yield PlanOutput(text, report, display, output)
        text.close()
        report.close()
        output.flush()


def load_and_report_plans(
    paths: Sequence[str], *, allow_empty: bool = False
) -> tuple[list[LoadedPlan], set[ExitCode]]:
    """Load each plan once. Unplanned tables are reported to stderr and count as unreadable.

    Raises:
        UsageError: see `load_plans`.
    """
    plans, unplanned = load_plans(paths, allow_empty=allow_empty)
    for each in unplanned:
        said = Redactor()(f"{each.path}: {each.table}: {each.message}")
        print(f"error: {single_line(said)}", file=sys.stderr)
    return plans, {ExitCode.UNREADABLE if unplanned else ExitCode.OK}


def load_plans(
    paths: Sequence[str], *, allow_empty: bool = False
) -> tuple[list[LoadedPlan], list[FailedPlan]]:
    """Load each plan once. Return the plans, and the tables that could not be planned.

    Raises:
        NoPlansError: for a file or folder without plans, unless `allow_empty`.
        UsageError: for a file that is not a plan, or the same plan in two files.
    """
    found: dict[str, LoadedPlan] = {}
    unplanned: list[FailedPlan] = []
    for path in find_plan_files(paths, allow_empty=allow_empty):
        for each in read_plans(path, allow_empty=allow_empty):
            if isinstance(each, FailedPlan):
                unplanned.append(each)
                continue
            twin = found.setdefault(each.id, each)
            if twin is not each and twin.path != each.path:
                raise UsageError(
                    f"{twin.path} and {each.path} are the same plan", "pass only one of them"
                )
    return list(found.values()), unplanned


def default_journal_dir(path: str) -> str:
    """Return the default journal folder of a plan file."""
    folder = os.path.dirname(os.path.abspath(path))
    return (
        folder if os.path.basename(folder) == STATE_FOLDER else os.path.join(folder, STATE_FOLDER)
    )


def lazy_runner(spark: SparkSettings) -> Callable[[], StatementRunner]:
    """Return a factory for one shared runner; Spark starts on first use."""
    lock = threading.Lock()
    made: list[StatementRunner] = []

    def get() -> StatementRunner:
        with lock:
            if not made:
                made.append(StatementRunner.started(spark))
            return made[0]

    return get
