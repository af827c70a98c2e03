"""Several clusters write the batches of one streaming query.

## What it does
With `--activity`, compares the clusters in the recent commits of each streaming query. The finding
is a warning if clusters alternate, and an info if one followed another, which may only be a restart
on another cluster. Only Databricks records the cluster.

## Why it breaks
A streaming query keeps its progress in its checkpoint location. Two clusters that run the query
from one location commit the same batches. Delta accepts one and fails the other with
ConcurrentTransactionException, and each may repeat or skip the other's work.

## Who breaks
The streaming query, and the tables that it writes to.

## How to fix
Give each query its own checkpoint location, and run it on one cluster at a time.

## How safe
A new checkpoint location restarts the query from the beginning; choose its starting version first.

## References
Databricks, "Isolation levels and write conflicts", ConcurrentTransactionException.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP122", "stream-on-two-clusters", Severity.WARNING, since="0.1.0")


def finding(table: str, query: str, clusters: Sequence[str], *, shared: bool) -> Finding:
    """Create the finding for a query on several clusters; `shared`: they alternate."""
    names = ", ".join(dict.fromkeys(clusters))
    how = "alternately write" if shared else "wrote, one after the other,"
    return RULE.finding(
        table,
        f"clusters {names} {how} the batches of the streaming query {query}",
        "give each query its own checkpoint location, and run it on one cluster at a time",
        detail=query,
        severity=Severity.WARNING if shared else Severity.INFO,
    )
