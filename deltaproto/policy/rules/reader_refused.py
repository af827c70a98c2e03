"""One of the readers refused the table that another one could read.

## What it does
With `--reader all`, reports a reader that gave no answer: delta-rs or Spark refusing the
protocol, a log that the direct reader finds broken.

## Why it breaks
The refusal is the symptom users see: a client built on that reader cannot use the table.

## Who breaks
The clients built on the reader that refused.

## How to fix
The reader's own reason is in the message. `deltaproto features` says what the features are, and
which releases know them.

## How safe
Nothing is changed by looking.

## References
PROTOCOL.md, "Protocol Evolution": clients must refuse what they do not support.
"""

from __future__ import annotations

from deltaproto.policy.finding import Severity
from deltaproto.policy.rule import Rule

RULE = Rule("DP120", "reader-refused", Severity.WARNING, since="0.1.0")
