"""Ways to do one thing, measured in turns, and the ratios of what they took.

What else a machine does changes by the minute. So no side runs all its repetitions at once: each
round runs every side, every other round in reverse order (A B, B A, …), and ratios are taken within
a round. Every side first runs once uncounted: files, bytecode and code caches are warm for all.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_RESAMPLED = 2000


class Cost(NamedTuple):
    """What one run took; None where that cannot be told."""

    seconds: float
    """of wall time, from before the start of a process until it has ended"""
    processor: float | None = None
    """seconds of processor time, with those of its children"""
    mebibytes: float | None = None
    """peak resident memory of the largest of its processes, or `own_peak` where that is more"""


Side = Callable[[], Cost]


class Ratio(NamedTuple):
    """The median of the rounds' ratios, and where that median lies with 95 % confidence."""

    median: float
    low: float
    high: float
    pairs: int


def in_turns(
    sides: Mapping[str, Side],
    rounds: int,
    fewer: Mapping[str, int] | None = None,
    *,
    warm: bool = True,
) -> dict[str, list[Cost]]:
    """Run every side once for nothing, and then in `rounds` rounds.

    Args:
        sides: what to run, by name.
        rounds: how often.
        fewer: rounds after which a slow side is left out.
        warm: whether there is that uncounted run.
    """
    if warm:
        for side in sides.values():
            side()
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    for number in range(rounds):
        names = [name for name in sides if number < (fewer or {}).get(name, rounds)]
        for name in reversed(names) if number % 2 else names:
            costs[name].append(sides[name]())
    return costs


def ratio(ones: Sequence[float], others: Sequence[float]) -> Ratio:
    """Of two sides in the rounds that both have; the interval is a seeded bootstrap's."""
    each = [one / other for one, other in zip(ones, others, strict=False)]
    chance = random.Random(0)
    medians = sorted(
        statistics.median(chance.choices(each, k=len(each))) for _ in range(_RESAMPLED)
    )
    low, high = medians[_RESAMPLED // 40], medians[-1 - _RESAMPLED // 40]
    return Ratio(statistics.median(each), low, high, len(each))


def seconds(costs: Sequence[Cost]) -> list[float]:
    return [cost.seconds for cost in costs]


def processor(costs: Sequence[Cost]) -> list[float]:
    return [cost.processor for cost in costs if cost.processor is not None]


def mebibytes(costs: Sequence[Cost]) -> list[float]:
    return [cost.mebibytes for cost in costs if cost.mebibytes is not None]


def own_peak() -> float:
    """MiB that this process has taken at most; Linux counts a child's peak from there on."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(
    command: Sequence[str], *, lines: Path | None = None, codes: Collection[int] = (0,)
) -> Cost:
    """Run a process to its end; the kernel tells its own processor time and peak memory.

    Its peak is never below `own_peak`, so what measures memory must stay small itself.

    Args:
        command: the program and its arguments.
        lines: a file for its standard input.
        codes: exit codes that are answers; with another one, the measurement ends.
    """
    with open(lines or os.devnull) as source:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        raise SystemExit(f"{' '.join(command)} failed with exit code {process.returncode}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
