"""A feature is in readerFeatures but not in writerFeatures.

## What it does
Compares the two lists. A client that writes a table must also read it, so every reader feature
must be in both.

## Why it breaks
A writer that checks only `writerFeatures` assumes that it supports the table, and writes without
enforcing the feature's guarantees.

## Who breaks
Delta Kernel and delta-rs refuse to open the table. Writers that check only their own list may
damage it.

## How to fix
Add the feature again with a client that writes both lists, for example
`ALTER TABLE t SET TBLPROPERTIES ('delta.feature.<name>' = 'supported')` in Delta Spark.

## How safe
The repair is a protocol change: it conflicts with concurrent writes.

## References
PROTOCOL.md, "Protocol Evolution": reader features must be listed for writers too.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.violations import ViolationKind

RULE = Rule("DP102", "reader-feature-unlisted", Severity.ERROR, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for violation in subject.violations:
        if violation.breach is ViolationKind.NOT_IN_WRITER_LIST:
            yield RULE.finding(
                subject.table,
                violation.message,
                "add the feature again with a client that writes both lists",
                feature=violation.feature,
            )
