"""The columns of the schema contradict each other or the partitioning.

## What it does
Reports columns of one struct whose names differ only in case, partition columns that the schema
does not have, and, while column mapping is on, columns without an id or a physical name.

## Why it breaks
Delta compares names without regard to case, so that two such columns are the same one. A partition
column without a place in the schema has no type. Each client makes something else of it.

## Who breaks
deltalake and the Rust kernel cannot open such a table; Delta Spark calls the columns ambiguous.
`deltaproto check` says what was measured.

## How to fix
Find the commit that wrote the schema, and restore the version before it.

## How safe
RESTORE makes a new commit; later changes to the data are undone.

## References
PROTOCOL.md, "Schema Serialization Format" and "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule

_WORDS = (
    requirements.DUPLICATE_COLUMNS,
    requirements.PARTITION_NOT_IN_SCHEMA,
    requirements.UNMAPPED_COLUMNS,
)
RULE = Rule("DP142", "doubtful-columns", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for word in _WORDS:
        if word in subject.contents:
            names = ", ".join(subject.contents[word])
            yield RULE.finding(
                subject.table,
                f"{requirements.described(word)}: {names}",
                "find the commit that wrote the schema, and restore the version before it",
                evidence=word,
            )
