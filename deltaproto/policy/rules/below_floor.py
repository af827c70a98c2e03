"""The protocol is below the policy's floor.

## What it does
Compares the stored reader and writer versions with `min_reader_version` and `min_writer_version`.

## Why it breaks
A floor blocks old clients: clients that support only lower versions may write without enforcing
the guarantees of newer tables.

## Who breaks
Anyone who relies on old writers being blocked.

## How to fix
Enable the feature that the floor protects, or set delta.minReaderVersion and
delta.minWriterVersion.

## How safe
Raising the version numbers is nearly impossible to undo, and blocks clients.

## References
The policy's `min_reader_version` and `min_writer_version`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP207", "below-floor", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    protocol, settings = case.facts.protocol, case.settings
    for side, version, least in (
        ("reader", protocol.min_reader_version, settings.min_reader_version),
        ("writer", protocol.min_writer_version, settings.min_writer_version),
    ):
        if least is not None and version < least:
            yield RULE.finding(
                case.table,
                f"{side} version {version} is below the policy's {least}, so clients that "
                "the policy blocks can use the table",
                "enable the feature that the floor protects, or raise the versions",
                evidence=str(protocol),
                detail=side,
            )
