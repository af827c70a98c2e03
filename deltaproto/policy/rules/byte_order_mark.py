"""A commit begins with a byte order mark.

## What it does
Reports a commit file since the newest checkpoint that begins with the UTF-8 byte order mark.

## Why it breaks
A commit is newline-delimited JSON, and JSON text must not begin with a byte order mark. Delta Spark
skips the mark; other clients fail on it.

## Who breaks
deltalake and libraries built on it: they cannot open the table. `deltaproto check` reports which
of your clients are affected, if that was measured.

## How to fix
The file was edited by hand: editors on Windows add the mark. Create a checkpoint with Delta
Spark, or restore the file from a backup.

## How safe
A checkpoint changes nothing in the table. Editing a commit again can make it worse.

## References
RFC 8259, section 8.1; PROTOCOL.md, "Delta Log Entries".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.requirements import BYTE_ORDER_MARK
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature import Trace

RULE = Rule("DP134", "byte-order-mark", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    if subject.state.traces.get(Trace.BYTE_ORDER_MARK):
        yield RULE.finding(
            subject.table,
            "a commit begins with a byte order mark, which makes some clients fail",
            "create a checkpoint with Delta Spark, or restore the commit from a backup",
            evidence=BYTE_ORDER_MARK,
        )
