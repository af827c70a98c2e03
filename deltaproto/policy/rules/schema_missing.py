"""The table's metadata has no usable schema.

## What it does
Reports a metaData action whose `schemaString` is absent or is not a JSON struct.

## Why it breaks
The features that the schema uses are unknown, and most clients cannot open the table.

## Who breaks
delta-rs and the Delta Kernel refuse the table; Delta Spark opens it with an empty schema at best.

## How to fix
Find the commit that stored it, and the client that wrote it.

## How safe
Checking is read-only.

## References
PROTOCOL.md, "Change Metadata": schemaString is required.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.table_state import ReaderName

RULE = Rule("DP115", "schema-missing", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    schema = subject.state.metadata.schema
    if subject.state.reader is ReaderName.SPARK:
        return
    if schema is not None and not schema.get("fields"):
        yield RULE.finding(
            subject.table,
            "the schema has no columns, so the table cannot be read yet",
            "add columns; the first write by most engines does this",
        )
    if subject.state.metadata.traits is None:
        yield RULE.finding(
            subject.table,
            "the metadata has no usable schema, so the features that the schema uses are unknown",
            "find the commit that stored it and the client that wrote it",
        )
