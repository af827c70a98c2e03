"""The data files are laid out in a way that some clients cannot read.

## What it does
Reports what the log shows of the data files beyond the protocol:

- absolute paths: the table is a shallow clone, or files were registered where they were;
- paths with escapes or characters beyond ASCII, which come from partition values;
- partition columns that are stored under another name, as column mapping does in a table that was
  created with it.

`deltaproto check` also considers column mapping that was enabled on existing files, which have no
column ids, arrays, maps and variants with column mapping, whose parts have none, columns that were
dropped with column mapping, deletion vectors on files whose paths hold escapes or characters beyond
ASCII, and data files that delta-rs wrote: DELETE, UPDATE and MERGE, and appends of some callers,
leave Arrow view types in the Parquet footer.

## Why it breaks
The specification allows all of it, and the protocol does not announce it. Clients that were only
tried on other tables fail, or return NULL or no rows.

## Who breaks
It depends on the client and its version: `deltaproto check` says which of your clients are
affected. A client on which a layout was not measured is unknown, not ok.

## How to fix
Nothing, unless a client of yours is affected. Then copy the table: a deep clone or
`CREATE TABLE … AS SELECT` writes new files with relative paths. A table without column mapping at
its creation stores partition columns under their own names. Files that another engine has to
rewrite: `OPTIMIZE` with Delta Spark, or `REORG TABLE`.

## How safe
A copy leaves the table as it is; readers must move to the copy.

## References
PROTOCOL.md, "Add File and Remove File", "Column Mapping"; Arrow's `Utf8View`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.protocol.feature import Trace

RULE = Rule("DP140", "file-layout", Severity.INFO, since="0.1.0")
_HINT = "check the clients of the table; a deep clone or CREATE TABLE AS SELECT writes plain files"


def check(subject: RuleContext) -> Iterator[Finding]:
    shown = {
        requirements.ABSOLUTE_PATHS: subject.state.traces.get(Trace.ABSOLUTE_PATHS),
        requirements.NON_ASCII_PATHS: subject.state.traces.get(Trace.NON_ASCII_PATHS),
        requirements.ESCAPED_PATHS: subject.state.traces.get(Trace.ESCAPED_PATHS),
        requirements.MAPPED_PARTITIONS: requirements.MAPPED_PARTITIONS in subject.contents,
    }
    for word in (word for word, there in shown.items() if there):
        columns = ", ".join(subject.contents.get(word, ()))
        text = f"{requirements.described(word)}{f' ({columns})' if columns else ''}"
        yield RULE.finding(subject.table, text, _HINT, evidence=word)
