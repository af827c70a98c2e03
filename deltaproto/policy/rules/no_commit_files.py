"""The newest version has a checkpoint but no commit.

## What it does
Reports a log without commit files, or without the commit file of the newest version.

## Why it breaks
Readers differ: delta-rs reads the checkpoint, Delta Spark requires the commit of the newest
version.

## Who breaks
Delta Spark and everything built on it.

## How to fix
Restore the newest commit file from a backup, or append once with delta-rs, which writes one.

## How safe
An append writes a normal new version.

## References
PROTOCOL.md, "Metadata Cleanup": the commit of the newest version must stay.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.table_state import NoteKind

RULE = Rule("DP133", "no-commit-files", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for note in subject.state.notes:
        if note.kind is NoteKind.NO_COMMIT_FILES:
            yield RULE.finding(
                subject.table, note.message, "restore the newest commit file from a backup"
            )
