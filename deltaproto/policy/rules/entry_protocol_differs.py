"""The properties of the entry state a different protocol from the log.

## What it does
Compares `delta.minReaderVersion`, `delta.minWriterVersion` and `delta.feature.…` in the entry's
properties with the log. Properties that the entry lacks are not compared. Neither is the entry of a
table whose newest version could not be read.

## Why it breaks
The log decides. Tools that read the properties of the catalog show a wrong protocol, and an upgrade
that they check may break clients.

## Who breaks
Anyone who trusts the catalog's properties.

## How to fix
Update the entry. On Databricks, `MSCK REPAIR TABLE … SYNC METADATA` does it. In other catalogs,
remove these properties from the entry.

## How safe
The log is not changed. Catalogs are updated after commits, so the next scan may no longer find a
difference.

## References
`TableFeatureProtocolUtils` of Delta; "REPAIR TABLE" of the Databricks SQL reference.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP507", "entry-protocol-differs", Severity.INFO, since="0.2.0")
