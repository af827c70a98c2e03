"""The protocol is above the policy's ceiling.

## What it does
Compares the stored reader and writer versions with `max_reader_version` and `max_writer_version`.

## Why it breaks
A ceiling protects clients that support only version numbers, without table features.

## Who breaks
Those clients.

## How to fix
Drop the features that need the versions: `deltaproto features NAME` shows how. If no feature
needs them, store the lowest form of the protocol. `deltaproto plan TABLE --policy FILE` plans both.

## How safe
Dropping some features rewrites files or truncates the history, and some cannot be dropped.

## References
The policy's `max_reader_version` and `max_writer_version`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.policy.rules.not_lowest import lowest_form_hint

RULE = Rule("DP204", "above-ceiling", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    protocol, settings = case.facts.protocol, case.settings
    lowest = protocol if protocol.violations() else protocol.lowest()
    limits = settings.max_reader_version, settings.max_writer_version
    for side, version, least, most in zip(
        ("reader", "writer"), protocol.versions, lowest.versions, limits, strict=True
    ):
        if most is not None and version > most:
            yield RULE.finding(
                case.table,
                f"{side} version {version} is above the policy's {most}",
                lowest_form_hint(lowest)
                if least <= most
                else "drop the features that need it; `deltaproto features NAME` shows how",
                evidence=str(protocol),
                detail=side,
            )
