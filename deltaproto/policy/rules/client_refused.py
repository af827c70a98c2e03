"""A declared client cannot use the table.

## What it does
Compares the table's protocol, and what is used of it, with what the client's version accepts, for
each access that the policy declares for it.

## Why it breaks
A client must understand every feature that a protocol supports: one that it does not know is
enough to refuse the table. Reader features keep readers and writers out, writer features writers
alone.

## Who breaks
The client that is named, at its next attempt. It fails with an error that seldom says which
feature it was; no data is harmed.

## How to fix
Upgrade the client to a version that passes, or drop the feature that keeps it out. A client that
only reads can also read a copy: Compatibility Mode of Databricks
(delta.universalFormat.enabledFormats=compatibility) keeps a read-only copy of a managed table of
Unity Catalog on the oldest protocol. The finding's remedies say which version and which command,
the cheapest first.

## How safe
Upgrading a client changes no table. Compatibility Mode leaves the table's protocol as it is, but
its copy costs storage and compute, and lags behind the table. Dropping a feature is a protocol
change: it conflicts with concurrent writes, and some features rewrite files or cut the history when
they go.

## References
PROTOCOL.md, "Table Features"; `deltaproto clients ID@VERSION` for the evidence;
docs.databricks.com/aws/en/external-access/compatibility-mode.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.matching import Verdict
from deltaproto.policy.client_findings import about
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule

RULE = Rule("DP201", "client-refused", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    return about(RULE, case, Verdict.REFUSED, "cannot")
