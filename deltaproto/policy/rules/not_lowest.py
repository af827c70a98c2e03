"""The protocol is not in its lowest form.

## What it does
Compares the stored protocol with its normalised form: the smallest versions that carry exactly
the same features, without lists where the features fit a legacy pair.

## Why it breaks
Clients that know only version numbers, or lower ones, stay locked out although the table uses
nothing that they lack.

## Who breaks
Clients that support the lower form, but not the higher one.

## How to fix
Any protocol change by Delta Spark 3.3 or later stores the lowest form, for example dropping a
feature, or `ALTER TABLE t SET TBLPROPERTIES ('delta.feature.<name>' = 'supported')` with a
feature that the table has to have anyway. Setting lower versions does nothing.

## How safe
Normalising drops no feature and only widens the circle of clients.

## References
`Protocol.normalized` in Delta Spark; "lowest possible protocol" in the platform's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule

RULE = Rule("DP107", "not-lowest-protocol", Severity.INFO, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    lowest = subject.lowest
    if lowest is None or not subject.protocol.uses_table_features or lowest == subject.protocol:
        return
    if lowest.supported != subject.protocol.supported:
        # Normalising would add a missing requirement: that is DP104's, and lowers nothing.
        return
    yield RULE.finding(
        subject.table,
        f"{subject.protocol} carries the same features as {lowest}: "
        "normalisation alone would lower it",
        "the next protocol change by Delta Spark 3.3 or later stores the lowest form",
    )
