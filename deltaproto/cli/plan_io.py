"""Shared by the commands that execute plans: loading plans, one Spark, and output."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any, NamedTuple, Self, cast

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Option, Panel, switch
from deltaproto.cli.output import TolerantWriter, attach_results
from deltaproto.cli.signals import resume_hint
from deltaproto.counts import counted
from deltaproto.errors import ExitCode, UsageError
from deltaproto.execution.plan_file import (
    PLAN_SUFFIXES,
    FailedPlan,
    LoadedPlan,
    find_plan_files,
    load_plans,
)
from deltaproto.execution.result import ApplyResult, StepRecord
from deltaproto.execution.run_log import default_journal_dir
from deltaproto.planning.plan import Step
from deltaproto.redaction import Redactor
from deltaproto.render.apply import ApplyFormat, ApplyReport, ApplyText
from deltaproto.render.interface import DEFAULT_LIMIT, stamp
from deltaproto.render.named_tables import GROUPED_FROM, NamedCount
from deltaproto.render.terminal import duration, single_line

PLANS = Argument(
    "plans",
    "PLAN...",
    "Plan file from `plan-… --format json`, or a folder of them.",
    many=True,
)
YES = switch("--yes", "-y", help="Do not ask before executing.", panel=Panel.SAFETY)
FORMAT = options.FORMAT._replace(type=ApplyFormat, default=ApplyFormat.TEXT)

JOURNAL = Option(
    ("--journal",),
    "Keep journals in this folder. Default: .deltaproto next to the plan file.",
    metavar="DIR",
    panel=Panel.OUTPUT,
)
SCRATCH = Option(
    ("--scratch",),
    "Create clones in this folder or URI. Default: a temporary folder.",
    metavar="DIR",
    panel=Panel.INPUT,
)
AUDIT = Option(
    ("--audit",),
    "Append to this audit log. Default: audit.jsonl next to the journals.",
    metavar="FILE",
    panel=Panel.OUTPUT,
)
DETAILED_EXITCODE = switch(
    "--detailed-exitcode", help="Exit 10 if steps remain.", panel=Panel.OUTPUT
)


def refuse_output_among_plans(output: str | None, paths: Sequence[str]) -> None:
    """Refuse to write over a plan, a rollout or a journal, or beside the plans of a folder.

    Args:
        paths: plan files, and folders of them.

    Raises:
        UsageError: when the file `output` would be read as a plan, or is already in use.
    """
    if output is None:
        return
    options.refuse_overwrite(output, find_plan_files(paths, allow_empty=True))
    parent = os.path.dirname(os.path.abspath(output))
    for path in paths:
        plan = os.path.join(path, "plan") if os.path.isdir(path) else path
        for folder in (path, default_journal_dir(plan)):
            same = os.path.isdir(folder) and os.path.isdir(parent)
            if same and os.path.samefile(folder, parent) and output.endswith(PLAN_SUFFIXES):
                raise UsageError(
                    f"{output} is among the plans and journals of {path}",
                    "choose another --output",
                )


class PlanOutput(NamedTuple):
    """Output sinks for progress and results."""

    text: ApplyText
    report: ApplyReport
    display: ProgressDisplay
    output: TolerantWriter

    def result(self, applied: ApplyResult) -> None:
        """Write the result of one finished plan."""
        self.report.add(applied)
        self.text.result(applied)


@contextmanager
def open_plan_output(
    command: str, values: Mapping[str, Any], redact: Redactor, *, many: bool, complete: bool
) -> Iterator[PlanOutput]:
    """Open the outputs that `values` select, and close them with a summary.

    Args:
        many: whether there are several plans.
        complete: whether every table of the plan files was planned.

    After closing, `output` shows whether everything was written. If the block fails or is
    interrupted, the JSON of the error has the results so far.
    """
    with options.open_output(values["output"], whole=False) as opened:
        output = TolerantWriter(opened)
        file = cast(IO[str], output)
        # In JSON mode the warning still goes to standard error.
        progress = file
        if values["format"] is not ApplyFormat.TEXT:
            progress = (
                io.StringIO() if values["quiet"] else cast(IO[str], TolerantWriter(sys.stderr))
            )
        text = ApplyText(progress, color=not values["no_color"], redact=redact)
        report = ApplyReport(command, values["format"], file, redact, complete=complete)
        live = options.shows_progress(values)
        with ProgressDisplay(text, many=many, show=live) as display:
            try:
                yield PlanOutput(text, report, display, output)
            except (Exception, KeyboardInterrupt) as error:
                attach_results(error, report.so_far())
                raise
        text.close()
        report.close()
        output.flush()


def _unplanned_lines(unplanned: Sequence[FailedPlan]) -> Iterator[str]:
    """Yield a line for each table, or, of many, for the tables with the same error."""
    if len(unplanned) < GROUPED_FROM:
        yield from (f"{each.path}: {each.table}: {each.message}" for each in unplanned)
        return
    groups: dict[str, NamedCount] = {}
    for each in sorted(unplanned, key=lambda failed: failed.table):
        groups.setdefault(each.message, NamedCount()).add(each.table)
    ordered = sorted(groups.items(), key=lambda group: -group[1].tables)
    for message, found in ordered[:DEFAULT_LIMIT]:
        yield f"{counted(found.tables, 'table')} not planned: {message} [{found.shown(0)}]"
    if left := sum(found.tables for _, found in ordered[DEFAULT_LIMIT:]):
        yield f"{counted(left, 'more table')} not planned, with other errors; a runbook names all"


def load_and_report_plans(
    paths: Sequence[str], *, allow_empty: bool = False
) -> tuple[list[LoadedPlan], set[ExitCode]]:
    """Load each plan once. Unplanned tables are reported to stderr and count as unreadable.

    Raises:
        UsageError: see `load_plans`.
    """
    plans, unplanned = load_plans(paths, allow_empty=allow_empty)
    for line in _unplanned_lines(unplanned):
        print(f"error: {single_line(Redactor()(line))}", file=sys.stderr)
    return plans, {ExitCode.UNREADABLE if unplanned else ExitCode.OK}


def type_name(path: str, action: str) -> bool:
    """Ask on the terminal for the last part of `path`. Return True if it, or all of it, was typed.

    Args:
        action: what typing the name does, such as "execute this plan".
    """
    name = path.rstrip("/").rpartition("/")[2].strip()
    print(f"Type {single_line(name)} to {action}: ", end="", file=sys.stderr)
    sys.stderr.flush()
    with resume_hint("nothing was changed"):
        typed = sys.stdin.readline()
    return typed.strip() in (name, path.strip())


def journal_folder(values: Mapping[str, Any]) -> Callable[[str], str]:
    """Return a function for the folder of a plan file's journal."""
    return lambda path: values["journal"] or default_journal_dir(path)


