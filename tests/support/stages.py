"""Real tables that begin alike are made once, and copied where they part."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from itertools import combinations, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tests.recording.delta_spark import DeltaSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Step: TypeAlias = "str | Callable[[SparkSession, str], None]"
"""a statement in which `{t}` is the table, or what is done to its folder"""
Steps: TypeAlias = tuple[Step, ...]


class Stages:
    """Runs the steps of each plan, starting from the longest beginning that was run before.

    A copy has other paths and equal times of files; a path never comes twice, since Delta keeps
    what it knows of one.
    """

    def __init__(
        self, plans: Iterable[Steps], folder: Path, take: Callable[[SparkSession, str, Step], None]
    ) -> None:
        self._shared = {_beginning(*pair) for pair in combinations(plans, 2)} - {()}
        self._folder, self._take = folder, take
        self._kept: dict[Steps, Path] = {}

    def make(self, delta_spark: DeltaSpark, steps: Steps, path: Path) -> str:
        """Make the table of these steps at `path`, and return the path."""
        text = "\n".join(step.__name__ if callable(step) else step for step in steps)
        return str(delta_spark.run(text, lambda spark: self._make(spark, steps, path)))

    def _make(self, spark: SparkSession, steps: Steps, path: Path) -> str:
        known = [n for n in range(1, len(steps) + 1) if steps[:n] in self._kept]
        start = max(known, default=0)
        if start:
            shutil.copytree(self._kept[steps[:start]], path)
        for done in range(start + 1, len(steps) + 1):
            self._take(spark, str(path), steps[done - 1])
            if steps[:done] in self._shared:
                kept = self._folder / str(len(self._kept))
                self._kept[steps[:done]] = shutil.copytree(path, kept)
        return str(path)


def _beginning(one: Steps, other: Steps) -> Steps:
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(step for step, _ in equal)
