"""A table's verdicts in rows, for text and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from deltaproto.clients.matching import Verdict
from deltaproto.policy.document.merging import LISTS
from deltaproto.policy.evaluate import Checked
from deltaproto.policy.finding import Severity, hidden


def verdict_rows(checked: Checked) -> list[tuple[str, list[tuple[str, Verdict]]]]:
    """Each client, as it was declared, with its accesses and their verdicts."""
    rows: dict[str, list[tuple[str, Verdict]]] = {}
    for judged in checked.verdicts:
        label = f" ({judged.declared.label})" if judged.declared.label else ""
        entry = rows.setdefault(judged.verdict.named + label, [])
        entry.append((str(judged.verdict.access), judged.verdict.verdict))
    return list(rows.items())


def total(
    tables: int, unreadable: int, verdicts: Counter[Verdict], findings: Counter[Severity]
) -> str:
    """One line over all tables."""
    noun = "table" if tables == 1 else "tables"
    judged = ", ".join(f"{verdicts[v]} {v}" for v in reversed(Verdict) if verdicts[v])
    found = ", ".join(f"{findings[s]} {s}" for s in Severity)
    parts = [f"{tables} {noun}", *([f"{unreadable} unreadable"] if unreadable else [])]
    return f"{', '.join(parts)}; verdicts: {judged or 'none'}; findings: {found}"


def settings_line(checked: Checked) -> str:
    """Which table patterns of the policy decided which settings; empty where none did."""
    patterns: dict[str, Counter[str]] = {}
    values = {}
    for each in checked.decisions:
        if each.pattern is not None:
            patterns.setdefault(each.pattern, Counter())[each.setting] += 1
            values[each.pattern, each.setting] = each.value
    return "; ".join(
        f'"{pattern}": '
        + ", ".join(
            f"{name} ({count})" if name in LISTS else f"{name} {values[pattern, name]}"
            for name, count in named.items()
        )
        for pattern, named in patterns.items()
    )


class Counts:
    """What the summary counts."""

    def __init__(self) -> None:
        self.tables = self.unreadable = 0
        self.waived = self.off = 0
        """findings that the policy waives, and findings of rules that it switches off"""
        self.known = self.fixed = 0
        """findings that the saved check has, and those of it that are gone"""
        self.verdicts: Counter[Verdict] = Counter()
        self.findings: Counter[Severity] = Counter()

    def add(self, checked: Checked) -> None:
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
        """The summary."""
        line = total(self.tables, self.unreadable, self.verdicts, self.findings)
        parts = (
            self.known and f"{self.known:,} known from the baseline",
            self.fixed and f"{self.fixed:,} fixed since",
            self.hidden(),
        )
        return "; ".join([line, *(part for part in parts if part)])

    def hidden(self) -> str:
        """How many findings the policy keeps out of the list; empty for none."""
        return hidden(self.waived, self.off)

    def turned_off(self) -> str:
        """How many findings come from rules that the policy turns off; empty for none."""
        return hidden(0, self.off)

    def fields(self) -> dict[str, Any]:
        """The counts as JSON has them."""
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


def suppressed_lines(checked: Checked) -> Iterable[str]:
    """Each waived finding with its reason and last day."""
    for each in checked.suppressed:
        until = f", until {each.expires}" if each.expires else ""
        finding = each.finding
        word = "waived" if each.approver is None else f"approved by {each.approver}"
        ticket = f", {each.ticket}" if each.ticket else ""
        yield f"{finding.rule} {finding.message} ({word}: {each.reason}{ticket}{until})"
