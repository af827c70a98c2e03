"""The protocol lost a feature since the baseline, or no longer uses it.

## What it does
Compares the table with its state in the baseline: the features of the protocol, and those in use.

## Why it breaks
Writers no longer have to enforce the guarantee of a removed or disabled feature: a table without
appendOnly accepts UPDATE and DELETE, and one without the change data feed records no changes.

## Who breaks
Processes that rely on the feature. More clients than before can use the table.

## How to fix
If the change was intended, write a new baseline. If not, `deltaproto history` shows the commit.

## How safe
Checking is read-only.

## References
`deltaproto history TABLE`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.policy.rules.drifted import span, switched_on

RULE = Rule("DP221", "lost-since-baseline", Severity.WARNING, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    before, now = case.baseline, case.facts
    if before is None:
        return
    removed = before.protocol.supported - now.protocol.supported
    both = before.protocol.supported & now.protocol.supported
    unused = both & before.needs.used & now.needs.unused
    for names, what in (
        (removed, "was removed from the protocol"),
        (unused, "is no longer in use"),
        ((both & switched_on(now, before)) - now.needs.used - unused, "was disabled"),
    ):
        for name in sorted(names):
            yield RULE.finding(
                case.table,
                f"{name} {what} since version {before.version}",
                f"if intended, save a new baseline; otherwise see deltaproto history "
                f"{case.shell_name}",
                feature=name,
                evidence=span(before, now),
            )
