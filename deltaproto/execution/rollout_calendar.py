"""When the waves of a rollout can run at the earliest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import check_window_open
from deltaproto.execution.rollout_file import Rollout
from deltaproto.execution.waits import SECONDS_PER_HOUR
from deltaproto.execution.warning import maintenance_windows_for
from deltaproto.planning.rollout import Wave
from deltaproto.planning.statement import Action
from deltaproto.policy.document import Policy
from deltaproto.policy.document.model import Window


class WaveTimes(NamedTuple):
    """The earliest times of a wave, in seconds since the epoch."""

    wave: Wave
    starts: Mapping[str, float]
    """for each plan id, when its first step begins"""
    end: float
    """when the last statement of the wave may run"""
    next_start: float
    """when the soak time after the wave ends"""

    @property
    def start(self) -> float:
        """When the first plan begins."""
        return min(self.starts.values())


def estimate_times(
    rollout: Rollout,
    plans: Mapping[str, LoadedPlan],
    policy: Policy | None,
    start: float,
    ended: Mapping[str, float] = MappingProxyType({}),
) -> tuple[WaveTimes, ...]:
    """Return the earliest times of each wave if the first one with steps left begins at `start`.

    Includes waits, maintenance windows and soak times, but not the duration of statements.

    Args:
        plans: by plan id; must have every plan of the rollout.
        policy: the source of maintenance windows; None: there are none.
        ended: by plan id, when the plans that are done ended.
    """
    found = []
    begin = start
    for wave in rollout.waves:
        starts, ends = {}, []
        for table in wave.tables:
            planned, at = plans[table.plan_id], ended.get(table.plan_id)
            windows = maintenance_windows_for(policy, planned.plan)
            bounds = _bounds(planned, windows, begin) if at is None else (at, at)
            starts[table.plan_id] = bounds[0]
            ends.append(bounds[1])
        begin = max(start, max(ends) + rollout.soak_hours * SECONDS_PER_HOUR)
        found.append(WaveTimes(wave, starts, max(ends), begin))
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
            now = max(now, known or now) if ends else now + step.wait_hours * SECONDS_PER_HOUR
    return begin, now


def _open(windows: Sequence[Window] | None, seconds: float) -> float:
    """Return the first time at or after `seconds` at which a statement may run."""
    closed = check_window_open(windows, seconds)
    return seconds if closed is None or closed.earliest is None else closed.earliest
