"""The results of `certify`: a document and JSON."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from deltaproto.certification.entry import Discrepancy
from deltaproto.certification.fixtures.case import ReferenceTable
from deltaproto.clients.measurement import (
    MeasuredOutcome,
    Measurement,
    MeasurementCell,
    ResultColumn,
)
from deltaproto.counts import counted
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Code,
    CodeBlock,
    Document,
    FactList,
    MatrixBlock,
    MatrixCell,
    Paragraph,
    Section,
    Strong,
    TableBlock,
    Tone,
    listed,
)
from deltaproto.render.document.render import write_document
from deltaproto.render.interface import NOTICES, PageFormat, json_text

_SYMBOLS: Mapping[MeasuredOutcome, tuple[str, Tone | None]] = {
    MeasuredOutcome.RIGHT: ("+", Tone.GOOD),
    MeasuredOutcome.REFUSED: ("-", None),
    MeasuredOutcome.TIMED_OUT: ("t", Tone.WARNING),
    MeasuredOutcome.CRASHED: ("!", Tone.WARNING),
    MeasuredOutcome.WRONG: ("X", Tone.DANGER),
}
MEANINGS: Mapping[MeasuredOutcome, str] = {
    MeasuredOutcome.RIGHT: "the result is right, or the table is as expected",
    MeasuredOutcome.REFUSED: "it failed with an error and changed nothing",
    MeasuredOutcome.TIMED_OUT: "no result within the time limit",
    MeasuredOutcome.CRASHED: "its process died or panicked, or its output never ended",
    MeasuredOutcome.WRONG: "it reported success, but the result is wrong",
    MeasuredOutcome.NOT_OFFERED: "the client has no such operation",
}
_FAILED = (MeasuredOutcome.REFUSED, MeasuredOutcome.CRASHED, MeasuredOutcome.TIMED_OUT)
_FINE = (MeasuredOutcome.RIGHT, MeasuredOutcome.NOT_OFFERED)


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


def write_certified(
    certified: Certified, format_: PageFormat, file: IO[str], *, color: bool
) -> None:
    """Write the report on one client."""
    if format_ in (PageFormat.JSON, PageFormat.JSONL):
        line = format_ is PageFormat.JSONL
        file.write(json_text("certify", _fields(certified), line=line))
        return
    document = certification_document(certified, brief=format_ is PageFormat.TEXT)
    write_document(document, format_, file, color=color)


def count_outcomes(cells: Iterable[MeasurementCell]) -> dict[MeasuredOutcome, int]:
    """Return the number of cells per outcome, the best outcome first."""
    found = Counter(cell.outcome for cell in cells)
    return {outcome: found[outcome] for outcome in MeasuredOutcome if found[outcome]}


def outcomes_text(cells: Iterable[MeasurementCell]) -> str:
    """Return the number of cells per outcome as text."""
    return ", ".join(f"{number:,} {outcome}" for outcome, number in count_outcomes(cells).items())


def certification_document(certified: Certified, *, brief: bool) -> Document:
    """Return the report as a document.

    Args:
        brief: only tables with problems, and no reasons for refusals.
    """
    cells = certified.measured.cells
    blocks: list[Block] = [Callout(Tone.WARNING, (notice,)) for notice in NOTICES]
    blocks += _summary(certified, brief=brief)
    if len(cells) == 1:
        blocks.append(_single(certified, cells[0]))
    else:
        blocks.append(Section("reads", "Reading", list(_grid(cells, reads=True, brief=brief))))
        blocks.append(Section("writes", "Writing", list(_grid(cells, reads=False, brief=brief))))
    if certified.wrong:
        blocks.append(Section("wrong", "Wrong results", list(_wrong(certified))))
    if brief:
        if certified.differences:
            blocks.append(Paragraph((_difference_count(certified.differences),)))
    else:
        blocks += [
            Section("reasons", "Error messages", list(_reasons(cells))),
            Section("catalog", "Differences from the catalog", list(_differences(certified))),
        ]
    blocks.append(Section("how", "Measurement", list(_how(certified.measured, brief=brief))))
    return Document(f"{certified.measured.name}, measured", (outcomes_text(cells),), blocks)


def _summary(certified: Certified, *, brief: bool) -> Iterator[Block]:
    if certified.wrong:
        tables = len({cell.case for cell in certified.wrong})
        wrong = counted(len(certified.wrong), "operation")
        text = f"{wrong} on {counted(tables, 'table')} went wrong silently."
        yield Callout(Tone.DANGER, (text,))
    else:
        yield Callout(Tone.GOOD, ("Nothing went wrong silently.",))
    if brief:
        return
    counts = count_outcomes(certified.measured.cells)
    yield TableBlock(
        ("Outcome", "Cells", "Meaning"),
        [
            ((str(outcome),), (f"{number:,}",), (MEANINGS[outcome],))
            for outcome, number in counts.items()
        ],
        tones=[_tone(outcome) for outcome in counts],
    )


def _single(certified: Certified, cell: MeasurementCell) -> FactList:
    case = certified.cases[cell.case]
    facts = {
        "Table": f"{case.name}: {case.about}",
        "Operation": str(cell.operation),
        "Outcome": str(cell.outcome),
        "Why": cell.why,
    }
    return FactList([(name, (text,)) for name, text in facts.items() if text])


def _grid(cells: Sequence[MeasurementCell], *, reads: bool, brief: bool) -> Iterator[Block]:
    offered = {c.operation for c in cells if c.outcome is not MeasuredOutcome.NOT_OFFERED}
    operations = [each for each in ResultColumn if each in offered and each.reads is reads]
    if not operations:
        verb = "read" if reads else "write"
        yield Paragraph((f"The client cannot {verb}, or was not measured doing it.",))
        return
    rows: list[tuple[str, Sequence[MatrixCell | None]]] = []
    fine = 0
    for name, found in _by_case(cells).items():
        measured = [found.get(operation) for operation in operations]
        if brief and all(cell.outcome in _FINE for cell in found.values()):
            fine += any(measured)
        elif any(measured):
            rows.append((name, list(map(_cell, measured))))
    if rows:
        yield MatrixBlock("Table", [str(each) for each in operations], rows)
    if fine:
        yield Paragraph((f"Every result was right on {counted(fine, 'other table')}.",))


def _cell(cell: MeasurementCell | None) -> MatrixCell | None:
    if cell is None or cell.outcome is MeasuredOutcome.NOT_OFFERED:
        return None
    return MatrixCell(str(cell.outcome), *_SYMBOLS[cell.outcome])


def _tone(outcome: MeasuredOutcome) -> Tone | None:
    return _SYMBOLS.get(outcome, ("", None))[1]


def _by_case(cells: Iterable[MeasurementCell]) -> dict[str, dict[ResultColumn, MeasurementCell]]:
    found: dict[str, dict[ResultColumn, MeasurementCell]] = {}
    for cell in cells:
        found.setdefault(cell.case, {})[cell.operation] = cell
    return found


def _wrong(certified: Certified) -> Iterator[Block]:
    for name, found in _by_case(certified.wrong).items():
        results = [(Strong(str(cell.operation)), f": {cell.why}") for cell in found.values()]
        commands = "\n".join(certified.command(cell) for cell in found.values())
        blocks: list[Block] = [Paragraph((certified.cases[name].about,)), Bullets(results)]
        blocks.append(CodeBlock(commands, "shell", "To reproduce"))
        yield Section(f"wrong-{name}", name, blocks)


def _reasons(cells: Iterable[MeasurementCell]) -> Iterator[Block]:
    found: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.outcome in _FAILED:
            found.setdefault(cell.why or "no message", {})[cell.case] = None
    if not found:
        yield Paragraph(("Nothing was refused.",))
        return
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    yield TableBlock(
        ("Message", "Tables"),
        [((why,), listed(list(names), 6, " and {} more")) for why, names in ordered],
    )


def _difference_count(differences: Sequence[Discrepancy]) -> str:
    loose = sum(each.looser for each in differences)
    return (
        f"The catalog differs on {counted(len(differences), 'table')} and promises too much on "
        f"{loose:,} of them: see --format html."
    )


def _differences(certified: Certified) -> Iterator[Block]:
    if not certified.differences:
        yield Paragraph(("None: the catalog agrees with the measurement.",))
        return
    yield TableBlock(
        ("Table", "Access", "Catalog", "Measured", "Why"),
        [
            ((Code(d.case),), (str(d.access),), (str(d.verdict),), (str(d.outcome),), (d.why,))
            for d in certified.differences
        ],
        tones=[Tone.DANGER if d.looser else None for d in certified.differences],
    )


def _how(measured: Measurement, *, brief: bool) -> Iterator[Block]:
    facts = {
        "Client": measured.name,
        "Reported version": measured.release or "none",
        "Kit": f"version {measured.kit_version}, {measured.kit_digest}",
        "Measured": f"{measured.date}, by {measured.tool}, in {measured.seconds:,.0f} s",
        "Processors": str(measured.processors),
        "Python": measured.python,
        "Packages": "" if brief else ", ".join(measured.packages),
    }
    yield FactList([(name, (text,)) for name, text in facts.items() if text])
    if not brief:
        yield Paragraph(
            (
                "Spark created each table with known rows, and the client's results are compared "
                "with them. The client writes to a copy, which Spark and deltaproto's own log "
                "reader verify afterwards.",
            )
        )


def _fields(certified: Certified) -> dict[str, Any]:
    """Return the JSON payload of `certify`."""
    measured = certified.measured
    return {
        "client": measured.client,
        "path": measured.path,
        "version": measured.version,
        "release": measured.release or None,
        "kit": {"version": measured.kit_version, "digest": measured.kit_digest},
        "measured_on": measured.date,
        "python": measured.python or None,
        "packages": list(measured.packages),
        "processors": measured.processors,
        "seconds": measured.seconds,
        "counts": {
            str(outcome): number for outcome, number in count_outcomes(measured.cells).items()
        },
        "cells": [
            {
                "table": cell.case,
                "feature": certified.cases[cell.case].feature,
                "state": str(certified.cases[cell.case].state),
                "operation": str(cell.operation),
                "access": str(cell.operation.access),
                "outcome": str(cell.outcome),
                "why": cell.why or None,
                "reproduce": certified.command(cell)
                if cell.outcome is MeasuredOutcome.WRONG
                else None,
            }
            for cell in measured.cells
        ],
        "differences": [
            {
                "table": each.case,
                "access": str(each.access),
                "catalogue": str(each.verdict),
                "measured": str(each.outcome),
                "why": each.why or None,
                "looser": each.looser,
            }
            for each in certified.differences
        ],
    }
