"""The entry in the catalog has other columns than the log.

## What it does
Compares the names of the top-level columns, ignoring case and order. Types are not compared, since
each catalog spells them differently. Entries without columns, and those with the placeholder of
Spark and Trino (`col array<string>`), refer to the log. Lists of Unity Catalog have no columns, so
only its tables that are named as roots are compared.

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
