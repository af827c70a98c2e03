"""The table is managed by a catalog: the log alone may not show its newest commits.

## What it does
Reports tables that support `catalogManaged` or a preview name of it.

## Why it breaks
A catalog ratifies commits before they appear in `_delta_log`. Clients that read only the file
system may see an old version. Clients that write without the catalog destroy the table.

## Who breaks
Readers by path may see an old version. Delta Spark refuses path access; delta-rs refuses to open
it.

## How to fix
Read it through the catalog: `deltaproto inspect catalog.schema.table`. A result that was read by
path is marked as incomplete. By name, staged commits that DESCRIBE HISTORY confirms are also read.

## How safe
Reading is safe; never write by path.

## References
PROTOCOL.md, "Catalog-managed tables".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED, COORDINATED_COMMITS
from deltaproto.protocol.table_state import NoteKind, ReaderName

RULE = Rule("DP112", "catalog-managed", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    named = sorted(
        each.name
        for each in subject.features
        if each.name in CATALOG_MANAGED or (each.name in COORDINATED_COMMITS and each.enabled)
    )
    state = subject.state
    if not named or state.reader is ReaderName.SPARK or state.confirmed:
        return
    staged = any(note.kind is NoteKind.STAGED_COMMITS for note in subject.state.notes)
    who = "a catalog manages" if named[0] in CATALOG_MANAGED else "a coordinator commits to"
    yield RULE.finding(
        subject.table,
        f"{who} this table: newer commits than version "
        f"{subject.state.version} may not be in the file system",
        "read it by catalog name with --reader spark",
        feature=named[0],
        evidence="commits are staged next to the log" if staged else None,
    )


def incomplete(subject: RuleContext) -> bool:
    """Return True if the result may lack commits that only a catalog knows."""
    return any(True for _ in check(subject))
