"""An earlier DROP FEATURE left checkpointProtection behind.

## What it does
Reports `checkpointProtection`, the writer feature that a fast DROP FEATURE of a history-protected
feature adds, so that no one deletes the checkpoints that shield older clients from the old log.

## Why it breaks
It is a writer feature of its own: writer version 7 stays, and writers that do not know it must
refuse, although the feature that was dropped is gone.

## Who breaks
Writers without it: delta-rs and everything on the Rust kernel, Delta Spark before 4.0.
Readers are not affected.

## How to fix
Once the protected history is older than the retention, 24 hours by default,
`ALTER TABLE t DROP FEATURE checkpointProtection TRUNCATE HISTORY`.

## How safe
It truncates the history before the drop, for good: no time travel, no restore to before.

## References
PROTOCOL RFC "checkpoint-protection"; `CheckpointProtectionTableFeature` in Delta Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION

RULE = Rule("DP114", "checkpoint-protection-left", Severity.INFO, since="0.1.0")
_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"


def check(subject: RuleContext) -> Iterator[Finding]:
    if CHECKPOINT_PROTECTION not in subject.protocol.supported:
        return
    before = subject.state.metadata.property(_BEFORE)
    yield RULE.finding(
        subject.table,
        "checkpointProtection shuts out writers that do not know it"
        + (f"; it protects the history before version {before}" if before else ""),
        "after the retention, DROP FEATURE checkpointProtection TRUNCATE HISTORY removes it",
        feature=CHECKPOINT_PROTECTION,
        evidence=f"{_BEFORE}={before}" if before else None,
    )
