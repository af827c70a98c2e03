"""Whether a declared client can use the table is not known.

## What it does
Finds declared clients whose version is not in the catalogue, whose support for a feature was only
guessed, or for which it cannot be told whether the table uses a feature.

## Why it breaks
What is not known is not counted on: a check that passes on a guess is worse than none.

## Who breaks
Perhaps nobody. Try the client on a copy of the table.

## How to fix
Declare a version that is known, add what you know in a catalogue of your own (`--client-file`), or
inspect with a reader that sees the schema (`--reader log`).

## How safe
Declaring changes no table.

## References
`deltaproto clients` lists what is known, with the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.matching import Verdict
from deltaproto.policy.client_findings import about
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule

RULE = Rule("DP203", "client-unknown", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    return about(RULE, case, Verdict.UNKNOWN, "is not known to be able to")
