"""Counts for the summary of a check."""

from __future__ import annotations

from collections import Counter
from typing import Any

from deltaproto.clients.matching import Verdict
from deltaproto.policy.evaluate import TableCheck
from deltaproto.policy.finding import Severity, describe_hidden


def total(
    tables: int, unreadable: int, verdicts: Counter[Verdict], findings: Counter[Severity]
) -> str:
    """Return one line that summarizes all tables."""
    noun = "table" if tables == 1 else "tables"
    judged = ", ".join(f"{verdicts[v]} {v}" for v in reversed(Verdict) if verdicts[v])
    found = ", ".join(f"{findings[s]} {s}" for s in Severity)
    parts = [f"{tables} {noun}", *([f"{unreadable} unreadable"] if unreadable else [])]
    return f"{', '.join(parts)}; verdicts: {judged or 'none'}; findings: {found}"


class Counts:
    """The counts of the summary."""

    def __init__(self) -> None:
        self.tables = self.unreadable = 0
        self.waived = self.off = 0
        """findings that the policy waives, and findings of rules that it turns off"""
        self.known = self.fixed = 0
        """findings that are also in the saved check, and saved findings that are fixed"""
        self.verdicts: Counter[Verdict] = Counter()
        self.findings: Counter[Severity] = Counter()

    def add(self, checked: TableCheck) -> None:
        """Count one table."""
        self.tables += not checked.of_policy
        self.unreadable += checked.error is not None
        self.waived += len(checked.suppressed)
        self.off += checked.silenced
        self.verdicts.update(judged.verdict.verdict for judged in checked.verdicts)
        self.known += sum(finding.known for finding in checked.findings)
        self.fixed += checked.fixed
        new = (finding.severity for finding in checked.findings if not finding.known)
        self.findings.update(new)

    def line(self) -> str:
        """Return the summary as one line."""
        line = total(self.tables, self.unreadable, self.verdicts, self.findings)
        parts = (
            self.known and f"{self.known:,} known from the baseline",
            self.fixed and f"{self.fixed:,} fixed since",
            self.hidden(),
        )
        return "; ".join([line, *(part for part in parts if part)])

    def hidden(self) -> str:
        """Describe how many findings the policy hides; empty if zero."""
        return describe_hidden(self.waived, self.off)

    def turned_off(self) -> str:
        """Describe how many findings come from rules that the policy turns off; empty if zero."""
        return describe_hidden(0, self.off)

    def fields(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return {
            "tables": self.tables,
            "unreadable": self.unreadable,
            "verdicts": {str(each): self.verdicts[each] for each in Verdict},
            "findings": {str(each): self.findings[each] for each in Severity},
            "waived": self.waived,
            "off": self.off,
            "known": self.known,
            "fixed": self.fixed,
        }
