"""A listed feature that nothing on the table uses.

## What it does
Names features that are listed, but neither enabled nor present in schema, files or log, and that
no other feature requires. Implied features don't count: they come with the version number, and so
do `appendOnly` and `invariants`, which every new table has. Where files were not looked at nothing
is claimed; `--look-in-files` looks.

## Why it breaks
It does not, by itself: it closes the table to clients without the feature, and gives nothing for
it. Disabling a feature leaves it in the protocol; only DROP FEATURE takes it out.

## Who breaks
Clients that lack the feature.

## How to fix
`ALTER TABLE t DROP FEATURE <name>`, where the feature can be dropped. For an unused
history-protected feature `TRUNCATE HISTORY` leaves no `checkpointProtection` behind.

## How safe
DROP FEATURE is a metadata and protocol change: it conflicts with concurrent writes.

## References
PROTOCOL.md, "Supported Features" and "Active Features".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.policy.rules.unrequested_feature import unrequested, unused

RULE = Rule("DP110", "unused-feature", Severity.INFO, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    told = {state.name for state, _ in unrequested(subject)}
    for state in unused(subject):
        if state.name in told:
            continue
        since = state.feature.drop.delta_spark
        yield RULE.finding(
            subject.table,
            f"nothing uses {state.name}",
            f"DROP FEATURE takes it out (delta-spark {since} or later)"
            if since
            else "no delta-spark release can drop it; only a new table is without it",
            feature=state.name,
        )
