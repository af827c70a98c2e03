"""The policy requires a property that Delta does not know, or does not store.

## What it does
Compares the keys of `require_properties` that begin with `delta.` with the properties that Delta
Spark and Databricks know, without regard to case. `delta.feature.…`, `delta.minReaderVersion`,
`delta.minWriterVersion` and `delta.ignoreProtocolDefaults` are requests in a statement, which Delta
does not store.

## Why it breaks
Delta refuses to set an unknown `delta.` property, and removes a request from the properties, so
hardly any table can meet the requirement.

## Who breaks
No one directly.

## How to fix
Correct the name; the hint shows the most similar one, or the key to write instead. If a newer Delta
release has the property, set `severities: {DP305: off}` for the whole policy.

## How safe
Editing a policy changes no table.

## References
The policy's `require_properties`; `DeltaConfigs` in Delta Spark.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP305", "unknown-property", Severity.WARNING, since="0.1.0")
