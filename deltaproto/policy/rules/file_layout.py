"""The data files have a layout that some clients cannot read.

## What it does
Reports properties of data files that the log shows and the protocol does not:

- absolute paths: a shallow clone, or files registered in place;
- paths with escapes or characters beyond ASCII, from partition values;
- partition columns stored under physical names, as in tables created with column mapping;
- folders that do not show the partition values of their files (random prefixes, or timestamps in a
  time zone other than UTC), and whether all files also store the values (Delta Spark 4.4);
- partition values with timestamps in ISO 8601, or mixed with the older form; binary ones;
  decimals with decimal places.

`deltaproto check` also considers column mapping that was enabled on existing files; arrays, maps
and variants with column mapping; dropped columns; deletion vectors on files whose paths contain
escapes or non-ASCII characters; and files that delta-rs wrote, with Arrow view types in the footer.
`deltaproto scan` reads the newest commit that adds files and the newest checkpoint for this.

## Why it breaks
The specification allows all of this, and the protocol does not announce it. Clients that were
tested only on other tables may fail, return NULL or return no rows.

## Who breaks
It depends on the client and its version: `deltaproto check` shows which of your clients are
affected. If a layout was not measured with a client, the result is unknown, not ok.

## How to fix
Do nothing unless one of your clients is affected. If so, copy the table: a deep clone or
`CREATE TABLE … AS SELECT` writes new files with relative paths. Tables created without column
mapping store partition columns under their own names. To rewrite files with another engine, use
`OPTIMIZE` in Delta Spark, or `REORG TABLE`.

## How safe
A copy does not change the table; readers must move to the copy.

## References
PROTOCOL.md, "Add File and Remove File", "Column Mapping", "Partition Value Serialization"; Arrow's
`Utf8View`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature import Trace

RULE = Rule("DP140", "file-layout", Severity.INFO, since="0.1.0")
_HINT = "check the clients of the table; a deep clone or CREATE TABLE AS SELECT writes plain files"


def check(subject: RuleContext) -> Iterator[Finding]:
    traces = subject.state.traces
    stored = bool(traces.get(Trace.STORED_PARTITIONS))
    shown = {
        requirements.ABSOLUTE_PATHS: traces.get(Trace.ABSOLUTE_PATHS),
        requirements.NON_ASCII_PATHS: traces.get(Trace.NON_ASCII_PATHS),
        requirements.ESCAPED_PATHS: traces.get(Trace.ESCAPED_PATHS),
        requirements.HIDDEN_PARTITIONS: not stored and traces.get(Trace.HIDDEN_PARTITIONS),
        requirements.STORED_PARTITIONS: stored,
        requirements.ISO_TIMESTAMPS: traces.get(Trace.ISO_TIMESTAMPS),
        requirements.MIXED_TIMESTAMPS: traces.get(Trace.MIXED_TIMESTAMPS),
        requirements.BINARY_PARTITIONS: requirements.BINARY_PARTITIONS in subject.contents,
        requirements.DECIMAL_PARTITIONS: requirements.DECIMAL_PARTITIONS in subject.contents,
        requirements.NEGATIVE_PARTITIONS: traces.get(Trace.NEGATIVE_DECIMALS),
        requirements.MAPPED_PARTITIONS: requirements.MAPPED_PARTITIONS in subject.contents,
    }
    for word in (word for word, there in shown.items() if there):
        columns = ", ".join(subject.contents.get(word, ()))
        text = f"{requirements.describe_hazard(word)}{f' ({columns})' if columns else ''}"
        yield RULE.finding(subject.table, text, _HINT, evidence=word)
