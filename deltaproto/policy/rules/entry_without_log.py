"""A catalog has an entry for a Delta table, but there is no Delta log at its location.

## What it does
A scan of a catalog, or `inspect` or `check` of a name with the URL of its catalog, finds entries
whose location has no `_delta_log`. A location that may not be
read, or a local path of another machine, is an error without this finding.

## Why it breaks
Queries of the table fail. A writer that creates missing tables starts a new one there.

## Who breaks
Everyone who uses the table by name.

## How to fix
Drop the entry if the table was deleted on purpose. Otherwise restore the folder, or correct the
location of the entry.

## How safe
Dropping an external table removes only its entry. Dropping a managed table also deletes its folder.

## References
`deltaproto scan` with a catalog; the guide "Reach a catalog without Spark".
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP501", "entry-without-log", Severity.WARNING, since="0.2.0")
