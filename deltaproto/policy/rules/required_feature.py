"""The table lacks a feature that the policy requires.

## What it does
Looks for `require_features` among the supported features, listed or implied.

## Why it breaks
Processes that rely on the feature do not get it. Writers that do not support it are not blocked.

## Who breaks
The processes for which the policy requires it.

## How to fix
Check the clients first, then enable it: `deltaproto features NAME` shows how.

## How safe
Enabling a feature is a protocol change that affects most clients; many cannot be undone.

## References
The policy's `require_features`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP206", "required-feature-missing", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    wanted = set(case.settings.require_features or ())
    for name in sorted(wanted - case.facts.protocol.supported):
        yield RULE.finding(
            case.table,
            f"the policy requires {name}, which the table does not support",
            f"enable it; `deltaproto features {name}` shows how",
            feature=name,
        )
