"""The protocol breaks a rule of the spec.

## What it does
Checks the version pair and the two feature lists as stored in the log: reader version 1 to 3,
writer version 1 to 7, reader 3 only with writer 7, each list present exactly when its version
requires it, and every reader-writer feature also listed for readers.

## Why it breaks
Every client reads the protocol first. Clients repair, ignore or refuse an invalid one in different
ways, so the same table may be readable in one client and not in another.

## Who breaks
delta-rs and the Delta Kernel refuse to open the table. Delta Spark refuses some violations and
silently repairs others with its next protocol change.

## How to fix
Find the commit that stored it with `deltaproto history`, and upgrade or repair the client that
wrote it. A commit with a valid protocol that supports the same features repairs the table:
with Delta Spark, adding any feature rewrites the lists.

## How safe
The repair is a protocol change: it conflicts with concurrent writes.

## References
PROTOCOL.md, "Protocol Evolution" and "Table Features"; Protocol in Delta Spark's actions.scala.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.violations import ViolationKind

RULE = Rule("DP101", "invalid-protocol", Severity.ERROR, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for violation in subject.violations:
        if violation.breach is not ViolationKind.NOT_IN_WRITER_LIST:
            yield RULE.finding(
                subject.table,
                violation.message,
                "find the commit that stored it and the client that wrote it",
                feature=violation.feature,
            )
