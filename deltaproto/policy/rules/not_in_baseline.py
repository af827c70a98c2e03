"""The table is not in the baseline.

## What it does
Looks for the table in the baseline, by its location. If the baseline is a saved check, the finding
is an error, because nothing about the table is known.

## Why it breaks
A new table is not compared with anything, so changed requirements go unnoticed.

## Who breaks
No one directly.

## How to fix
Save a new baseline that includes the table.

## How safe
Saving a baseline changes no table.

## References
`deltaproto inspect … --format json --output FILE` writes a baseline. `deltaproto check …` with
the same options writes a baseline of known findings.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP222", "not-in-baseline", Severity.INFO, since="0.1.0")


def finding(table: str) -> Iterator[Finding]:
    yield RULE.finding(table, "the baseline does not include this table", "save a new baseline")
