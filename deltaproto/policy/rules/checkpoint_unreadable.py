"""A checkpoint cannot be read, so the state was read from the commits.

## What it does
Reports a damaged or empty checkpoint in a log that is otherwise complete.

## Why it breaks
Once the old commits are cleaned up, the table can no longer be read.

## Who breaks
delta-rs already refuses the table. Delta Spark falls back to the commits, as deltaproto does.

## How to fix
Write a new checkpoint while the commits still exist (Delta Spark writes one every ten commits;
in deltalake, call `create_checkpoint()`). Then remove the broken file.

## How safe
A new checkpoint does not change the table. Write it before the log retention removes commits.

## References
PROTOCOL.md, "Checkpoints".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.table_state import NoteKind

RULE = Rule("DP130", "checkpoint-unreadable", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for note in subject.state.notes:
        if note.kind is NoteKind.CHECKPOINT_UNREADABLE:
            yield RULE.finding(
                subject.table,
                note.message,
                "write a new checkpoint while the older commits still exist",
            )
