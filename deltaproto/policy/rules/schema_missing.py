"""The table's metadata is incomplete, most often without a usable schema.

## What it does
Reports a metaData action whose `schemaString` is absent or is not a JSON struct, or a commit whose
metaData has no id, format, partition columns or configuration, or one of a wrong type.

## Why it breaks
Without a schema, the features that it uses are unknown. Most clients cannot open such a table.

## Who breaks
delta-rs and the Delta Kernel refuse the table. Delta Spark refuses every statement if it cannot
parse the schema, if there is no id, no configuration or no partition columns, or if `createdTime`
is not a whole number. Without the format's provider or options, as in `"format":{}`, it can change
properties, but neither read nor write.

## How to fix
Find the commit that stored it, and the client that wrote it.

## How safe
Checking is read-only.

## References
PROTOCOL.md, "Change Metadata": all of these are required.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.table_state import NoteKind, ReaderName

RULE = Rule("DP115", "schema-missing", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for note in subject.state.notes:
        if note.kind in (NoteKind.METADATA_INCOMPLETE, NoteKind.METADATA_UNREADABLE):
            yield RULE.finding(
                subject.table,
                note.message,
                "find the client that wrote the commit, and let it store the metadata again",
            )
    schema = subject.state.metadata.schema
    if subject.state.reader is ReaderName.SPARK:
        return
    if schema is not None and not schema.get("fields"):
        yield RULE.finding(
            subject.table,
            "the schema has no columns, so the table cannot be read yet",
            "add columns; the first write by most engines does this",
        )
    if subject.state.metadata.traits is None or schema is None:
        yield RULE.finding(
            subject.table,
            "the metadata has no usable schema, so the features that the schema uses are unknown",
            "find the commit that stored it and the client that wrote it",
        )
