"""A feature that the protocol already supported has come into use since the baseline.

## What it does
Compares the features in use with those in the baseline, if the protocol already supported them.
If it is unknown whether files had used a feature, the rule compares the table property.

## Why it breaks
A legacy protocol supports unused features such as appendOnly. Enabling one does not change the
protocol, but it blocks operations that worked before: appendOnly blocks UPDATE, DELETE and MERGE.
Some clients accept deletionVectors only as long as no file has one.

## Who breaks
Jobs that do what the feature forbids, and clients that support it only partly.

## How to fix
If the change was intended, save a new baseline. If not, `deltaproto history` shows the commit.

## How safe
Checking is read-only. Unsetting the property requires no protocol change.

## References
`deltaproto history TABLE`, `deltaproto features NAME`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.policy.rules.drifted import span, switched_on

RULE = Rule("DP224", "enabled-since-baseline", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    before, now = case.baseline, case.facts
    if before is None:
        return
    supported = before.protocol.supported & now.protocol.supported
    came = supported & now.needs.used & before.needs.unused
    for name in sorted(came | (supported & switched_on(before, now)) - before.needs.used):
        change = "has come into use" if name in came else "was enabled"
        yield RULE.finding(
            case.table,
            f"{name} {change} since version {before.version}",
            f"if intended, save a new baseline; otherwise see deltaproto history {case.shell_name}",
            feature=name,
            evidence=span(before, now),
        )
