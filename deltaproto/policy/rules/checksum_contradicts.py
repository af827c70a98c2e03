"""The version checksum does not match its commit.

## What it does
Reports a `.crc` file whose transaction, protocol, metadata or timestamp contradicts the log, or
whose version the log does not have. The file of the newest version is compared, else the newest
one since the last checkpoint. The state is read from the log itself. `scan` reads fewer files: it
compares the checksum of the newest version only with the commit of that version.

## Why it breaks
Delta Spark and other clients read protocol and metadata from the checksum without verifying it.

## Who breaks
Every client that trusts checksums: it may see a protocol or columns that the table does not have.
Delta Kernel, and so delta-rs, Polars, DuckDB and Daft, also starts from checksums of older
versions. deltalake, Polars and Daft fail if one is newer than the log.

## How to fix
Find out who copied or edited the log folder. Then delete the checksum file, which is optional.

## How safe
Deleting a checksum loses nothing: clients read the log instead.

## References
PROTOCOL.md, "Version Checksum File".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.table_state import NoteKind

RULE = Rule("DP131", "checksum-contradicts-log", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for note in subject.state.notes:
        if note.kind is NoteKind.CHECKSUM_CONTRADICTS:
            yield RULE.finding(
                subject.table, note.message, "delete the checksum file; it is optional"
            )
