"""Something changes for a table when a declared client is upgraded.

## What it does
`check --after CLIENT@VERSION` compares the declared versions of that client with this version:
which accesses it gains or loses. For a Databricks Runtime, it also finds the features that
Databricks may then turn on (automatic upgrades), and the declared clients that these would block.

## Why it breaks
Automatic upgrades do not turn on a feature while an older runtime, which does not know it, accesses
the table. After the upgrade of the last such runtime, nothing delays them.

## Who breaks
The named client. Clients other than Databricks compute count only if Unity Catalog sees them.

## How to fix
Upgrade the blocked client first, or keep the feature off. `deltaproto forecast` shows all tables of
an inventory, with statements.

## How safe
The rules of automatic upgrades are documented, not measured, and apply only to managed tables of
Unity Catalog. No record states what a runtime itself turns on in existing tables.

## References
docs.databricks.com/aws/en/tables/automatic-upgrades; `deltaproto forecast`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP407", "changes-with-upgrade", Severity.WARNING, since="0.1.0")
