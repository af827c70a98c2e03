"""A listed feature that nothing on the table uses.

## What it does
Reports features that are listed, but neither enabled nor found in schema, files or log, and that no
other feature requires. Implied features don't count, because the version number includes them.
`appendOnly` and `invariants` don't count either, because every new table has them. Features whose
use shows only in the files are reported only with `--look-in-files`.

## Why it breaks
An unused feature breaks nothing itself, but it blocks clients without the feature for no benefit.
Disabling a feature leaves it in the protocol. Only DROP FEATURE removes it.

## Who breaks
Clients that lack the feature.

## How to fix
`ALTER TABLE t DROP FEATURE <name>`, if the feature can be dropped. For an unused
history-protected feature `TRUNCATE HISTORY` leaves no `checkpointProtection` behind.

## How safe
DROP FEATURE is a metadata and protocol change: it conflicts with concurrent writes.

## References
PROTOCOL.md, "Supported Features" and "Active Features".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.policy.rules.unrequested_feature import unrequested, unused
from deltaproto.protocol.layers import FeatureState

RULE = Rule("DP110", "unused-feature", Severity.INFO, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    reported = {state.name for state, _ in unrequested(subject)}
    for state in unused(subject):
        if state.name in reported:
            continue
        yield RULE.finding(
            subject.table, f"nothing uses {state.name}", _hint(state), feature=state.name
        )


def _hint(state: FeatureState) -> str:
    drop = state.feature.drop
    if state.kept_by:
        return f"keep it: {state.kept_by[0]} prevents its removal"
    if drop.delta_spark is not None:
        return f"DROP FEATURE removes it (delta-spark {drop.delta_spark} or later)"
    if drop.databricks is not None:
        return f"DROP FEATURE removes it (Databricks Runtime {drop.databricks} or later)"
    return "no delta-spark release can drop it; copy the table into a new one"
