"""The protocol requires more than at the baseline.

## What it does
Compares the table with its state in the baseline, and searches the log for the commit that made
the change. Features that new versions imply, and that nothing uses, are named with the versions.

## Why it breaks
A feature that was added since then blocks every client that does not support it, including clients
that worked at the baseline.

## Who breaks
Clients that lack the feature: see the findings on clients.

## How to fix
If the change was intended, write a new baseline with `deltaproto inspect --output`. If not, the
commit shows who made it with which engine: disable the cause of the feature, then drop it.

## How safe
Dropping a feature is a protocol change: it conflicts with concurrent writes.

## References
`deltaproto history TABLE` for the whole timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaproto.errors import TableError
from deltaproto.policy.context import PolicyContext, TableFacts
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.layers import switched_features
from deltaproto.protocol.table_state import ProtocolChange
from deltaproto.protocol.writers import name_writer

RULE = Rule("DP220", "drifted", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    before, now = case.baseline, case.facts
    if before is None:
        return
    new = now.protocol.supported - before.protocol.supported
    implied = sorted((new & now.needs.unused) - now.protocol.listed)
    added = sorted(new.difference(implied))
    changes = _changes(before, now) if added else ()
    for name in added:
        yield RULE.finding(
            case.table,
            f"{name} was added to the protocol since version {before.version}",
            f"if intended, save a new baseline; otherwise see deltaproto history {case.shell_name}",
            feature=name,
            evidence=_commit(changes, name) or span(before, now),
        )
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
            f"the protocol rose from {before.protocol} to {now.protocol} without a new feature"
            f"{_implying(implied)}",
            f"see deltaproto history {case.shell_name}",
            evidence=", ".join(versions),
        )


def _implying(names: list[str]) -> str:
    return f" in use (the versions imply {', '.join(names)})" if names else ""


def switched_on(before: TableFacts, now: TableFacts) -> frozenset[str]:
    """Return the features whose table property was off and is on."""
    was, is_on = (switched_features(each.protocol, each.configuration) for each in (before, now))
    return is_on - was


def span(before: TableFacts, now: TableFacts) -> str:
    """Describe between which versions something changed."""
    if now.version < before.version:
        return f"the table was recreated: version {before.version} then, {now.version} now"
    return f"between versions {before.version} and {now.version}"


def _changes(before: TableFacts, now: TableFacts) -> tuple[ProtocolChange, ...]:
    """Return protocol changes since then; empty if the log is unavailable or unreadable."""
    try:
        changes = now.changes() if now.changes is not None else ()
    except TableError:
        return ()
    if now.version < before.version:
        return changes
    return tuple(change for change in changes if change.version > before.version)


def _commit(changes: Iterable[ProtocolChange], name: str) -> str | None:
    for change in changes:
        if name in change.protocol.supported:
            info = change.commit_info
            who = name_writer(info) or "an unnamed client"
            user = info.get("userName")
            by = f"{who}, {user}" if user else who
            return f"version {change.version}: {info.get('operation') or 'unknown'} by {by}"
    return None
