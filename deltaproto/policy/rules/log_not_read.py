"""A principal reads data files without the table's log.

## What it does
`discover --access-log` looks for users and roles that read a data file which a commit added while
the access log covers the table, and that never requested anything below `_delta_log`: they found
the file by listing the folder. It is a warning if another principal requests only the log, because
one engine can use one identity for the log and another for the files.

## Why it breaks
Only the log lists the files that belong to the table. A reader of the folder also returns the rows
of files that were replaced, of transactions that failed, and rows that were deleted.

## Who breaks
The users of the job or program behind the principal: it returns stale or deleted rows, without an
error.

## How to fix
Let the program read the table through a client for Delta tables instead of its Parquet files.

## How safe
Tools that only copy or examine files look the same. Tables with Apache Iceberg metadata, and
principals that write to the table, read the log of another table (which may be a shallow clone) or
read other files, such as a manifest, are omitted; so are callers without a name and reads within an
hour of a commit. Access logs without requests to the table's log lead to no finding. Access logs
are not complete, and a lost line can hide a reader.

## References
Delta protocol specification, "Data Files" and "Delta Log Entries".
"""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.counts import counted
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.policy.rules.deleted_rows_read import show_evidence, show_time

RULE = Rule("DP402", "log-not-read", Severity.ERROR, since="0.1.0")


def finding(
    table: str,
    user: str,
    files: Sequence[str],
    last: int,
    agents: Sequence[str],
    *,
    other_identity: bool,
) -> Finding:
    """Create the finding for a principal.

    Args:
        last: the time of its last read, in milliseconds.
        other_identity: whether another principal requests only the log.
    """
    hint = "read the table with a client for Delta tables instead of its Parquet files"
    if other_identity:
        hint += "; nothing is wrong if its engine reads the log with another identity"
    return RULE.finding(
        table,
        f"{user} reads {counted(len(files), 'data file')} but never the table's log, last "
        f"{show_time(last)}: it may return stale or deleted rows",
        hint,
        evidence=show_evidence(files, agents),
        detail=user,
        severity=Severity.WARNING if other_identity else Severity.ERROR,
    )
