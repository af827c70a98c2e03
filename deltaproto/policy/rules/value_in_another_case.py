"""A table property has a valid value in another case, such as `Name` or `TRUE`.

## What it does
Reports `delta.columnMapping.mode`, `delta.appendOnly` and `delta.enableChangeDataFeed` with a value
that is not in lower case.

## Why it breaks
Delta Spark accepts values in any case, and stores them as they were typed. Other clients compare
them exactly, and ignore what they do not know.

## Who breaks
deltalake treats a mode of `Name` as no column mapping: without an error, it reads NULL from columns
with other names in the files. With `TRUE`, it deletes rows of append-only tables, and writes no
change data. `deltaproto check` shows what was measured; everything else is unknown.

## How to fix
Set the property again, in lower case:
`ALTER TABLE … SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')`.

## How safe
Setting a property is a metadata change: it aborts concurrent writes. No data file changes.

## References
PROTOCOL.md, "Table Properties"; measured with Delta Spark 4.4.0 and deltalake 1.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.errors import quote_short
from deltaproto.policy.contents import find_other_case
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity

RULE = Rule("DP148", "value-in-another-case", Severity.WARNING, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    stored = subject.state.metadata.configuration
    for key, hazard in find_other_case(stored).items():
        value = stored[key] or ""
        yield RULE.finding(
            subject.table,
            f"{key} is {quote_short(value)}, which some clients ignore",
            f"SET TBLPROPERTIES ('{key}' = '{value.lower()}')",
            evidence=hazard,
        )
