"""The table's metadata has no usable schema.

## What it does
Reports a metaData action whose `schemaString` is absent or is not a JSON struct.

## Why it breaks
Which features the schema uses cannot be told, and most clients cannot open the table.

## Who breaks
delta-rs and the Delta Kernel refuse the table; Delta Spark opens it with an empty schema at best.

## How to fix
Find the commit that stored it, and the client that wrote it.

## How safe
Nothing is changed by looking.

## References
PROTOCOL.md, "Change Metadata": schemaString is required.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.protocol.table_state import ReaderName

RULE = Rule("DP115", "schema-missing", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    schema = subject.state.metadata.schema
    if subject.state.reader is ReaderName.SPARK:
        return
    if schema is not None and not schema.get("fields"):
        yield RULE.finding(
            subject.table,
            "the schema has no columns, and such a table can only be written",
            "add columns; a first write by most engines does",
        )
    if subject.state.metadata.traits is None:
        yield RULE.finding(
            subject.table,
            "the metadata holds no usable schema, so what the schema uses cannot be told",
            "find the commit that stored it and the client that wrote it",
        )
