"""The columns of the schema contradict each other, the partitioning or the specification.

## What it does
Reports columns of one struct whose names differ only in case, partition columns that are missing
from the schema or listed twice, and tables without any other column. With column mapping, it also
reports columns without an id or a physical name, or with those of another column. Reports columns
without `metadata`, and parts of the schema with members that the specification does not define.

## Why it breaks
Delta compares names without regard to case, so two such columns are the same column. A partition
column that is missing from the schema has no type. Clients interpret this differently.

## Who breaks
deltalake and the Rust kernel cannot open such a table; Delta Spark reports ambiguous columns. Delta
Spark also refuses any unknown member of the schema, such as `"comment"` beside `"metadata"`.
`deltaproto check` shows what was measured.

## How to fix
Find the commit that wrote the schema, and restore the version before it.

## How safe
RESTORE creates a new commit that undoes later data changes.

## References
PROTOCOL.md, "Schema Serialization Format" and "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity

_WORDS = (
    requirements.DUPLICATE_COLUMNS,
    requirements.PARTITION_NOT_IN_SCHEMA,
    requirements.ONLY_PARTITIONS,
    requirements.REPEATED_PARTITIONS,
    requirements.UNMAPPED_COLUMNS,
    requirements.AMBIGUOUS_COLUMNS,
    requirements.COLUMNS_WITHOUT_METADATA,
    requirements.UNKNOWN_MEMBERS,
)
RULE = Rule("DP142", "doubtful-columns", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for word in _WORDS:
        if word in subject.contents:
            names = ", ".join(subject.contents[word])
            yield RULE.finding(
                subject.table,
                f"{requirements.describe_hazard(word)}: {names}",
                "find the commit that wrote the schema, and restore the version before it",
                evidence=word,
            )
