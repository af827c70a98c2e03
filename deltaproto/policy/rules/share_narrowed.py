"""A table with reader features is shared.

## What it does
Finds clients that the policy declares as shares on tables with reader features.

## Why it breaks
Recipients can read such a share only if they request the delta response format and support every
reader feature. The server refuses recipients that support only the parquet format.

## Who breaks
Older recipients, which do not appear in the provider's log.

## How to fix
Check each recipient's connector version as a client, or drop the feature before sharing.

## How safe
For a drop see `deltaproto explain client-refused`.

## References
The Delta Sharing protocol, `responseformat` and `readerfeatures` in the capabilities header.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature import FeatureKind

RULE = Rule("DP211", "share-narrowed", Severity.WARNING, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    protocol = case.facts.protocol
    names = sorted(
        n for n in protocol.supported if protocol.kind_of(n) is FeatureKind.READER_WRITER
    )
    shares = {j.verdict.named: j.declared for j in case.verdicts if j.declared.consumer == "share"}
    if not names:
        return
    for client, declared in shares.items():
        label = f" ({declared.label})" if declared.label else ""
        yield RULE.finding(
            case.table,
            f"shared with {client}{label}: only recipients that support {', '.join(names)} and the "
            "delta response format can read it",
            "check every recipient's connector version, or drop the features before sharing",
            client=client,
            evidence=", ".join(names),
        )
