"""A table property has a value that Delta does not accept.

## What it does
Compares each `delta.` property of the table with the values that Delta Spark 4.4 accepts. Values
documented by Databricks are also valid.

## Why it breaks
Engines cannot set such a value, but other writers can store it. Delta Spark throws when it reads a
value that it cannot parse: with `delta.columnMapping.mode` = `foo` on every access, with
`delta.appendOnly` = `yes` on every write. Other clients ignore the value, or use the default.

## Who breaks
Writers; with column mapping, also readers.

## How to fix
`ALTER TABLE t SET TBLPROPERTIES` with a value from the hint, or UNSET the property. If
Delta Spark refuses every statement, only a client that ignores the value can repair the table.

## How safe
Setting a property is a metadata change: it aborts concurrent writes.

## References
`DeltaConfigs` in Delta Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.errors import quote_short
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.isolation import ISOLATION_PROPERTY as ISOLATION

RULE = Rule("DP150", "invalid-property-value", Severity.ERROR, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    stored = subject.state.metadata.configuration
    # The isolation level has its own rule.
    keys = sorted(key for key in stored if key.startswith("delta.") and key != ISOLATION)
    if not keys:
        return
    # Imported only for tables that have properties: every start imports the rules.
    from deltaproto.protocol.properties import expected_value

    for key in keys:
        value = stored[key]
        if value is None:
            continue
        instead = expected_value(key, value, on_databricks=True)
        if instead is not None:
            yield RULE.finding(
                subject.table,
                f"{key} is {quote_short(value)}, which Delta does not accept",
                f"set it to {instead}, or unset it",
                evidence=f"{key}={value}",
            )