_SHOWN = 12
_EVERY_SECONDS = 600.0


class ProgressDisplay:
    """Shows running steps on standard error if it is a terminal."""

    def __init__(self, text: ApplyText, *, many: bool, show: bool) -> None:
        self._text, self._many = text, many
        self._show = show and sys.stderr.isatty()
        self._lines = show and not self._show
        self._printed: dict[str, float] = {}
        self._running: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()
        self._status: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def began(self, planned: LoadedPlan, step: Step) -> None:
        """Handle the start of a step's statement."""
        self._set(planned, f"{step.id} {step.action}")

    def progress(self, planned: LoadedPlan, step: Step, done: int, known: int) -> None:
        """Update how many of the step's engine tasks are finished."""
        self._set(planned, f"{step.id} {step.action}, {done} of {known} tasks")

    def retries(self, planned: LoadedPlan, step: Step, winner: str, seconds: float) -> None:
        """Report that a concurrent writer won and the step is retried."""
        self._text.retries(planned, step, winner, seconds)

    def waits(self, planned: LoadedPlan, step: Step, until: float) -> None:
        """Report that the next step waits until the time `until`."""
        left = duration(max(until - time.time(), 0) / 3600)
        message = f"{step.id} waits {left} more, until {stamp(until)}"
        if self._lines:
            self._line(planned, message)
        else:
            self._set(planned, message)

    def finished(self, planned: LoadedPlan, record: StepRecord) -> None:
        """Print a finished step."""
        self._set(planned, None)
        self._text.finished(planned, record, many=self._many)

    def halts(self) -> None:
        """Report an interruption."""
        print("stopping: running statements finish, no new ones are sent", file=sys.stderr)

    def _line(self, planned: LoadedPlan, message: str) -> None:
        """Print a line where no live display is possible, at most every ten minutes."""
        now = time.monotonic()
        with self._lock:
            last = self._printed.get(planned.id)
            if last is not None and now - last < _EVERY_SECONDS:
                return
            self._printed[planned.id] = now
            print(single_line(f"{planned.plan.table}: {message}"), file=sys.stderr, flush=True)

    def _set(self, planned: LoadedPlan, message: str | None) -> None:
        if not self._show:
            return
        with self._lock:
            if message is None:
                self._running.pop(planned.id, None)
            else:
                since = self._running.get(planned.id, (time.monotonic(), ""))[0]
                self._running[planned.id] = since, f"{planned.plan.table}: {message}"
            self._redraw()

    def _redraw(self) -> None:
        if self._status is None:
            from rich.console import Console

            self._status = self._stack.enter_context(Console(stderr=True).status(""))
        now = time.monotonic()
        lines = [
            f"{single_line(message)}, {now - since:.0f} s"
            for since, message in list(self._running.values())[:_SHOWN]
        ]
        from rich.text import Text

        self._status.update(Text("\n".join(lines)))
