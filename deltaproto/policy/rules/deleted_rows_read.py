"""A principal reads data files without their deletion vectors.

## What it does
`discover --access-log` compares the requests of each user or role with the table's log. A
principal that read a data file with a deletion vector stored in a `.bin` file, and never requested
any deletion vector of the table, read the deleted rows. If the principal also reads the table's
log, it must have seen the commit with the vector, read newer files, and returned hours later.

## Why it breaks
A deletion vector marks rows of a data file as deleted. A reader that ignores it returns them.

## Who breaks
The users of the job or program behind the principal: it returns deleted rows, without an error.

## How to fix
Let the program read the table through a client that supports deletion vectors, or drop them:
`deltaproto plan-downgrade --drop deletionVectors`, which rewrites the files.

## How safe
It can miss readers: inline vectors (in the log itself), vectors from before the access log begins,
reads within an hour of a commit, callers without a name, principals that also write, that read the
log of another table (which may be a shallow clone), or that several programs share if one of them
reads vectors, programs that open every file of the folder, and files beyond the first 500. Access
logs are not complete: a lost line can hide a reader. A cache can hide the read of a vector only if
it was read before the access log begins, and such vectors are not considered.

## References
Delta protocol specification, "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.counts import counted
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP401", "deleted-rows-read", Severity.ERROR, since="0.1.0")
_FIRST = 3


def finding(
    table: str, user: str, files: Sequence[str], last: int, agents: Sequence[str]
) -> Finding:
    """Create the finding for a principal; `last` is the time of its last read, in milliseconds."""
    return RULE.finding(
        table,
        f"{user} reads {counted(len(files), 'data file')} without the deletion vectors, last "
        f"{show_time(last)}: it returns deleted rows",
        "read the table with a client that supports deletion vectors, or drop the feature",
        feature="deletionVectors",
        evidence=show_evidence(files, agents),
        detail=user,
    )


def show_time(milliseconds: int) -> str:
    """Return the hour of a time in UTC."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:00Z}"


def show_evidence(files: Sequence[str], agents: Sequence[str]) -> str:
    """Return the first files and the user agents."""
    more = f" and {len(files) - _FIRST:,} more" if len(files) > _FIRST else ""
    return f"{', '.join(files[:_FIRST])}{more}; user agent {', '.join(agents) or 'unknown'}"
