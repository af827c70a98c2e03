"""A Delta table in a scanned folder has no entry in the scanned catalogs.

## What it does
If one scan lists whole catalogs (`uc://HOST`, `hms://HOST`, `glue://REGION`, or `--catalog NAME` of
a Spark session) and folders, it reports the Delta tables in the folders for which none of the
catalogs has an entry. It reports nothing if a part of a catalog could not be listed, or if entries
use addresses that cannot be compared with the folders' addresses, such as `dbfs:/mnt/…`. For a
Spark session, it considers only Unity Catalog and Hive metastores. A catalog in memory has only the
tables of one session, and other catalogs may have schemas within schemas.

## Why it breaks
The table cannot be found by name, and permissions and policies of the catalog do not apply to it.
It may be a leftover of a dropped table that still costs storage.

## Who breaks
No client right now.

## How to fix
Register the table, or delete its folder if it is not needed. Turn the rule off for lakes whose
tables are used by path: `severities: {DP502: off}`.

## How safe
Catalogs hide what you may not see: another user may see an entry. The same bucket under another
name (an access point, a mount) is not recognized. Check both before you delete anything.

## References
`deltaproto scan` with a catalog and folders.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP502", "log-without-entry", Severity.INFO, since="0.2.0")
