"""A checkpoint cannot be read, and the answer came from the commits instead.

## What it does
Reports a damaged or empty checkpoint beside a log that is otherwise complete.

## Why it breaks
The table lives on borrowed time: once the old commits are cleaned up, it cannot be read any more.

## Who breaks
delta-rs refuses the table already. Delta Spark falls back to the commits, as deltaproto does.

## How to fix
Write a new checkpoint while the commits are still there (in Delta Spark any tenth commit does,
in deltalake `create_checkpoint()`), then remove the broken file.

## How safe
A new checkpoint changes nothing in the table. Keep the log retention from expiring until then.

## References
PROTOCOL.md, "Checkpoints".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.protocol.table_state import NoteKind

RULE = Rule("DP130", "checkpoint-unreadable", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for note in subject.state.notes:
        if note.kind is NoteKind.CHECKPOINT_UNREADABLE:
            yield RULE.finding(
                subject.table,
                note.message,
                "write a new checkpoint while the older commits are still there",
            )
