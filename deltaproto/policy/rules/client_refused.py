"""A declared client cannot use the table.

## What it does
Compares the table's protocol and its use of features with what the client's version supports, for
each access that the policy declares.

## Why it breaks
A client must support every feature in the protocol: one unsupported feature is enough to refuse
the table. Reader-writer features block readers and writers; writer features block only writers.

## Who breaks
The named client, at its next attempt. It fails with an error that seldom names the feature. No
data is damaged.

## How to fix
Upgrade the client to a version that passes, or drop the feature that blocks it. A client that
only reads can also read a copy: Databricks Compatibility Mode
(delta.universalFormat.enabledFormats=compatibility) maintains a read-only copy of a managed Unity
Catalog table with the oldest protocol. The finding's remedies show versions and commands, the
cheapest first.

## How safe
Upgrading a client changes no table. Compatibility Mode leaves the table's protocol unchanged, but
its copy costs storage and compute, and lags behind the table. Dropping a feature is a protocol
change: it conflicts with concurrent writes, and some features rewrite files or truncate the history
when dropped.

## References
PROTOCOL.md, "Table Features"; `deltaproto clients ID@VERSION` for the evidence;
docs.databricks.com/aws/en/external-access/compatibility-mode.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.model import Verdict
from deltaproto.policy.client_findings import verdict_findings
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP201", "client-refused", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    return verdict_findings(RULE, case, Verdict.REFUSED, "cannot")
