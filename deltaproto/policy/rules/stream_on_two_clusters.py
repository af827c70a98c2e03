"""Several clusters write the batches of one streaming query.

## What it does
With `--activity`, compares the clusters that the recent commits of each streaming query name. It
is a warning when clusters take turns, and an info when one followed another, which a restart on
another cluster looks like, too. Only Databricks records the cluster.

## Why it breaks
A streaming query keeps its progress in its checkpoint location. Two clusters that run the query
from one location commit the same batches: Delta lets one of them pass and fails the other with
ConcurrentTransactionException, and each may repeat or skip what the other did.

## Who breaks
The streaming query, and the tables that it writes to.

## How to fix
Give each query a checkpoint location of its own, and run it on one cluster at a time.

## How safe
A new checkpoint location makes the query start again; choose its starting version first.

## References
Databricks, "Isolation levels and write conflicts", ConcurrentTransactionException.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule

RULE = Rule("DP122", "stream-on-two-clusters", Severity.WARNING, since="0.1.0")


def finding(table: str, query: str, clusters: Sequence[str], *, shared: bool) -> Finding:
    """The finding on a query whose batches these clusters wrote; `shared`: they took turns."""
    names = ", ".join(dict.fromkeys(clusters))
    how = "take turns at" if shared else "one after the other wrote"
    return RULE.finding(
        table,
        f"clusters {names} {how} the batches of the streaming query {query}",
        "give each query its own checkpoint location, and run it on one cluster at a time",
        detail=query,
        severity=Severity.WARNING if shared else Severity.INFO,
    )
