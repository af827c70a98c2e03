"""A table property has a value that Delta does not take.

## What it does
Compares each `delta.` property of the table with the values that Delta Spark 4.4 sets it to. Values
that Databricks documents pass as well.

## Why it breaks
Engines cannot set such a value, but other writers can store it. Delta Spark throws when it reads a
value that it cannot parse: with `delta.columnMapping.mode` = `foo` on every access, with
`delta.appendOnly` = `yes` on every write. Other clients ignore the value, or take the default.

## Who breaks
Writers; with column mapping, readers as well.

## How to fix
`ALTER TABLE t SET TBLPROPERTIES` with a value that the hint names, or UNSET the property. Where
Delta Spark refuses every statement, only a client that ignores the value can repair the table.

## How safe
Setting a property is a metadata change: it aborts concurrent writes.

## References
`DeltaConfigs` in Delta Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.protocol.isolation import PROPERTY as ISOLATION

RULE = Rule("DP150", "invalid-property-value", Severity.ERROR, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    stored = subject.state.metadata.configuration
    # The isolation level has a rule of its own.
    keys = sorted(key for key in stored if key.startswith("delta.") and key != ISOLATION)
    if not keys:
        return
    # Imported only for tables that have properties: every start imports the rules.
    from deltaproto.protocol.properties import wanted

    for key in keys:
        value = stored[key]
        if value is None:
            continue
        instead = wanted(key, value, on_databricks=True)
        if instead is not None:
            yield RULE.finding(
                subject.table,
                f"{key} is {value!r}, which Delta does not take",
                f"set it to {instead}, or unset it",
                evidence=f"{key}={value}",
            )
