"""An earlier DROP FEATURE left checkpointProtection behind.

## What it does
Reports `checkpointProtection`, a writer feature that a fast DROP FEATURE of a history-protected
feature adds. It prevents the deletion of checkpoints that protect older clients from the old log.

## Why it breaks
It is itself a writer feature: the protocol stays at writer version 7, and writers that do not
support it must refuse the table, even after the other feature was dropped.

## Who breaks
Writers without it: delta-rs and everything built on the Rust kernel, Delta Spark before 4.0.
Readers are not affected.

## How to fix
Once the protected history is older than the retention, 24 hours by default,
`ALTER TABLE t DROP FEATURE checkpointProtection TRUNCATE HISTORY`.

## How safe
It first truncates the history irreversibly: no time travel or restore to earlier versions.

## References
PROTOCOL RFC "checkpoint-protection"; `CheckpointProtectionTableFeature` in Delta Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION

RULE = Rule("DP114", "checkpoint-protection-left", Severity.INFO, since="0.1.0")
_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"


def check(subject: RuleContext) -> Iterator[Finding]:
    if CHECKPOINT_PROTECTION not in subject.protocol.supported:
        return
    before = subject.state.metadata.property(_BEFORE)
    yield RULE.finding(
        subject.table,
        "checkpointProtection blocks writers that do not support it"
        + (f"; it protects the history before version {before}" if before else ""),
        "after the retention, remove it with DROP FEATURE checkpointProtection TRUNCATE HISTORY",
        feature=CHECKPOINT_PROTECTION,
        evidence=f"{_BEFORE}={before}" if before else None,
    )
