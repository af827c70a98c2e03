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
`deltaproto plan-downgrade TABLE --protocol R,W` with the versions of the lowest form. One statement
of Delta Spark 3.3 or later suffices: `ALTER TABLE t SET TBLPROPERTIES ('delta.minReaderVersion' =
'1', 'delta.minWriterVersion' = '1')`. Every other protocol change stores the lowest form, too.

## How safe
Normalizing drops no feature; it only allows more clients.

## References
`Protocol.normalized` in Delta Spark; "lowest possible protocol" in the platform's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.protocol import Protocol

RULE = Rule("DP107", "not-lowest-protocol", Severity.INFO, since="0.1.0")


def lowest_form_hint(lowest: Protocol) -> str:
    """Return how to store the lowest form of a table's protocol."""
    reader, writer = lowest.versions
    return (
        f"`deltaproto plan-downgrade TABLE --protocol {reader},{writer}` plans it; the next "
        "protocol change by Delta Spark 3.3 or later stores the lowest form, too"
    )


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
        lowest_form_hint(lowest),
    )
