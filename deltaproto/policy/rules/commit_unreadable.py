"""A commit cannot be read, although clients need it.

## What it does
Reports a damaged commit since the newest checkpoint in a log whose newer commits or checksum still
show the protocol and the metadata. `inspect` and `check` read these commits; `scan` reads only as
many as it needs for the protocol.

## Why it breaks
Clients need every commit since the newest checkpoint to find the data files.

## Who breaks
Everyone who reads or writes rows. The protocol shown is correct.

## How to fix
Restore the file from a backup or another replica. Do not delete or empty it: the table would have
other rows, and nothing would report that.

## How safe
Restoring the original file changes nothing in the table.

## References
PROTOCOL.md, "Delta Log Entries".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.table_state import NoteKind

RULE = Rule("DP138", "commit-unreadable", Severity.ERROR, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for note in subject.state.notes:
        if note.kind is NoteKind.COMMIT_UNREADABLE:
            yield RULE.finding(
                subject.table, note.message, "restore the commit from a backup or another replica"
            )
