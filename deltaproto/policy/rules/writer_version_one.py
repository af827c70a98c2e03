"""The writer version is 1, which the Databricks documentation does not list.

## What it does
Reports tables at writer version 1. The Delta protocol defines it; the Databricks page on feature
compatibility states that minWriterVersion accepts integers from 2 to 7.

## Why it breaks
At writer version 1 the table supports no feature: appendOnly and column invariants are not
enforced, and tools that follow that page may reject the version.

## Who breaks
No one directly. Databricks does not document what its runtimes do with such a table.

## How to fix
Set delta.minWriterVersion = 2 if a client rejects the table: it adds appendOnly and invariants.

## How safe
Writer version 2 is the lowest that all documented clients support.

## References
docs.databricks.com/tables/features/feature-compatibility; PROTOCOL.md, "Writer Version
Requirements".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP119", "writer-version-one", Severity.INFO, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    if subject.protocol.min_writer_version != 1:
        return
    yield RULE.finding(
        subject.table,
        "writer version 1 is outside the range 2 to 7 that the Databricks page on feature "
        "compatibility gives for minWriterVersion",
        "set delta.minWriterVersion = 2 if a client rejects the table",
    )
