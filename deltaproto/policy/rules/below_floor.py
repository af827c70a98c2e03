"""The protocol is below the policy's floor.

## What it does
Compares the stored reader and writer versions with `min_reader_version` and `min_writer_version`.

## Why it breaks
A floor fences out old clients: those that know only lower versions may write without keeping the
promises that newer tables make.

## Who breaks
Whoever counts on old writers being kept out.

## How to fix
Enable the feature for whose sake the floor is there, or set delta.minReaderVersion and
delta.minWriterVersion.

## How safe
Raising a protocol by version numbers alone can hardly be undone and closes the table to clients.

## References
The policy's `min_reader_version` and `min_writer_version`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule

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
                f"{side} version {version} is below the policy's {least}, so that clients which "
                "the policy fences out can use the table",
                "enable the feature that the floor is for, or raise the versions",
                evidence=str(protocol),
                detail=side,
            )
