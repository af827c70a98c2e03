"""A legacy version pair with higher numbers than its features need.

## What it does
Reports legacy pairs whose numbers are higher than their features need. Examples are (2,3), (2,1)
and (1,5), which does not imply column mapping because its reader version is 1.

## Why it breaks
Users may read (1,5) as "has column mapping". Clients that only compare numbers refuse the table
for features that it does not have.

## Who breaks
Clients limited to the lower numbers.

## How to fix
`deltaproto plan-downgrade TABLE --protocol R,W` with the versions of the lowest form. The next
protocol change by Delta Spark 3.3 or later stores it, too.

## How safe
The lowest form implies exactly the same features.

## References
`Protocol.denormalizedNormalized` in Delta Spark's TableFeatureSupport.scala.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.policy.rules.not_lowest import lowest_form_hint

RULE = Rule("DP111", "odd-legacy-pair", Severity.INFO, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    protocol, lowest = subject.protocol, subject.lowest
    if lowest is None or protocol.uses_table_features or lowest == protocol:
        return
    surprise = ""
    if protocol.min_writer_version >= 5 and "columnMapping" not in protocol.implied:
        surprise = "; columnMapping is not implied, because the reader version is 1"
    yield RULE.finding(
        subject.table,
        f"{protocol} implies the same features as {lowest}{surprise}",
        lowest_form_hint(lowest),
    )
