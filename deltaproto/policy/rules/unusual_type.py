"""A column has a type that some clients cannot open.

## What it does
Reports columns, nested ones too, whose type is not in the Delta specification: void,
intervals, user-defined types such as Spark ML's VectorUDT, structs without fields, and type names
such as `varchar(5)` or `decimal(50,2)` that are in no specification. Types that belong to a table
feature are not reported: the feature's support decides.

## Why it breaks
Most clients parse the whole schema when they open a table. One unknown type is enough
to refuse the table, even if only other columns are read.

## Who breaks
deltalake and everything built on the Rust kernel for unknown type names and user-defined types;
DuckDB for void. `deltaproto check` shows what was measured; everything else is unknown.

## How to fix
Change the type where Delta allows it, or rewrite the column:
`CREATE OR REPLACE TABLE t AS SELECT … CAST(c AS …) …`. A void column can be dropped (with column
mapping).

## How safe
Replacing a table rewrites all of its files and breaks streams that read it.

## References
PROTOCOL.md, "Primitive Types" and "Schema Serialization Format".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP141", "unusual-type", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for word, columns in subject.contents.items():
        if not word.startswith(requirements.TYPE_PREFIX):
            continue
        kind, names = word.removeprefix(requirements.TYPE_PREFIX), ", ".join(columns)
        yield RULE.finding(
            subject.table,
            f"{names}: the type {kind} is not in the Delta specification, and some clients "
            "cannot open the table",
            "check the clients of the table, or rewrite the column with another type",
            evidence=word,
        )
