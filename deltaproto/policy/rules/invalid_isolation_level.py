"""The declared isolation level is not a level that tables can declare.

## What it does
Compares `delta.isolationLevel` with the two valid values: `Serializable` and
`WriteSerializable`.

## Why it breaks
Engines cannot set such a value, but other writers can store it. Delta Spark throws on the next
commit if the value is not an isolation level at all. Delta Spark accepts a stored
`SnapshotIsolation`, under which it does not compare added files: an UPDATE, DELETE or MERGE
silently misses rows that another transaction adds at the same time. delta-rs silently falls back to
Serializable.

## Who breaks
Writers.

## How to fix
`ALTER TABLE t SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')`, or UNSET it.

## How safe
Setting the level is a metadata change: it aborts concurrent writes.

## References
`DeltaConfigs.ISOLATION_LEVEL` in Delta Spark; the Databricks page on isolation levels.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.errors import quote_short
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.isolation import ISOLATION_PROPERTY, evaluate_isolation

RULE = Rule("DP113", "invalid-isolation-level", Severity.ERROR, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    declared = subject.state.metadata.property(ISOLATION_PROPERTY)
    if not evaluate_isolation(declared).valid:
        yield RULE.finding(
            subject.table,
            f"{ISOLATION_PROPERTY} is {quote_short(declared or '')}, not Serializable or "
            "WriteSerializable",
            "set it to Serializable, or unset it",
            evidence=f"{ISOLATION_PROPERTY}={declared}",
        )
