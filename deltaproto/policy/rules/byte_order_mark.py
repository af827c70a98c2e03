"""A commit begins with a byte order mark.

## What it does
Reports a commit file since the newest checkpoint that begins with the UTF-8 byte order mark.

## Why it breaks
A commit is newline-delimited JSON, and JSON text must not begin with a byte order mark. Delta Spark
passes over it; other clients stop at the first byte.

## Who breaks
deltalake and what is built on it: they cannot open the table. `deltaproto check` says which of your
clients are affected, where that was measured.

## How to fix
Somebody edited the file by hand: editors on Windows add the mark. Make a checkpoint with Delta
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
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.protocol.feature import Trace

RULE = Rule("DP134", "byte-order-mark", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    if subject.state.traces.get(Trace.BYTE_ORDER_MARK):
        yield RULE.finding(
            subject.table,
            "a commit begins with a byte order mark, at which some clients stop",
            "make a checkpoint with Delta Spark, or restore the commit from a backup",
            evidence=BYTE_ORDER_MARK,
        )
