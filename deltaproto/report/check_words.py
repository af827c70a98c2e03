"""A table's verdicts in rows, for text and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from deltaproto.checking.check import Checked
from deltaproto.clients.matching import Verdict
from deltaproto.policy.finding import Severity


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


class Counts:
    """What the summary counts."""

    def __init__(self) -> None:
        self.tables = self.unreadable = 0
        self.verdicts: Counter[Verdict] = Counter()
        self.findings: Counter[Severity] = Counter()

    def add(self, checked: Checked) -> None:
        """Count one table."""
        self.tables += 1
        self.unreadable += checked.error is not None
        self.verdicts.update(judged.verdict.verdict for judged in checked.verdicts)
        self.findings.update(finding.severity for finding in checked.findings)

    def line(self) -> str:
        """The summary."""
        return total(self.tables, self.unreadable, self.verdicts, self.findings)


def suppressed_lines(checked: Checked) -> Iterable[str]:
    """Each waived finding with its reason and last day."""
    for each in checked.suppressed:
        until = f", until {each.expires}" if each.expires else ""
        finding = each.finding
        yield f"{finding.rule} {finding.message} (waived: {each.reason}{until})"
