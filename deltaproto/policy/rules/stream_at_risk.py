"""A declared stream reads a table whose schema changes break streams.

## What it does
Finds clients that read a table with column mapping as a stream.

## Why it breaks
With column mapping, columns can be renamed and dropped. A streaming read without
schemaTrackingLocation then fails, even after a restart: only a new checkpoint helps. Dropping the
feature breaks it as well.

## Who breaks
The named stream, at the next such change.

## How to fix
Set schemaTrackingLocation on the stream before the change. It then stops at changes and continues
after a restart. Renames and drops also require the option
(`spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop`).

## How safe
The location is an option of the stream; the table does not change.

## References
Measured with Delta Spark 4.4; delta.io, "Streaming reads and column mapping".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.model import Access, Verdict
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP210", "stream-at-risk", Severity.WARNING, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    if "columnMapping" not in case.facts.protocol.supported:
        return
    if case.facts.needs.uses("columnMapping") is False:
        return
    streams = {
        judged.verdict.named: judged.declared.label
        for judged in case.verdicts
        if judged.verdict.access is Access.STREAM and judged.verdict.verdict is not Verdict.REFUSED
    }
    for client, label in streams.items():
        yield RULE.finding(
            case.table,
            f"{client}{f' ({label})' if label else ''} reads it as a stream, and a renamed or "
            "dropped column breaks it permanently",
            "set schemaTrackingLocation on the stream",
            client=client,
            feature="columnMapping",
        )
