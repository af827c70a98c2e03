"""The log and the entry in Unity Catalog name different tables.

## What it does
Compares the table id of the entry in Unity Catalog with the id that Delta stores in the log of
catalog-managed tables (`io.unitycatalog.tableId`, earlier `ucTableId`).

## Why it breaks
The log belongs to another entry: its folder was copied or moved, or the entry was created again. Or
the table has two entries, and this one is a second name. Commits go to the table that the log
names, so this entry may show old rows or none.

## Who breaks
Readers and writers of the table by this name.

## How to fix
Find the table with the id in the evidence. Register a copy as a clone (`CREATE TABLE … CLONE`)
instead of copying its folder.

## How safe
Do not edit the id in the log.

## References
`UCCommitCoordinatorClient` of Delta's storage library; `deltaproto scan` of `uc://HOST`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP503", "entry-of-another-table", Severity.WARNING, since="0.2.0")
