"""Several entries of one catalog have the same location.

## What it does
Finds locations that a catalog lists under several names. Names in different catalogs, such as a
Hive metastore and Unity Catalog over the same tables, are not reported; neither are resource links
of AWS Glue.

## Why it breaks
A change of the protocol under one name changes the table under all of them. Dropping a managed
entry deletes the folder of the others. Each entry has its own permissions.

## Who breaks
Users of the other names.

## How to fix
Keep one entry, and replace the others with views.

## How safe
Dropping an external entry deletes no file.

## References
The column `other_names` of the inventory; patterns of policies match any of the names.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP505", "several-names", Severity.INFO, since="0.2.0")
