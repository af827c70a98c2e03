"""A file of the log has a version without 20 digits in its name.

## What it does
Reports commits and checkpoints such as `1.json` or `000000000000000000001.json`. The log reader
ignores them.

## Why it breaks
Readers differ: delta-rs ignores such a file. Delta Spark treats it as a commit or checkpoint, looks
for a name with 20 digits, and does not find it.

## Who breaks
Delta Spark: every statement on the table fails, even SELECT.

## How to fix
Find out who wrote the file, and move it out of the log.

## How safe
No reader uses the contents of such a file.

## References
PROTOCOL.md, "Delta Log Entries": names are padded with zeros to 20 digits; measured with Delta
Spark 4.4.0 and deltalake 1.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.table_state import NoteKind

RULE = Rule("DP135", "misnamed-log-file", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    for note in subject.state.notes:
        if note.kind is NoteKind.MISNAMED_FILES:
            yield RULE.finding(
                subject.table, note.message, "find out who wrote the file, and move it away"
            )
