"""A table of the baseline no longer exists.

## What it does
Looks for every local table of the baseline that was not checked.

## Why it breaks
A table that was dropped or moved is no longer checked, and its readers fail.

## Who breaks
Everyone who reads or writes the table.

## How to fix
If it was dropped intentionally, save a new baseline. If it was moved, check its new location.

## How safe
Checking is read-only.

## References
`deltaproto inspect … --format json --output FILE` writes a baseline.
"""

from __future__ import annotations

from deltaproto.policy.context import TableFacts
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP225", "gone-since-baseline", Severity.WARNING, since="0.1.0")


def finding(before: TableFacts) -> Finding:
    """Create the finding for a table that no longer exists."""
    return RULE.finding(
        before.table,
        f"the table no longer exists; the baseline contains version {before.version}",
        "if it was dropped, save a new baseline; if it was moved, check it at its new location",
        evidence=before.location,
    )
