"""The entry in the catalog has different columns from the log.

## What it does
Compares names and types of the top-level columns, ignoring case, order and nullability. A type that
the catalog spells in an unknown way is not compared, and `char` and `varchar` are `string`, as in
the log. Hive metastores and Glue have one `timestamp` for both of Delta's, no `variant`, and often
`string` for partition columns, whose types are not compared there. Entries without columns, and
those with the placeholder of Spark and Trino (`col array<string>`), refer to the log. They are not
compared, and neither are tables whose newest version could not be read. Lists of Unity Catalog have
no columns, so only tables that are named individually are compared: as roots of a scan, or with
`inspect` or `check`, which name the columns.

## Why it breaks
Delta clients read the schema from the log. Tools that read it from the catalog show old columns,
and some engines refuse the table or return nulls.

## Who breaks
Data catalogs, BI tools and engines that take columns from the catalog.

## How to fix
Update the entry: run the crawler again, or drop the entry of the external table and register it
again. On Databricks, `MSCK REPAIR TABLE … SYNC METADATA` does it.

## How safe
The log is not changed.

## References
"REPAIR TABLE" of the Databricks SQL reference; `HiveExternalCatalog` of Spark.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP504", "entry-columns-differ", Severity.INFO, since="0.2.0")
