"""The protocol is not in its lowest form.

## What it does
Compares the stored protocol with its normalized form: the lowest versions that support exactly
the same features, without lists if the features fit a legacy pair.

## Why it breaks
Clients that support only version numbers, or lower ones, stay blocked although the table uses
nothing that they lack.

## Who breaks
Clients that support the lower form, but not the higher one.

## How to fix
Any protocol change by Delta Spark 3.3 or later stores the lowest form. Examples: drop a
feature, or run `ALTER TABLE t SET TBLPROPERTIES ('delta.feature.<name>' = 'supported')` with a
feature that the table needs anyway. Setting lower versions has no effect.

## How safe
Normalizing drops no feature; it only allows more clients.

## References
`Protocol.normalized` in Delta Spark; "lowest possible protocol" in the platform's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP107", "not-lowest-protocol", Severity.INFO, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    lowest = subject.lowest
    if lowest is None or not subject.protocol.uses_table_features or lowest == subject.protocol:
        return
    if lowest.supported != subject.protocol.supported:
        # Normalizing would add a missing requirement. DP104 reports that; it lowers nothing.
        return
    yield RULE.finding(
        subject.table,
        f"{subject.protocol} supports the same features as {lowest}: "
        "it can be lowered without dropping any",
        "do nothing: the next protocol change by Delta Spark 3.3 or later stores the lowest form",
    )
