"""An action of a commit is incomplete, or has a member of another type.

## What it does
Reports actions in commits since the newest checkpoint, or in the checkpoint, that lack a required
member or have a wrong one:

- `add` without `partitionValues`, `modificationTime` or `dataChange`, or with a member of another
  type; paths that are not encoded as URIs, such as one with a space;
- statistics that are not a JSON object, or do not fit the types of the columns (compared for the
  first 100 files of each commit and 200 in all);
- statistics of files that lack a NOT NULL column, if delta-rs wrote files: its `add_columns` adds
  such columns to tables that have rows;
- partition values that do not fit the type of their column, such as `-1.-50`, which deltalake
  stores for -1.50, or in the form of a narrower type, such as `1.5` for two decimal places;
- deletion vectors, `remove` without `dataChange`, and `commitInfo` with members of types that Delta
  Spark does not expect.

Of a checkpoint, only the footers are read, and at most 10,000 partition values of text, timestamps
and decimals.

## Why it breaks
The specification requires these members. Clients built on the Rust kernel, such as deltalake,
Polars, Daft and DuckDB, refuse the whole table. Delta Spark fails only without partition values, or
with a path that is not a URI. deltalake reads a file with such a path, and a DELETE then duplicates
rows. Delta Spark fails if `timestamp`, `readVersion` or another number in `commitInfo` is not a
whole number, `isBlindAppend` not a boolean, or a map in it not an object; the specification allows
all of these. Without the cardinality of a deletion vector, it returns deleted rows.

Delta Spark and deltalake fail to read a file without a NOT NULL column, unless a query leaves the
column out. deltalake cannot read partition values that do not fit; Delta Spark reads NULL.
deltalake, and so Polars and Daft, parses statistics when it opens a table with a boolean column.

## Who breaks
`deltaproto check` shows the measured result for each client; everything else is unknown.

## How to fix
The log was written by hand or by a tool that does not follow the specification. Fix that tool.
A column that should have been nullable: make it nullable with ALTER COLUMN … DROP NOT NULL.
Values such as `-1.-50` are lost, except in the names of folders: overwrite that partition.
Copy the table with a client that reads it, such as Delta Spark: `CREATE TABLE … AS SELECT`.

## How safe
A copy changes nothing in this table; readers must move to the copy.

## References
PROTOCOL.md, "Add File and Remove File", "Partition Value Serialization", "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature import Trace

RULE = Rule("DP137", "incomplete-add-actions", Severity.WARNING, since="0.1.0")
_FLAWS = {
    Trace.NO_PARTITION_VALUES: requirements.NO_PARTITION_VALUES,
    Trace.INCOMPLETE_ADDS: requirements.INCOMPLETE_ADDS,
    Trace.MISTYPED_ADDS: requirements.MISTYPED_ADDS,
    Trace.INCOMPLETE_REMOVES: requirements.INCOMPLETE_REMOVES,
    Trace.MISTYPED_INFO: requirements.MISTYPED_INFO,
    Trace.MALFORMED_VECTORS: requirements.MALFORMED_VECTORS,
    Trace.UNENCODED_PATHS: requirements.UNENCODED_PATHS,
    Trace.MISFIT_VALUES: requirements.MISFIT_PARTITIONS,
    Trace.UNWIDENED_VALUES: requirements.UNWIDENED_PARTITIONS,
    Trace.UNREADABLE_STATISTICS: requirements.UNREADABLE_STATISTICS,
    Trace.MISTYPED_STATISTICS: requirements.MISTYPED_STATISTICS,
    Trace.LACKING_COLUMNS: requirements.LACKING_COLUMNS,
}

_FIX_TOOL = "check the clients of the table, and fix the tool that wrote the action"
_NULLABLE = "make the column nullable with Delta Spark: ALTER TABLE … ALTER COLUMN … DROP NOT NULL"


def check(subject: RuleContext) -> Iterator[Finding]:
    traces = subject.state.traces
    for trace, flaw in _FLAWS.items():
        # Other engines may leave out statistics; delta-rs adds NOT NULL columns to such files.
        others = trace is Trace.LACKING_COLUMNS and not traces.get(Trace.DELTA_RS_FILES)
        if traces.get(trace) and not others:
            metadata = subject.state.metadata
            combined = requirements.WITH_BOOLEANS.get(flaw)
            booleans = combined and _has_booleans(metadata.schema, metadata.partition_columns)
            word = combined if combined and booleans else flaw
            yield RULE.finding(
                subject.table,
                f"{requirements.describe_hazard(word)}, and some clients fail",
                _NULLABLE if trace is Trace.LACKING_COLUMNS else _FIX_TOOL,
                evidence=word,
            )


def _has_booleans(kind: Mapping[str, Any] | None, without: Sequence[str] = ()) -> bool:
    """Return True if a struct has a boolean column, which may be in another struct.

    Partition columns (`without`) have no statistics.
    """
    fields = [field for field in (kind or {}).get("fields") or () if isinstance(field, dict)]
    kinds = [field.get("type") for field in fields if field.get("name") not in without]
    return "boolean" in kinds or any(
        _has_booleans(each) for each in kinds if isinstance(each, dict)
    )
