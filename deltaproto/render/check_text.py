"""A check as text for people.

Without rich: tens of thousands of tables pass through here, and only a few words are painted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from deltaproto.clients.matching import Verdict
from deltaproto.clients.usability import Usability
from deltaproto.policy.evaluate import Checked
from deltaproto.policy.finding import Finding
from deltaproto.render.check_words import Counts, settings_line, suppressed_lines, verdict_rows
from deltaproto.render.interface import NOTICES, inert_lines
from deltaproto.render.terminal import (
    BOLD,
    DIM,
    GREEN,
    LOUD,
    RED,
    SEVERITIES,
    YELLOW,
    Painter,
    single_line,
)
from deltaproto.render.usability import rows

_VERDICTS = {
    Verdict.OK: GREEN,
    Verdict.REFUSED: RED,
    Verdict.UNKNOWN: YELLOW,
    Verdict.WRONG: LOUD,
}


class CheckText:
    """Prints one table after the other."""

    def __init__(
        self, file: IO[str], color: bool, show_suppressed: bool, every_version: bool = False
    ) -> None:
        self._file = file
        self._paint = Painter(file, color=color).paint
        self._show_suppressed = show_suppressed
        self._every_version = every_version
        self._counts = Counts()

    def add(self, checked: Checked) -> None:
        """One table: the verdict on each client, then the findings."""
        self._counts.add(checked)
        lines = [self._paint(checked.table, BOLD)]
        if checked.error is not None:
            error = checked.error
            lines.append(f"  {self._paint(str(error.code), LOUD)}  {single_line(error.message)}")
            lines += [f"    {single_line(error.hint)}"] if error.hint else []
        elif not checked.complete:
            lines.append("  NOT COMPLETE: the answer may miss something, see the findings")
        rows = verdict_rows(checked)
        width = max((len(client) for client, _ in rows), default=0)
        for client, answers in rows:
            shown = ", ".join(
                f"{access} {self._paint(_shout(verdict), _VERDICTS[verdict])}"
                for access, verdict in answers
            )
            lines.append(f"  {single_line(client).ljust(width)}  {shown}")
        if checked.usability:
            lines += self._usability(checked.usability)
        if settings := settings_line(checked):
            lines.append(f"  {self._paint('policy', DIM)}  {single_line(settings)}")
        for finding in checked.findings:
            lines += self._finding(finding)
        if self._show_suppressed:
            lines += [
                f"  {self._paint('waived', DIM)}  {single_line(line)}"
                for line in suppressed_lines(checked)
            ]
        self._file.write(inert_lines("\n".join(lines)) + "\n\n")

    def close(self, notes: Iterable[str], *, summary: bool) -> None:
        """The summary, and what to know."""
        for notice in NOTICES:
            self._file.write(self._paint(f"warning: {notice}", YELLOW) + "\n")
        for note in notes:
            self._file.write(self._paint(f"note: {note}", DIM) + "\n")
        if summary:
            self._file.write(self._paint(self._counts.line(), BOLD) + "\n")

    def _usability(self, usability: tuple[Usability, ...]) -> list[str]:
        headings, found = rows(usability, every_version=self._every_version)
        table = [headings, *([single_line(cell) for cell in row] for row in found)]
        widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
        lines = [
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in table
        ]
        return [self._paint(lines[0].rstrip(), DIM), *(line.rstrip() for line in lines[1:])]

    def _finding(self, finding: Finding) -> list[str]:
        color = DIM if finding.known else SEVERITIES[finding.severity]
        severity = self._paint(str(finding.severity).ljust(7), color)
        evidence = f" [{finding.evidence}]" if finding.evidence else ""
        known = "known: " if finding.known else ""
        lines = [f"  {severity} {finding.rule}  {known}{single_line(finding.message + evidence)}"]
        return [*lines, f"                 {single_line(finding.hint)}"] if finding.hint else lines


def _shout(verdict: Verdict) -> str:
    return str(verdict) if verdict is Verdict.OK else str(verdict).upper()
