"""Waits between steps: when a wait ends, and whether the run waits until then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import StopReason
from deltaproto.execution.progress import Progress
from deltaproto.execution.recorder import RunRecorder
from deltaproto.execution.result import Observer
from deltaproto.planning.plan import Plan, Step
from deltaproto.tables.log.log_retention import full_minute

SECONDS_PER_HOUR = 3600.0


class WaitLimits(NamedTuple):
    """How long to wait and how often to retry."""

    retries: int = 5
    """retries of a step that lost a conflict"""
    wait: bool = False
    """wait instead of exiting"""
    now: Callable[[], float] = time.time
    """the current time, in seconds since the epoch"""
    sleep: Callable[[float], None] = time.sleep
    halted: Callable[[], bool] = lambda: False
    """whether the run was interrupted, so no further statement may be sent"""


def wait_ends_at(planned: LoadedPlan, progress: Progress, since: float | None) -> float:
    """Return when the next wait ends, in seconds since the epoch.

    For a truncation of history, the previous step's writes have expired by then.

    Args:
        since: completion time of the previous step, or None.
    """
    if since is None:
        at = planned.not_before[progress.done]
        return 0.0 if at is None else at
    written = full_minute(math.ceil(since * 1000)) / 1000
    return written + planned.plan.steps[progress.done].wait_hours * SECONDS_PER_HOUR


def wait_not_needed(plan: Plan, progress: Progress) -> bool:
    """Return True if every drop up to the next wait has succeeded in its first call."""
    coming = []
    for step in plan.steps[progress.done + 1 :]:
        if step.sql is None:
            break
        coming.append(step)
    return bool(coming) and all(step.optional and step.feature in progress.early for step in coming)


class WaitHandler:
    """Ends the run at a step that has to wait, or waits if `WaitLimits.wait` is set."""

    def __init__(
        self, planned: LoadedPlan, limits: WaitLimits, observer: Observer, recorder: RunRecorder
    ) -> None:
        self._planned, self._limits = planned, limits
        self._observer, self._recorder = observer, recorder

    def ends(self, step: Step, stop: StopReason, *, refused: bool = False) -> bool:
        """Return True if the run ends with `stop`; otherwise return after the wait.

        Args:
            refused: Delta refused the step, so no run sends it again before then.
        """
        if stop.earliest is None:
            return True
        self._recorder.waits(step, stop.earliest, self._limits.now(), refused=refused)
        if not self._limits.wait:
            return True
        while (left := stop.earliest - self._limits.now()) > 0:
            self._observer.waits(self._planned, step, stop.earliest)
            if self._limits.halted():
                return True
            self._limits.sleep(min(left, 1.0))
        return False
