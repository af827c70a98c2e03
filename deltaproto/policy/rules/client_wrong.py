"""A declared client may silently return incorrect results or damage the table.

## What it does
Finds declared clients that open the table without supporting its contents: versions that do not
check for a feature, or that accept it but are known to handle it incorrectly.

## Why it breaks
A client that ignores deletion vectors reads deleted rows. A client that ignores column mapping
reads nulls. A writer that ignores a feature breaks its guarantee for everyone. Nothing fails.

## Who breaks
The named client, and everyone who relies on its results.

## How to fix
Stop that client on this table until it is upgraded, the feature is dropped, or it reads a copy
(Databricks Compatibility Mode: `deltaproto explain client-refused`).

## How safe
Stopping a client is always safe. For a drop see `deltaproto explain client-refused`.

## References
`deltaproto clients ID@VERSION` for the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.model import Verdict
from deltaproto.policy.client_findings import verdict_findings
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP202", "client-wrong", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    return verdict_findings(
        RULE, case, Verdict.WRONG, "may silently return incorrect results when it tries to"
    )
