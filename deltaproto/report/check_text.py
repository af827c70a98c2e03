"""A check as text for people.

Without rich: tens of thousands of tables pass through here, and only a few words are painted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO

from deltaproto.checking.check import Checked
from deltaproto.clients.matching import Verdict
from deltaproto.policy.finding import Finding, Severity
from deltaproto.report.check_words import Counts, suppressed_lines, verdict_rows
from deltaproto.report.interface import visible

_VERDICTS = {Verdict.OK: "32", Verdict.REFUSED: "31", Verdict.UNKNOWN: "33", Verdict.WRONG: "1;31"}
_SEVERITIES = {Severity.ERROR: "1;31", Severity.WARNING: "33", Severity.INFO: "36"}
_BOLD, _DIM = "1", "2"


class CheckText:
    """Prints one table after the other."""

    def __init__(self, file: IO[str], color: bool, show_suppressed: bool) -> None:
        self._file = file
        self._paints = color and file.isatty() and not os.environ.get("NO_COLOR")
        self._show_suppressed = show_suppressed
        self._counts = Counts()

    def add(self, checked: Checked) -> None:
        """One table: the verdict on each client, then the findings."""
        self._counts.add(checked)
        lines = [self._paint(_flat(checked.table), _BOLD)]
        if checked.error is not None:
            error = checked.error
            lines.append(f"  {self._paint(str(error.code), '1;31')}  {_flat(error.message)}")
            lines += [f"    {_flat(error.hint)}"] if error.hint else []
        elif not checked.complete:
            lines.append("  NOT COMPLETE: the answer may miss something, see the findings")
        rows = verdict_rows(checked)
        width = max((len(client) for client, _ in rows), default=0)
        for client, answers in rows:
            shown = ", ".join(
                f"{access} {self._paint(_shout(verdict), _VERDICTS[verdict])}"
                for access, verdict in answers
            )
            lines.append(f"  {_flat(client).ljust(width)}  {shown}")
        for finding in checked.findings:
            lines += self._finding(finding)
        if self._show_suppressed:
            lines += [
                f"  {self._paint('waived', _DIM)}  {_flat(line)}"
                for line in suppressed_lines(checked)
            ]
        self._file.write("\n".join(lines) + "\n\n")

    def close(self, notes: Iterable[str], *, summary: bool) -> None:
        """The summary, and what to know."""
        for note in notes:
            self._file.write(self._paint(f"note: {note}", _DIM) + "\n")
        if summary:
            self._file.write(self._paint(self._counts.line(), _BOLD) + "\n")

    def _finding(self, finding: Finding) -> list[str]:
        severity = self._paint(str(finding.severity).ljust(7), _SEVERITIES[finding.severity])
        evidence = f" [{finding.evidence}]" if finding.evidence else ""
        lines = [f"  {severity} {finding.rule}  {_flat(finding.message + evidence)}"]
        return [*lines, f"                 {_flat(finding.hint)}"] if finding.hint else lines

    def _paint(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._paints else text


def _shout(verdict: Verdict) -> str:
    return str(verdict) if verdict is Verdict.OK else str(verdict).upper()


def _flat(text: str) -> str:
    return visible(text.replace("\n", "\\n"))
