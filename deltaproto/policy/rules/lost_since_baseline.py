"""The protocol lost a feature since the baseline.

## What it does
Compares the table with the same table in the baseline.

## Why it breaks
A feature that is gone no longer makes writers keep its promise.

## Who breaks
Processes that count on the feature. The table is open to more clients than before.

## How to fix
If it was meant, write a new baseline. If not, `deltaproto history` names the commit.

## How safe
Looking changes nothing.

## References
`deltaproto history TABLE`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.policy.rules.drifted import span

RULE = Rule("DP221", "lost-since-baseline", Severity.WARNING, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    before, now = case.baseline, case.facts
    if before is None:
        return
    for name in sorted(before.protocol.supported - now.protocol.supported):
        yield RULE.finding(
            case.table,
            f"{name} left the protocol since version {before.version}",
            f"if it was meant, save a new baseline; else see deltaproto history {case.word}",
            feature=name,
            evidence=span(before, now),
        )
