"""The protocol is above the policy's ceiling.

## What it does
Compares the stored reader and writer versions with `max_reader_version` and `max_writer_version`.

## Why it breaks
A ceiling protects clients that support only version numbers, without table features.

## Who breaks
Those clients.

## How to fix
Drop the features that need the versions: `deltaproto features NAME` shows how. If no feature
needs the versions, the next protocol change lowers them.

## How safe
Dropping some features rewrites files or truncates the history, and some cannot be dropped.

## References
The policy's `max_reader_version` and `max_writer_version`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP204", "above-ceiling", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    protocol, settings = case.facts.protocol, case.settings
    for side, version, most in (
        ("reader", protocol.min_reader_version, settings.max_reader_version),
        ("writer", protocol.min_writer_version, settings.max_writer_version),
    ):
        if most is not None and version > most:
            yield RULE.finding(
                case.table,
                f"{side} version {version} is above the policy's {most}",
                "drop the features that need it; `deltaproto features NAME` shows how",
                evidence=str(protocol),
                detail=side,
            )
