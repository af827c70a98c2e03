"""Phrases for outcomes, and the commands that reproduce one cell."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from deltaproto.certification.entry import Discrepancy
from deltaproto.certification.fixtures.case import ReferenceTable
from deltaproto.clients.measurement import (
    MeasuredOutcome,
    Measurement,
    MeasurementCell,
    ResultColumn,
)
from deltaproto.render.document import Tone

TONES: Mapping[MeasuredOutcome, Tone | None] = {
    MeasuredOutcome.RIGHT: Tone.GOOD,
    MeasuredOutcome.REFUSED: None,
    MeasuredOutcome.TIMED_OUT: Tone.WARNING,
    MeasuredOutcome.CRASHED: Tone.WARNING,
    MeasuredOutcome.WRONG: Tone.DANGER,
    MeasuredOutcome.NOT_OFFERED: None,
}
MEANINGS: Mapping[MeasuredOutcome, str] = {
    MeasuredOutcome.RIGHT: "the answer is right, or the table is as it must be",
    MeasuredOutcome.REFUSED: "it failed with an error, and changed nothing",
    MeasuredOutcome.TIMED_OUT: "it did not answer in time",
    MeasuredOutcome.CRASHED: "its process died or panicked, or printed without end",
    MeasuredOutcome.WRONG: "it said that all went well, and it did not",
    MeasuredOutcome.NOT_OFFERED: "there is no such operation",
}


class Certified(NamedTuple):
    """The contents of a certification report."""

    measured: Measurement
    cases: Mapping[str, ReferenceTable]
    arguments: tuple[str, ...]
    """command-line arguments that name the client, for commands that measure it again"""
    differences: tuple[Discrepancy, ...]
    """cells that differ from the catalog"""

    @property
    def wrong(self) -> tuple[MeasurementCell, ...]:
        return tuple(c for c in self.measured.cells if c.outcome is MeasuredOutcome.WRONG)

    def command(self, cell: MeasurementCell) -> str:
        """Return the command that measures only this cell."""
        words = ["deltaproto", "certify", *self.arguments]
        return shlex.join([*words, "--only", cell.case, "--operation", str(cell.operation)])


def counts(cells: Iterable[MeasurementCell]) -> dict[MeasuredOutcome, int]:
    """Return the number of cells per outcome, the best outcome first."""
    found = Counter(cell.outcome for cell in cells)
    return {outcome: found[outcome] for outcome in MeasuredOutcome if found[outcome]}


def told(cells: Iterable[MeasurementCell]) -> str:
    """Return the counts as text."""
    return ", ".join(f"{number:,} {outcome}" for outcome, number in counts(cells).items())


def by_case(cells: Iterable[MeasurementCell]) -> dict[str, dict[ResultColumn, MeasurementCell]]:
    """Group the cells by reference table."""
    found: dict[str, dict[ResultColumn, MeasurementCell]] = {}
    for cell in cells:
        found.setdefault(cell.case, {})[cell.operation] = cell
    return found


def asked(cells: Iterable[MeasurementCell], *, reads: bool) -> list[ResultColumn]:
    """Return the read or write operations that the client supports."""
    offered = {c.operation for c in cells if c.outcome is not MeasuredOutcome.NOT_OFFERED}
    return [each for each in ResultColumn if each in offered and each.reads is reads]


def surroundings(measured: Measurement) -> list[tuple[str, str]]:
    """Return the environment and the date of the measurement as (label, text)."""
    facts = [
        ("client", measured.name),
        ("it calls itself", measured.release or "it does not say"),
        ("kit", f"version {measured.kit_version}, {measured.kit_digest}"),
        ("measured", f"{measured.date}, by {measured.tool}, in {measured.seconds:,.0f} s"),
        ("processors", str(measured.processors)),
    ]
    if measured.python:
        facts.append(("Python", measured.python))
    if measured.packages:
        facts.append(("packages", ", ".join(measured.packages)))
    return facts
