"""An external table is inside the folder of a managed table or of a database.

## What it does
Compares the locations of external tables with those of managed tables (a warning) and databases
(info) in the same catalog. Excludes the database `default`, whose folder contains all others in
Hive, and schemas of Unity Catalog, which refuses such tables itself.

## Why it breaks
`VACUUM` of the outer table deletes files that its log does not know, and dropping it deletes the
folder. `DROP DATABASE … CASCADE` deletes the folder of the database.

## Who breaks
Users of the inner table: its files are deleted.

## How to fix
Move the inner table out, for example with `CREATE TABLE … CLONE` to another location.

## How safe
Stop the writers of the inner table while you move it. Do not vacuum or drop the outer table before
that.

## References
"Remove unused data files with vacuum" of Delta's documentation; `HMSHandler` of Hive.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP506", "inside-managed-location", Severity.WARNING, since="0.2.0")
