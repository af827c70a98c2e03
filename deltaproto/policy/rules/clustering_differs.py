"""The table's clustering columns differ from the policy.

## What it does
Compares the clustering columns with the policy's `cluster_by`, in order and ignoring case. An
empty list requires a table without clustering. delta-rs cannot see clustering columns, so with
`--reader delta-rs` they are unknown, which is a finding too.

## Why it breaks
Queries that filter by the required columns read more files than they need to, and a table that is
clustered supports features that some clients lack.

## Who breaks
No client: this is about cost. Clients that lack the `clustering` feature have separate findings.

## How to fix
`ALTER TABLE t CLUSTER BY (columns)`, or `CLUSTER BY NONE`; `deltaproto plan` plans it. Existing
files keep their layout until `OPTIMIZE t FULL`.

## How safe
It is a metadata change, and the first time also a protocol change: every concurrent write fails.

## References
The policy's `cluster_by`; Delta Lake documentation, "Use liquid clustering for Delta tables".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP212", "clustering-differs", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    wanted, found = case.settings.cluster_by, case.facts.clustering
    if wanted is None:
        return
    required = f"clustering by {', '.join(wanted)}" if wanted else "a table without clustering"
    if found is None:
        yield RULE.finding(
            case.table,
            f"the policy requires {required}; the clustering columns are unknown",
            "read the table with --reader log or --reader spark",
        )
    elif [*map(str.casefold, found)] != [*map(str.casefold, wanted)]:
        clustered = f"clustered by {', '.join(found)}" if found else "not clustered"
        yield RULE.finding(
            case.table,
            f"the policy requires {required}; it is {clustered}",
            "ALTER TABLE … CLUSTER BY; `deltaproto plan` plans it",
            evidence=", ".join(found) or None,
        )
