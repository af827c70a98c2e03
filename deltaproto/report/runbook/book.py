"""What a runbook is written from, and the words that its chapters share."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import NamedTuple

from deltaproto.activity import Activity
from deltaproto.errors import DeltaprotoError
from deltaproto.execution.plan_file import Planned, Unplanned
from deltaproto.planning.advice import comes_back
from deltaproto.planning.plan import Plan
from deltaproto.policy.document.model import Window
from deltaproto.protocol.protocol import Protocol
from deltaproto.report.document import Code, Inline, Line
from deltaproto.report.plan_json import moments
from deltaproto.report.runbook.phrases import Phrases

_MOST = 6


class Entry(NamedTuple):
    """One plan, with what its table's log and the policy told."""

    planned: Planned
    activity: Activity | DeltaprotoError | None = None
    """None: nobody looked"""
    windows: tuple[Window, ...] | None = None
    """maintenance windows of the policy; None: it has none, or there is no policy"""

    @property
    def plan(self) -> Plan:
        """The plan itself."""
        return self.planned.plan

    @property
    def name(self) -> Code:
        """The table as its user named it."""
        return Code(self.plan.table)


class Book(NamedTuple):
    """Everything that a runbook tells. Times are seconds since the epoch."""

    entries: tuple[Entry, ...]
    unplanned: tuple[Unplanned, ...]
    arguments: tuple[str, ...]
    """plan files and folders, as they were given"""
    start: float
    """when the first step is meant to be carried out"""
    written: float
    policy: str | None = None
    """the policy's file"""

    @property
    def changing(self) -> tuple[Entry, ...]:
        """The plans that do something."""
        return tuple(entry for entry in self.entries if entry.plan.changes)

    @property
    def irreversible(self) -> bool:
        """Whether any step cannot be taken back."""
        return any(entry.plan.point_of_no_return for entry in self.entries)

    def times(self, plan: Plan) -> list[tuple[float | None, float | None]]:
        """As `moments`, from the planned start on."""
        return moments(plan.steps, self.start)

    def command(self, name: str, *words: str) -> str:
        """A command of deltaproto on the plans of this book, for a shell."""
        return shlex.join(["deltaproto", name, *self.arguments, *words])


def some(parts: Iterable[Inline], say: Phrases, most: int = _MOST) -> Line:
    """The parts with commas; of many the first ones and how many there are besides."""
    every = list(parts)
    found: list[Inline] = []
    for part in every[:most]:
        found += [", ", part] if found else [part]
    if len(every) > most:
        found.append(", " + say.text("and_more", count=len(every) - most))
    return tuple(found) if found else (say.text("none"),)


def codes(names: Iterable[str]) -> list[Inline]:
    """Names as code."""
    return [Code(name) for name in names]


def gone(before: Protocol, after: Protocol) -> list[str]:
    """Features that leave."""
    return sorted(before.supported - after.supported)


def known(feature: str) -> list[str]:
    """What is known to bring a feature back, without asking the session that writes."""
    return list(comes_back(feature, {}))
