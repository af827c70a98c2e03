"""One of the readers refused a table that another reader could read.

## What it does
With `--reader all`, reports a reader that failed: delta-rs or Spark refused the
protocol, or the log reader found a broken log.

## Why it breaks
Users see the same failure: a client built on that reader cannot use the table.

## Who breaks
The clients built on the reader that refused.

## How to fix
The message contains the reader's reason. `deltaproto features` describes the features and shows
which releases support them.

## How safe
Checking is read-only.

## References
PROTOCOL.md, "Protocol Evolution": clients must refuse what they do not support.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP120", "reader-refused", Severity.WARNING, since="0.1.0")
