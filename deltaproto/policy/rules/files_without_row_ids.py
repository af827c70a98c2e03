"""Row tracking is enabled, and a data file has no row ids.

## What it does
Reports tables with `delta.enableRowTracking = true` of which a live data file has no base row id.

## Why it breaks
A writer that changes rows, or moves them to another file, must keep their ids. Dropping
rowTracking removes the ids of all files. `RESTORE` to an older version enables row tracking again,
and leaves the files as they are.

## Who breaks
Delta Spark: UPDATE, DELETE, MERGE and OPTIMIZE fail as soon as they read such a file. Reads and
appends work.

## How to fix
Enable row tracking again: `ALTER TABLE … SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')`.
Delta Spark then gives ids to the files that have none.

## How safe
The statement writes no data files. Its commits conflict with concurrent UPDATE, DELETE, MERGE and
OPTIMIZE.

## References
PROTOCOL.md, "Row Tracking"; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.requirements import UNTRACKED_FILES, describe_hazard
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature import Trace

RULE = Rule("DP146", "files-without-row-ids", Severity.WARNING, since="0.1.0")
_PROPERTY = "delta.enableRowTracking"


def check(subject: RuleContext) -> Iterator[Finding]:
    state = subject.state
    if state.metadata.is_on(_PROPERTY) and state.traces.get(Trace.UNTRACKED_FILES):
        yield RULE.finding(
            subject.table,
            f"{describe_hazard(UNTRACKED_FILES)}: Delta Spark cannot change its rows",
            f"SET TBLPROPERTIES ('{_PROPERTY}' = 'true') gives ids to all files",
            feature="rowTracking",
            evidence=UNTRACKED_FILES,
        )
