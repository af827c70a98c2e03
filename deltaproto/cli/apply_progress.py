"""Progress of running plans: finished steps as lines, running steps in a live display."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack
from typing import Any, Self

from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.result import StepRecord
from deltaproto.planning.plan import Step
from deltaproto.render.apply import ApplyText
from deltaproto.render.interface import stamp
from deltaproto.render.terminal import duration, single_line

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
        said = f"{step.id} waits {left} more, until {stamp(until)}"
        if self._lines:
            self._line(planned, said)
        else:
            self._set(planned, said)

    def finished(self, planned: LoadedPlan, record: StepRecord) -> None:
        """Print a finished step."""
        self._set(planned, None)
        self._text.finished(planned, record, many=self._many)

    def halts(self) -> None:
        """Report an interruption."""
        print("stopping: running statements finish, no new ones are sent", file=sys.stderr)

    def _line(self, planned: LoadedPlan, said: str) -> None:
        """Print a line where no live display is possible, at most every ten minutes."""
        now = time.monotonic()
        with self._lock:
            last = self._printed.get(planned.id)
            if last is not None and now - last < _EVERY_SECONDS:
                return
            self._printed[planned.id] = now
            print(single_line(f"{planned.plan.table}: {said}"), file=sys.stderr, flush=True)

    def _set(self, planned: LoadedPlan, said: str | None) -> None:
        if not self._show:
            return
        with self._lock:
            if said is None:
                self._running.pop(planned.id, None)
            else:
                since = self._running.get(planned.id, (time.monotonic(), ""))[0]
                self._running[planned.id] = since, f"{planned.plan.table}: {said}"
            self._redraw()

    def _redraw(self) -> None:
        if self._status is None:
            from rich.console import Console

            self._status = self._stack.enter_context(Console(stderr=True).status(""))
        now = time.monotonic()
        lines = [
            f"{single_line(said)}, {now - since:.0f} s"
            for since, said in list(self._running.values())[:_SHOWN]
        ]
        from rich.text import Text

        self._status.update(Text("\n".join(lines)))
