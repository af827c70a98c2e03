"""When the waves of a rollout can run at the earliest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.rollout_file import Rollout
from deltaproto.planning.rollout import Wave
from deltaproto.planning.statement import Action
from deltaproto.policy.document.model import Window
from deltaproto.policy.document.windows import is_open, next_opening

_HOUR = 3600.0
WindowsOf = Callable[[LoadedPlan], Sequence[Window] | None]
"""the maintenance windows of a plan's table; None: it may run at any time"""


class WaveTimes(NamedTuple):
    """The earliest times of a wave, in seconds since the epoch."""

    wave: Wave
    starts: Mapping[str, float]
    """for each plan id, when its first step begins"""
    ends: Mapping[str, float]
    """for each plan id, when its last statement may run"""
    next_start: float
    """when the soak time after the wave ends"""

    @property
    def start(self) -> float:
        """When the first plan begins."""
        return min(self.starts.values())

    @property
    def end(self) -> float:
        """When the last statement of the wave may run."""
        return max(self.ends.values())


def estimate_times(
    rollout: Rollout, plans: Mapping[str, LoadedPlan], windows_of: WindowsOf, start: float
) -> tuple[WaveTimes, ...]:
    """Return the earliest times of each wave if the first one begins at `start`.

    Statements need time of their own, which is not included. Waits, maintenance windows and soak
    times are.

    Args:
        plans: by plan id; must have every plan of the rollout.
    """
    found = []
    begin = start
    for wave in rollout.waves:
        starts, ends = {}, {}
        for table in wave.tables:
            planned = plans[table.plan_id]
            starts[table.plan_id], ends[table.plan_id] = _bounds(
                planned, windows_of(planned), begin
            )
        soaked = max(ends.values()) + rollout.soak_hours * _HOUR
        found.append(WaveTimes(wave, starts, ends, soaked))
        begin = soaked
    return tuple(found)


def _bounds(
    planned: LoadedPlan, windows: Sequence[Window] | None, begin: float
) -> tuple[float, float]:
    steps = planned.plan.steps
    if steps and steps[0].sql is not None:
        begin = _open(windows, begin)
    now, leading = begin, True
    for step, known in zip(steps, planned.not_before, strict=True):
        if step.sql is not None:
            now, leading = _open(windows, now), False
        elif step.action is Action.WAIT:
            # A wait before the first statement may have begun before the rollout.
            ends = leading and known is not None
            now = max(now, known or now) if ends else now + step.wait_hours * _HOUR
    return begin, now


def _open(windows: Sequence[Window] | None, seconds: float) -> float:
    """Return the first time from `seconds` on at which a statement may run."""
    now = datetime.fromtimestamp(seconds, UTC)
    if not windows or is_open(windows, now):
        return seconds
    opening = next_opening(windows, now)
    return seconds if opening is None else opening.timestamp()
