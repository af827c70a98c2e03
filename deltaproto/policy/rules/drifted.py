"""The protocol asks for more than at the baseline.

## What it does
Compares the table with the same table in the baseline, and looks in the log for the commit that
made the change.

## Why it breaks
A feature that joined since then keeps out every client that does not know it, also those that were
fine at the baseline.

## Who breaks
Clients that lack the feature: see the findings on clients.

## How to fix
If it was meant, write a new baseline with `deltaproto inspect --output`. If not, the commit says
who, with which engine: switch off what brought the feature, then drop it.

## How safe
Dropping a feature is a protocol change: it conflicts with concurrent writes.

## References
`deltaproto history TABLE` for the whole timeline.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.case import Case
from deltaproto.policy.facts import Facts
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule

RULE = Rule("DP220", "drifted", Severity.ERROR, since="0.2.0")


def examine(case: Case) -> Iterator[Finding]:
    before, now = case.baseline, case.facts
    if before is None:
        return
    for name in sorted(now.protocol.supported - before.protocol.supported):
        yield RULE.finding(
            case.table,
            f"{name} joined the protocol since version {before.version}",
            f"if it was meant, save a new baseline; else see deltaproto history {case.word}",
            feature=name,
            evidence=_commit(before, now, name),
        )
    added = now.protocol.supported != before.protocol.supported
    versions = [
        f"{side} version {old} to {new}"
        for side, old, new in (
            ("reader", before.protocol.min_reader_version, now.protocol.min_reader_version),
            ("writer", before.protocol.min_writer_version, now.protocol.min_writer_version),
        )
        if new > old
    ]
    if versions and not added:
        yield RULE.finding(
            case.table,
            f"the protocol rose from {before.protocol} to {now.protocol} without a new feature",
            f"see deltaproto history {case.word}",
            evidence=", ".join(versions),
        )


def _commit(before: Facts, now: Facts, name: str) -> str:
    for change in now.changes() if now.changes is not None else ():
        if change.version > before.version and name in change.protocol.supported:
            info = change.commit_info
            who = info.get("engineInfo") or "an unnamed client"
            user = info.get("userName")
            by = f"{who}, {user}" if user else who
            return f"version {change.version}: {info.get('operation') or 'unknown'} by {by}"
    return f"between versions {before.version} and {now.version}"
