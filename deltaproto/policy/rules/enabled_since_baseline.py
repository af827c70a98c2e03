"""A feature that the protocol held already is in use since the baseline.

## What it does
Compares the features in use with those in the baseline, where the protocol supported them then.

## Why it breaks
A legacy protocol supports features that nothing uses, such as appendOnly. Switching one on changes
no protocol, and yet refuses what was possible before: appendOnly refuses UPDATE, DELETE and MERGE.

## Who breaks
Jobs that do what the feature forbids, and clients that support it in part.

## How to fix
If it was meant, save a new baseline. If not, `deltaproto history` names the commit.

## How safe
Looking changes nothing. Unsetting the property needs no protocol change.

## References
`deltaproto history TABLE`, `deltaproto features NAME`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.policy.rules.drifted import span

RULE = Rule("DP224", "enabled-since-baseline", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    before, now = case.baseline, case.facts
    if before is None:
        return
    supported = before.protocol.supported & now.protocol.supported
    for name in sorted(supported & now.needs.used & before.needs.unused):
        yield RULE.finding(
            case.table,
            f"{name} is in use since version {before.version}",
            f"if it was meant, save a new baseline; else see deltaproto history {case.word}",
            feature=name,
            evidence=span(before, now),
        )
