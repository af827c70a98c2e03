"""It is unknown whether a declared client can use the table.

## What it does
Finds declared clients whose version is not in the catalog, whose support for a feature is only
assumed, or for which it is unknown whether the table uses a feature.

## Why it breaks
deltaproto does not rely on guesses: a check that passes on a guess is worse than no check.

## Who breaks
Possibly no one. Try the client on a copy of the table.

## How to fix
Declare a known version, add your own entry with `--client-file`, or
inspect with a reader that reads the schema (`--reader log`).

## How safe
Declaring a client changes no table.

## References
`deltaproto clients` lists known clients, with evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.model import Verdict
from deltaproto.policy.client_findings import verdict_findings
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP203", "client-unknown", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    return verdict_findings(RULE, case, Verdict.UNKNOWN, "is not known to be able to")
