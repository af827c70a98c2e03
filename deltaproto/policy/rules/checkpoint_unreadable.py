"""A checkpoint cannot be read or is missing.

## What it does
Reports a damaged or empty checkpoint, a checkpoint with a damaged or missing part or sidecar,
and a `_last_checkpoint` that names a checkpoint which the log does not have. A scan reports the
latter only in a log without any checkpoint.

## Why it breaks
Once the old commits are cleaned up, the table can no longer be read. Clients based on Delta Kernel
fail at once if `_last_checkpoint` names a checkpoint that is missing, and there is no newer one.

## Who breaks
delta-rs already refuses the table, and so do DuckDB, Polars and Daft without the checkpoint that
`_last_checkpoint` names. Delta Spark falls back to the commits, as deltaproto does.

## How to fix
Write a new checkpoint while the commits still exist (Delta Spark writes one every ten commits;
in deltalake, call `create_checkpoint()`). Then remove the broken file. Delete a `_last_checkpoint`
that names a missing file; it is optional.

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
