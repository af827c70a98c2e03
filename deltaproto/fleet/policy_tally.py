"""What a policy says of a fleet, in counts."""

from __future__ import annotations

import json
from collections import Counter

from deltaproto.checking.check import Checked
from deltaproto.policy.finding import Severity

_FIRST = 10
_NUMBERS = ("tables", "unreadable", "waived", "off")


class PolicyTally:
    """Counts over checked tables."""

    def __init__(self) -> None:
        self.tables = 0
        self.unreadable = 0
        """tables that could not be read, or not wholly"""
        self.waived = self.off = 0
        """findings that the policy waives, and findings of rules that it switches off"""
        self.verdicts: Counter[tuple[str, str, str]] = Counter()
        """by client, access and verdict"""
        self.rules: Counter[tuple[str, str]] = Counter()
        """by rule and severity"""
        self.first: list[tuple[str, str, str]] = []
        """table, rule and message of the first error of each rule"""

    def add(self, checked: Checked) -> None:
        """Count one table."""
        self.tables += not checked.of_policy
        self.unreadable += not checked.complete
        self.waived += len(checked.suppressed)
        self.off += checked.silenced
        for judged in checked.verdicts:
            verdict = judged.verdict
            self.verdicts[verdict.named, str(verdict.access), str(verdict.verdict)] += 1
        for finding in checked.findings:
            self.rules[finding.rule, str(finding.severity)] += 1
            if finding.severity is Severity.ERROR or checked.of_policy:
                self._first(checked.table, finding.rule, finding.message)

    def _first(self, table: str, rule: str, message: str) -> None:
        if len(self.first) < _FIRST and rule not in {each[1] for each in self.first}:
            self.first.append((table, rule, message))

    @property
    def severities(self) -> frozenset[Severity]:
        """Those of the findings."""
        return frozenset(Severity(severity) for _, severity in self.rules)

    def dumped(self) -> str:
        """The counts as text, for `merge` elsewhere."""
        counters = {
            name: [[*key, count] for key, count in getattr(self, name).items()]
            for name in ("verdicts", "rules")
        }
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return json.dumps({**numbers, **counters, "first": self.first})

    def merge(self, dumped: str) -> None:
        """Add the counts of another tally."""
        other = json.loads(dumped)
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + other[name])
        for client, access, verdict, count in other["verdicts"]:
            self.verdicts[client, access, verdict] += count
        for rule, severity, count in other["rules"]:
            self.rules[rule, severity] += count
        for each in other["first"]:
            self._first(*each)
