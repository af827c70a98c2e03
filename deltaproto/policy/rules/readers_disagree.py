"""Two readers returned different results.

## What it does
With `--reader all`, compares version, id, protocol, configuration, partition and clustering columns
between the readers, field by field.

## Why it breaks
Two clients of the same table see different states. Either the table was written in between
(then the versions differ), or one of the readers reads the log differently.

## Who breaks
Anyone who relies on the wrong one. The log reader replays the log as specified.

## How to fix
Run again. If the versions agree and a field still differs, check the log and report a bug.

## How safe
Checking is read-only.

## References
PROTOCOL.md, "Action Reconciliation".
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP121", "readers-disagree", Severity.ERROR, since="0.1.0")
