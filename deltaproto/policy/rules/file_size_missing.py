"""An action that adds a data file lacks its size.

## What it does
Reports `add` actions, in commits since the newest checkpoint or in the checkpoint, without `size`,
or with a size that no data file can have. For a checkpoint, only the footers are read.

## Why it breaks
The specification requires the size. Delta Spark 4.4 treats a missing size as 0: it reads no rows
from such a file, without an error, and `OPTIMIZE` can then remove the file. Clients built on the
Rust kernel, such as deltalake, Polars, Daft and DuckDB, refuse a log without the size.

## Who breaks
`deltaproto check` shows the measured result for each client; everything else is unknown.

## How to fix
The log was written by hand or by a tool that does not follow the specification. Fix that tool. Do
not run `OPTIMIZE`, `UPDATE`, `DELETE` or `MERGE` before that. Read the files with a Parquet reader
into a new table, or move `_delta_log` away and convert the folder with `CONVERT TO DELTA`.

## How safe
Creating a new table changes nothing in this one. `CONVERT TO DELTA` also adds files that are not
part of this table, such as those that an update replaced.

## References
PROTOCOL.md, "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature import Trace

RULE = Rule("DP136", "file-size-missing", Severity.ERROR, since="0.1.0")
_FLAWS = {
    Trace.UNSIZED_FILES: requirements.UNSIZED_FILES,
    Trace.IMPOSSIBLE_SIZES: requirements.IMPOSSIBLE_SIZES,
}


def check(subject: RuleContext) -> Iterator[Finding]:
    for trace, word in _FLAWS.items():
        if subject.state.traces.get(trace):
            yield RULE.finding(
                subject.table,
                f"{requirements.describe_hazard(word)}, and some clients return none of its rows",
                "check the clients of the table, and run no OPTIMIZE, UPDATE, DELETE or MERGE",
                evidence=word,
            )
