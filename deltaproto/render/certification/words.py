"""How outcomes are said, and the command that shows one of them again."""

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
    """All that a report tells of."""

    measured: Measurement
    cases: Mapping[str, ReferenceTable]
    arguments: tuple[str, ...]
    """how the client was named on the command line, for commands that ask it again"""
    differences: tuple[Discrepancy, ...]
    """where the catalogue says something else"""

    @property
    def wrong(self) -> tuple[MeasurementCell, ...]:
        return tuple(c for c in self.measured.cells if c.outcome is MeasuredOutcome.WRONG)

    def command(self, cell: MeasurementCell) -> str:
        """One command that asks for this cell alone."""
        words = ["deltaproto", "certify", *self.arguments]
        return shlex.join([*words, "--only", cell.case, "--operation", str(cell.operation)])


def counts(cells: Iterable[MeasurementCell]) -> dict[MeasuredOutcome, int]:
    """How many of each, the best first."""
    found = Counter(cell.outcome for cell in cells)
    return {outcome: found[outcome] for outcome in MeasuredOutcome if found[outcome]}


def told(cells: Iterable[MeasurementCell]) -> str:
    """The counts in words."""
    return ", ".join(f"{number:,} {outcome}" for outcome, number in counts(cells).items())


def by_case(cells: Iterable[MeasurementCell]) -> dict[str, dict[ResultColumn, MeasurementCell]]:
    """Each table's cells."""
    found: dict[str, dict[ResultColumn, MeasurementCell]] = {}
    for cell in cells:
        found.setdefault(cell.case, {})[cell.operation] = cell
    return found


def asked(cells: Iterable[MeasurementCell], *, reads: bool) -> list[ResultColumn]:
    """The operations that the client offers, reads or writes."""
    offered = {c.operation for c in cells if c.outcome is not MeasuredOutcome.NOT_OFFERED}
    return [each for each in ResultColumn if each in offered and each.reads is reads]


def surroundings(measured: Measurement) -> list[tuple[str, str]]:
    """With what and when it was measured."""
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
