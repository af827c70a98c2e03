"""One commit stores several different protocols, or different metadata.

## What it does
Reports a commit with more than one protocol or metaData action, unless they are equal. deltaproto
uses the last one, like Delta Spark.

## Why it breaks
The spec allows one of each in a commit. With several, delta-rs uses the first one and
Spark the last one, so they disagree about the same table.

## Who breaks
The client that reads the weaker protocol may write data that the other one forbids. With several
schemas, clients read different columns.

## How to fix
Change the protocol, or a property for the metadata, with Delta Spark: all clients then use the
newer commit.

## How safe
This is a protocol change: it conflicts with concurrent writes.

## References
PROTOCOL.md, "Protocol Evolution"; measured with Delta Spark 4.4 and deltalake 1.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.table_state import NoteKind

RULE = Rule("DP132", "several-protocols", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for note in subject.state.notes:
        if note.kind is NoteKind.SEVERAL_PROTOCOLS:
            yield RULE.finding(
                subject.table, note.message, "fix it with another change of the same kind in Spark"
            )
