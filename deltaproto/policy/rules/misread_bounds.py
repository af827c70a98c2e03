"""Readers may misread the minimum or maximum of a column in the statistics of a data file.

## What it does
Reports statistics of data files that have

- bounds of some columns, but not of all that `delta.dataSkippingNumIndexedCols` and
  `delta.dataSkippingStatsColumns` name, unless the column has no value in the file. Delta Spark and
  Databricks never store bounds of boolean columns. Other bounds are missing in files from before a
  column was added or these properties changed;
- NaN as a bound, which Delta Spark stores for columns with a NaN;
- bounds of decimals with an exponent, such as `0E-10`, which Delta Spark stores for small numbers
  and zeros of seven or more digits after the point.

The rule reads the statistics of the first 100 files of each commit and 200 files in all, from the
commits after the newest checksum or checkpoint; of small logs, all of them; and two for each row
group of a checkpoint. If not all were read and the table has a boolean column, the finding states
that; `check --look-in-files` and `inspect --look-in-files` read all of them.

## Why it breaks
Statistics are optional, and so is each bound. But when deltalake makes a pyarrow dataset, it treats
a missing or unparsable bound as NULL, and pyarrow then skips the file in filters on that column,
although rows match. No number compares with NaN, so the same happens there. Without a filter, no
rows are lost.

## Who breaks
`to_pyarrow_dataset()`, `to_pyarrow_table(filters=...)` and `to_pandas(filters=...)` of deltalake,
and everything that reads through them: `scan_delta` of Polars before 1.14 and later with
`use_pyarrow=True`, and DuckDB on such a dataset. `deltaproto check` shows which of your clients are
affected, and `deltaproto certify` measures any other client on tables with such statistics.

## How to fix
Filter after reading, or read with deltalake's `QueryBuilder`, `scan_delta` of Polars since 1.14,
DuckDB's `delta_scan`, or another client. For missing bounds of columns that are not boolean,
rewrite the files with Delta Spark. In any case, `delta.dataSkippingStatsColumns` can exclude such
columns: then deltalake expects no bounds for them.

## How safe
Rewriting conflicts with concurrent changes to the same files. Without statistics for a column,
queries that filter on it read more files.

## References
PROTOCOL.md, "Per-file Statistics"; Delta's `SkippingEligibleDataType`; delta-rs,
`filestats_to_expression_next`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.policy.hazards import HAZARDS_OF_BOUNDS
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.indexed_columns import has_indexed_booleans

RULE = Rule("DP144", "misread-bounds", Severity.INFO, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    traces = subject.state.traces
    found = [word for trace, word in HAZARDS_OF_BOUNDS.items() if traces.get(trace)]
    unread = Trace.UNBOUNDED_BOOLEANS not in traces
    if unread and has_indexed_booleans(subject.state.metadata):
        found.append(requirements.UNREAD_BOOLEAN_BOUNDS)
    for word in found:
        hint = "check the clients of the table"
        if word == requirements.UNREAD_BOOLEAN_BOUNDS:
            hint += ", with --look-in-files to read all statistics"
        yield RULE.finding(
            subject.table,
            f"{requirements.describe_hazard(word)}, and some clients skip files in filters",
            hint,
            evidence=word,
        )
