"""An upgrade to table features lost features that the old versions implied.

## What it does
If a table-features protocol lacks `appendOnly` or `invariants`, traces the protocol back through
the log. A commit lost features if it replaced a legacy pair with explicit lists that omit features
implied by the pair. Only DROP FEATURE may do that.

## Why it breaks
Writers no longer have to enforce guarantees that the table may still rely on: NOT NULL columns,
CHECK constraints, append-only, generated columns, the change data feed.

## Who breaks
No client reports an error. Rows that violate a constraint are written.

## How to fix
Add the lost features again with `'delta.feature.<name>'='supported'` for each, and check the rows
written since. Do not change protocols with the client that caused this: deltalake's
`alter.add_feature` is known to lose them.

## How safe
Adding legacy features again is a protocol change. Every writer that supports writer version 7
supports appendOnly and invariants. They cannot be dropped again.

## References
PROTOCOL.md, "Table Features for New and Existing Tables": an upgrade must list all implied
features.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP105", "implied-features-lost", Severity.WARNING, since="0.1.0")
_IMPLIED_FIRST = frozenset({"appendOnly", "invariants"})


def check(subject: RuleContext) -> Iterator[Finding]:
    now = subject.protocol
    if not now.uses_table_features or now.supported >= _IMPLIED_FIRST:
        return
    for before, after in pairwise(subject.changes):
        lost = (before.protocol.implied - after.protocol.supported) - now.supported
        dropped = after.commit_info.get("operation") == "DROP FEATURE"
        upgraded = after.protocol.uses_table_features
        if lost and upgraded and not dropped:
            names = ", ".join(sorted(lost))
            from deltaproto.protocol.writers import name_writer

            engine = name_writer(after.commit_info) or "an unnamed client"
            yield RULE.finding(
                subject.table,
                f"version {after.version} changed {before.protocol} to {after.protocol} "
                f"and lost {names}",
                "add the features again with Delta Spark, and check the rows written since",
                evidence=f"version {after.version}: "
                f"{after.commit_info.get('operation', 'unknown operation')} by {engine}",
            )
