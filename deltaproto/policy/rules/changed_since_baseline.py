"""The table was replaced, or its isolation level changed, since the baseline.

## What it does
Compares the table's id and isolation levels with the baseline.

## Why it breaks
If a table is replaced, its id changes: streams, shares and caches that use the old id fail. A
different isolation level changes which concurrent writes conflict.

## Who breaks
Streams that read the table, and jobs that write concurrently.

## How to fix
If the change was intended, save a new baseline. If not, `deltaproto history` shows the commit.

## How safe
Checking is read-only.

## References
`deltaproto history TABLE`, `deltaproto conflicts TABLE`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.policy.rules.drifted import span
from deltaproto.protocol.isolation import ISOLATION_PROPERTY, IsolationLevels

RULE = Rule("DP223", "changed-since-baseline", Severity.WARNING, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    before, now = case.baseline, case.facts
    if before is None:
        return
    if before.id and now.id and before.id != now.id:
        yield RULE.finding(
            case.table,
            "the table was replaced: its id differs from the baseline",
            "if this was intended, save a new baseline, and restart the streams that read it",
            evidence=f"{before.id} then, {now.id} now",
        )
    levels = [
        IsolationLevels(each.configuration.get(ISOLATION_PROPERTY), each.isolation)
        for each in (before, now)
    ]
    if levels_differ := levels[0].differ(levels[1]):
        yield RULE.finding(
            case.table,
            f"the isolation level changed since version {before.version}",
            f"if intended, save a new baseline; otherwise see deltaproto history {case.shell_name}",
            evidence=f"{levels_differ[0]} to {levels_differ[1]}, {span(before, now)}",
        )
