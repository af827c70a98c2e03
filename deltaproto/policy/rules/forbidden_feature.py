"""The table supports a feature that the policy forbids.

## What it does
Looks for `forbid_features` among the supported features, listed or implied.

## Why it breaks
A supported feature blocks clients that lack it, even if it is not used.

## Who breaks
The clients that the policy protects by forbidding it.

## How to fix
Drop the feature if possible: see `deltaproto features NAME`.

## How safe
DROP FEATURE is a protocol change: it conflicts with concurrent writes.

## References
The policy's `forbid_features`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol import feature_catalog

RULE = Rule("DP205", "forbidden-feature", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    protocol = case.facts.protocol
    for name in sorted(protocol.supported & set(case.settings.forbid_features or ())):
        drop = feature_catalog.feature_record(name).drop
        can_go = bool(drop.delta_spark or drop.databricks)
        how = "listed" if name in protocol.listed else f"implied by {protocol}"
        yield RULE.finding(
            case.table,
            f"{name} is forbidden by the policy, and {how}",
            f"drop it with ALTER TABLE … DROP FEATURE; see `deltaproto features {name}`"
            if can_go
            else "no release can drop it: copy the table into a new one",
            feature=name,
        )
