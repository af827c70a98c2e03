"""In-commit timestamps are enabled, and the newest commit has none.

## What it does
Reports tables with `delta.enableInCommitTimestamps = true` whose newest commit has no
`inCommitTimestamp`, or no commitInfo at all.

## Why it breaks
The timestamp of a new commit must be later than that of the commit before it. A writer that does
not support inCommitTimestamp, and commits nevertheless, leaves the table without one.

## Who breaks
Delta Spark refuses every write and every ALTER TABLE: DELTA_MISSING_COMMIT_TIMESTAMP, or
DELTA_MISSING_COMMIT_INFO if the newest commit has no commitInfo either. Reads work.

## How to fix
Disable in-commit timestamps: `ALTER TABLE … SET TBLPROPERTIES ('delta.enableInCommitTimestamps' =
'false')`. Delta Spark raises the same error, but the commit is made. Then enable them again, or
drop inCommitTimestamp if a writer does not support it.

## How safe
The statement writes no data files. Without in-commit timestamps, time travel by time uses the
modification times of the log's files.

## References
PROTOCOL.md, "In-Commit Timestamps"; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.requirements import UNSTAMPED, describe_hazard
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature import Trace

RULE = Rule("DP147", "commit-without-timestamp", Severity.WARNING, since="0.1.0")
_PROPERTY = "delta.enableInCommitTimestamps"


def check(subject: RuleContext) -> Iterator[Finding]:
    state = subject.state
    if state.metadata.is_on(_PROPERTY) and state.traces.get(Trace.COMMIT_TIMESTAMP) is False:
        yield RULE.finding(
            subject.table,
            f"{describe_hazard(UNSTAMPED)}: Delta Spark refuses every write",
            f"SET TBLPROPERTIES ('{_PROPERTY}' = 'false'): Delta Spark raises an error, but its "
            "commit is made; then enable them again, or drop inCommitTimestamp",
            feature="inCommitTimestamp",
            evidence=UNSTAMPED,
        )
